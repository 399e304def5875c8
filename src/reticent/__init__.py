"""reticent: how much can this attacker learn about one person from the model we release?

``import reticent as rt`` is the front door: what was released, who attacks, and the verbs. Nothing is loaded before
it is used, so the import costs milliseconds. The packages behind it (``reticent.adversaries``, ``reticent.risk``, ...)
hold everything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "DPSGD": "mechanisms",
    "Gaussian": "mechanisms",
    "Gradients": "mechanisms",
    "Laplace": "mechanisms",
    "Ledger": "mechanisms",
    "Neighbouring": "mechanisms",
    "RandomisedResponse": "mechanisms",
    "Sampler": "mechanisms",
    "Attribute": "adversaries",
    "Membership": "adversaries",
    "MembershipGame": "adversaries",
    "Mixed": "adversaries",
    "Relaxed": "adversaries",
    "WorstCase": "adversaries",
    "advantage": "api.measures",
    "bayes_security": "api.measures",
    "delta_at_epsilon": "api.measures",
    "epsilon_at_delta": "api.measures",
    "mu": "api.measures",
    "success": "api.measures",
    "tpr_at_fpr": "api.measures",
    "assess": "api",
    "audit": "api",
    "audit_loop": "api",
    "calibrate": "api",
    "certify": "api",
    "compare": "api",
    "dpsgd": "api",
    "lint": "api",
    "secure_noise": "api",
    "verify": "api",
    "watch": "api",
}
"""Each name of the front door, and where it is read from."""

__all__ = [
    "DPSGD",
    "Attribute",
    "Gaussian",
    "Gradients",
    "Laplace",
    "Ledger",
    "Membership",
    "MembershipGame",
    "Mixed",
    "Neighbouring",
    "RandomisedResponse",
    "Relaxed",
    "Sampler",
    "WorstCase",
    "__version__",
    "advantage",
    "assess",
    "audit",
    "audit_loop",
    "bayes_security",
    "calibrate",
    "certify",
    "compare",
    "delta_at_epsilon",
    "dpsgd",
    "epsilon_at_delta",
    "lint",
    "mu",
    "secure_noise",
    "success",
    "tpr_at_fpr",
    "verify",
    "watch",
]

if TYPE_CHECKING:
    from reticent.adversaries import Attribute, Membership, MembershipGame, Mixed, Relaxed, WorstCase
    from reticent.api import (
        assess,
        audit,
        audit_loop,
        calibrate,
        certify,
        compare,
        dpsgd,
        lint,
        secure_noise,
        verify,
        watch,
    )
    from reticent.api.measures import (
        advantage,
        bayes_security,
        delta_at_epsilon,
        epsilon_at_delta,
        mu,
        success,
        tpr_at_fpr,
    )
    from reticent.mechanisms import (
        DPSGD,
        Gaussian,
        Gradients,
        Laplace,
        Ledger,
        Neighbouring,
        RandomisedResponse,
        Sampler,
    )


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = globals()[name] = getattr(import_module(f"reticent.{_WHERE[name]}"), name)
        return found
    raise AttributeError(f"module 'reticent' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, __all__, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted(__all__)
