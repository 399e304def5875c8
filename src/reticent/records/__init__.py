"""What ran: the one ledger of runs and of watched loops, what it amounts to, and whether it is as it was written.

A ledger states facts. It makes a mechanism of them; what an attacker learns from that is not known here.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
