"""Attacks: model and records to scores."""
