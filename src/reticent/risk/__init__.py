"""Curve to number: one function per risk."""
