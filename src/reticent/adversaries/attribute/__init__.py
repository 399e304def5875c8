"""The attacker who wants one field of one record: bounded by how far the field can move a clipped gradient."""
