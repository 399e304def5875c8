"""Dominating pairs: one file per pair, with all that is known about it. No counts of releases, no attackers here.

A pair is loaded when it is used: lists of mechanisms are read without numpy and scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reticent.pairs.neighbouring import Neighbouring
from reticent.pairs.part import Part

_WHERE = {
    "AllocatedGaussianPair": "random_allocation",
    "AntipodalGaussianPair": "antipodal",
    "CurvePair": "curve",
    "Disclosure": "disclosure",
    "Drawn": "base",
    "GaussianPair": "gaussian",
    "LaplacePair": "laplace",
    "LossMasses": "losses",
    "MixedPair": "mixed",
    "Pair": "base",
    "SymmetrisedGaussianPair": "gaussian",
    "WholeUserGaussianPair": "whole_user",
    "poisson_gaussian": "poisson",
}

__all__ = ["Neighbouring", "Part", *_WHERE]

if TYPE_CHECKING:
    from reticent.pairs.antipodal import AntipodalGaussianPair as AntipodalGaussianPair
    from reticent.pairs.base import Drawn as Drawn
    from reticent.pairs.base import Pair as Pair
    from reticent.pairs.curve import CurvePair as CurvePair
    from reticent.pairs.disclosure import Disclosure as Disclosure
    from reticent.pairs.gaussian import GaussianPair as GaussianPair
    from reticent.pairs.gaussian import SymmetrisedGaussianPair as SymmetrisedGaussianPair
    from reticent.pairs.laplace import LaplacePair as LaplacePair
    from reticent.pairs.losses import LossMasses as LossMasses
    from reticent.pairs.mixed import MixedPair as MixedPair
    from reticent.pairs.poisson import poisson_gaussian as poisson_gaussian
    from reticent.pairs.random_allocation import AllocatedGaussianPair as AllocatedGaussianPair
    from reticent.pairs.whole_user import WholeUserGaussianPair as WholeUserGaussianPair


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found
