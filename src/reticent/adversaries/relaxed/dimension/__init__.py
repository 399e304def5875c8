"""The relaxed adversary of sampled runs in the dimension that the user states, from above and from below.

In all files here ``noise`` is noise over the clip norm, > 0; ``rate`` the Poisson inclusion probability of a record, in
(0, 1); ``steps`` the number of noisy sums; ``dimension`` that of the space in which the attacker does not know the
direction, a statement of the user: >= 1 for a ``run``, which is DP-SGD with noise, and >= 2 below it; ``moment`` is
log E exp(x <u, u'>) over two directions.
"""

from reticent.adversaries.relaxed.dimension.chain import replaced as replaced
from reticent.adversaries.relaxed.dimension.directions import DirectionLaw as DirectionLaw
from reticent.adversaries.relaxed.dimension.directions import relaxed_under as relaxed_under
from reticent.adversaries.relaxed.dimension.enclose import relaxed_estimate as relaxed_estimate
from reticent.adversaries.relaxed.dimension.enclose import relaxed_in as relaxed_in
