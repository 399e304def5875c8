"""Least noise that meets a target; the safe side of the root."""
