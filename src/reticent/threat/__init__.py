"""Adversaries: what was released to the curve of who attacks."""
