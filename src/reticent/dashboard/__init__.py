"""The browser page: displays what the library answers, derives nothing. Needs the ``dashboard`` extra."""
