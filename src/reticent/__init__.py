"""reticent: how much can this attacker learn about one person from the model we release?

``import reticent as rt`` is the front door: what was released, who attacks, and the verbs. Nothing is loaded before
it is used, so the import costs milliseconds. The packages behind it (``reticent.threat``, ``reticent.risk``, ...)
hold everything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "DPSGD": "mechanism",
    "Gaussian": "mechanism",
    "Gradients": "mechanism",
    "Laplace": "mechanism",
    "Ledger": "mechanism",
    "Neighbouring": "mechanism",
    "RandomisedResponse": "mechanism",
    "Sampler": "mechanism",
    "Attribute": "threat",
    "Membership": "threat",
    "MembershipGame": "threat",
    "Mixed": "threat",
    "Relaxed": "threat",
    "WorstCase": "threat",
    "advantage": "risk",
    "bayes_security": "risk",
    "delta_at_epsilon": "risk",
    "epsilon_at_delta": "risk",
    "mu": "risk",
    "success": "risk",
    "tpr_at_fpr": "risk",
    "assess": "api",
    "audit_loop": "api",
    "certify": "api",
    "compare": "api",
    "dpsgd": "api",
    "lint": "api",
    "verify": "api",
}
"""Each name of the front door, and the package that it is read from."""

_VERBS = ("audit", "calibrate", "watch")
"""Packages that can be called: ``rt.calibrate(...)`` is a verb, ``reticent.calibrate.Mu`` a name inside."""

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
    "success",
    "tpr_at_fpr",
    "verify",
    "watch",
]

if TYPE_CHECKING:
    from reticent.api import (
        assess,
        audit,
        audit_loop,
        calibrate,
        certify,
        compare,
        dpsgd,
        lint,
        verify,
        watch,
    )
    from reticent.mechanism import (
        DPSGD,
        Gaussian,
        Gradients,
        Laplace,
        Ledger,
        Neighbouring,
        RandomisedResponse,
        Sampler,
    )
    from reticent.risk import advantage, bayes_security, delta_at_epsilon, epsilon_at_delta, mu, success, tpr_at_fpr
    from reticent.threat import Attribute, Membership, MembershipGame, Mixed, Relaxed, WorstCase


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return import_module(f"reticent.{name}")
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
