"""Counts with geometric noise, and an attacker who sees every k-th of them. Entry points name the classes."""
