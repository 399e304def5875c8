"""What a certificate says, as data: its schema, how each part is derived from inputs, and the policy beside it."""
