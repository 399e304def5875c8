"""Data sets with checksums and splits."""
