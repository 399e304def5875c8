"""Bridges to other libraries: accountants for Opacus and Flower, dp_accounting's events and loss distributions.

Each needs its own library: import ``reticent.interop.opacus``, ``reticent.interop.flower``,
``reticent.interop.dp_events`` or ``reticent.interop.pld``. A bridge translates, and derives nothing.
"""
