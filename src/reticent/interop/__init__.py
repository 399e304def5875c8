"""Bridges to other libraries: Opacus accountants, dp_accounting's events and loss distributions.

Each needs its own library: import ``reticent.interop.opacus``, ``reticent.interop.dp_events`` or
``reticent.interop.pld``. A bridge translates, and derives nothing.
"""
