"""Attacks: a finished run, or a training loop, to scores; and audits of whole implementations.

A file here attacks; what its scores prove is in ``reticent.auditing``, and what an attacker could prove at best is in
``reticent.adversaries``. Attacks that have a name are listed without torch. A file of other names is read when one of
them is first used.
"""

from reticent.kernel.errors import needing
from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, around=lambda name: needing(f"reticent.attacks.{name}", "train"))
