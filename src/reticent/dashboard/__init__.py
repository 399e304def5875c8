"""The browser page; displays, never derives."""
