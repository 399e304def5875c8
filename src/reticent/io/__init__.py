"""Everything untrusted that is read or written, within limits that are stated with the reader.

Here is how a file is read. What it means is known to the room that asks for it.
"""
