"""Adversaries: *what was released* x *who attacks* gives a trade-off curve and its claim."""
