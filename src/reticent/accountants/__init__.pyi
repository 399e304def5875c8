"""The list of routes, which are asked in the order of their priority: see ``reticent.kernel.lazy``."""

# isort: off
# kinds: routes
from reticent.kernel.accountants.bounds import Bounds as Bounds
from reticent.accountants.transform import Transform as Transform
from reticent.kernel.accountants.lattice import Lattice as Lattice
from reticent.accountants.split import Split as Split
from reticent.kernel.accountants.lattice import FinerLattice as FinerLattice
