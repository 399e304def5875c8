"""Composition: many releases, one curve, with a bound on each numerical error."""
