"""Everything untrusted that is read or written, within limits that are stated beside the reader."""
