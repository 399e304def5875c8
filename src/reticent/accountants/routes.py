"""The list of routes: one file each, and one line here. Those of other packages come by entry points."""

from reticent.accountants.bounds import Bounds
from reticent.accountants.lattice import FinerLattice, Lattice
from reticent.accountants.route import Route
from reticent.accountants.split import Split
from reticent.accountants.transform import Transform
from reticent.registry import Registry

ROUTES: Registry[Route] = Registry("route", "reticent.routes", Route)
"""By name. They are asked in the order of their priority."""

for _kind in (Bounds, Transform, Lattice, Split, FinerLattice):
    ROUTES.add(_kind)
