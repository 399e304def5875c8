"""Certificates: built from inputs, kept in files, verified, judged by a gate, entered in a register.

``document`` is what one says, as data; ``page`` is what people read of it. Signatures over files are in
``reticent.signing``; no attacker and no number is defined here.
"""
