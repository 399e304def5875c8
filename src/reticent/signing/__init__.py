"""Who vouches for a file: keys, envelopes with signatures, sealed ledgers. What the file says is not known here."""
