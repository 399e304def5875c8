"""Certificates: schema, build, render, verify."""
