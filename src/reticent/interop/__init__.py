"""Bridges to other libraries: Opacus accountants, dp_accounting's events and loss distributions.

Import the bridge that you need; each needs its own library (``reticent.interop.opacus``,
``reticent.interop.dp_events``, ``reticent.interop.pld``).
"""
