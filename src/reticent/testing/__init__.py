"""For tests of kinds that are added, here or in another package: the laws that hold for each kind.

``from reticent.testing import laws``. Nothing else of this package imports it.
"""
