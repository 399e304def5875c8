"""Each mechanism, sampler, relation, attacker with its parameters, and method, through ``rt.assess``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from reticent.adversaries import FinalModel, NormOnly
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.kernel.errors import ReticentError
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from tests.corpus.case import Case
from tests.corpus.project import projected

MECHANISMS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("mechanisms.json").read_text())

PUT = {  # attackers whose parameters are stated
    "relaxed, d = 1": lambda: rt.Relaxed(dimension=1),
    "relaxed, d = 2": lambda: rt.Relaxed(dimension=2),
    "relaxed, d = 1000": lambda: rt.Relaxed(dimension=1000),
    "relaxed, fixed": lambda: rt.Relaxed(dimension=1000, gradients=rt.Gradients.FIXED),
    "relaxed, one direction": lambda: rt.Relaxed(dimension=50, gradients=rt.Gradients.ONE_DIRECTION),
    "relaxed, linear head": lambda: rt.Relaxed(dimension=50, gradients=rt.Gradients.LINEAR_HEAD),
    "relaxed, a known share": lambda: rt.Relaxed(dimension=50, gradients=rt.Gradients.LINEAR_HEAD, known_share=0.1),
    "relaxed, any gradients": lambda: rt.Relaxed(dimension=50, gradients=rt.Gradients.ANY),
    "relaxed, a measured law": lambda: rt.Relaxed(
        directions=DirectionLaw(np.full((8, 8), 0.2) + 0.8 * np.eye(8), public=True)
    ),
    "mixed": lambda: rt.Mixed(0.3, dimension=50),
    "mixed, a known share": lambda: rt.Mixed(0.3, dimension=50, gradients=rt.Gradients.LINEAR_HEAD, known_share=0.1),
    "mixed, fixed": lambda: rt.Mixed(0.7, dimension=50, gradients=rt.Gradients.FIXED),
    "game": lambda: rt.MembershipGame(),
    "game, K = 200": lambda: rt.MembershipGame(200.0),
    "game, a measured law": lambda: rt.MembershipGame(SusceptibilityLaw(np.array([100.0, 2e3]), np.array([0.7, 0.3]))),
    "game, a measured spectrum": lambda: rt.MembershipGame(GradientSpectrum(np.geomspace(1e-6, 0.3, 30))),
    "norm only": lambda: NormOnly(dimension=50),
    "final model": lambda: FinalModel(contraction=0.9),
    "final model, convex": lambda: FinalModel(step_size=0.1, smoothness=1.0),
    "final model, strongly convex": lambda: FinalModel(step_size=0.1, strong_convexity=0.5, smoothness=1.0),
    "attribute, .3": lambda: rt.Attribute(0.3),
    "attribute, 2": lambda: rt.Attribute(2.0),
    "attribute, measured": lambda: rt.Attribute(
        SensitivityRecord(500, Scope.WHOLE_DATA, 0.5, 1e-3, 1e-3, None, 1.1, budget=0.9)
    ),
}
SOME = ("gaussian", "gaussian in 30 dimensions", "poisson", "poisson with parameters", "poisson, little noise",
        "poisson, every record", "shuffled", "cyclic", "random allocation", "ledger of two", "fixed size")  # fmt: skip
NAMED = ("relaxed", "mixed", "membership", "final-model")
METHODS = ("closed-form", "clt", "proven", "published")
QUESTIONS = {
    "fpr": (1e-6, 1e-3, 0.1),
    "delta": (1e-12, 1e-5),
    "prior": (0.01, 0.5),
    "secret_bits": (13.29,),
    "guesses": (1, 10),
}


def _asked(mechanism: dict[str, Any], who: Any, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.json"
        path.write_text(json.dumps(mechanism))
        try:
            found = rt.assess(path, who, **QUESTIONS, **options)
            told = projected(json.loads(found.to_json()))
            return told | {"conditions": sorted(told["conditions"])}  # their sentences are a case of the surface
        except ReticentError as error:
            return {"refused": str(error).replace(folder, "FOLDER")}


def cases() -> Iterator[Case]:
    """Each mechanism under all attackers, then stated attackers, relations and methods on some."""
    for name, mechanism in MECHANISMS.items():
        yield Case(f"{name}; all", lambda m=mechanism: _asked(m, "all"))
        for relation in ("replace", "zero-out"):
            yield Case(
                f"{name}; worst-case, {relation}",
                lambda m=mechanism, r=relation: _asked(m, "worst-case", neighbouring=r),
            )
    for name in SOME:
        for who, made in PUT.items():
            yield Case(f"{name}; {who}", lambda m=MECHANISMS[name], w=made: _asked(m, w()))
        for named in NAMED:
            yield Case(
                f"{name}; {named}, replace",
                lambda m=MECHANISMS[name], w=named: _asked(m, w, neighbouring="replace"),
            )
        for method in METHODS:
            yield Case(f"{name}; all, {method}", lambda m=MECHANISMS[name], k=method: _asked(m, "all", method=k))
