"""The relaxed adversary of sampled runs in the dimension that the user states, from above and from below.

In all files here ``noise`` is noise over the clip norm, > 0; ``rate`` the Poisson inclusion probability of a record, in
(0, 1); ``steps`` the number of noisy sums; ``dimension`` that of the space in which the attacker does not know the
direction, a statement of the user: >= 1 for a ``run``, which is DP-SGD with noise, and >= 2 below it.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
"""Every name of this package, and where it is read from: who lists attackers reads none of it."""
