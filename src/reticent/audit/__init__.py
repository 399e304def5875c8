"""Scores to empirical curves and lower bounds with confidence. Arrays in, results out; no torch."""
