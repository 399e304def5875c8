"""Certificates: schema, build, render, verify, and the policy of a gate.

A file here derives a document from inputs, or reads one that somebody else wrote. Signatures over files are in
``reticent.signing``; no attacker and no number is defined here.
"""
