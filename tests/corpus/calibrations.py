"""Every target, unknown and attacker through ``rt.calibrate``, and ``rt.calibrate_samplers``, ``rt.compare``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.kernel.errors import ReticentError
from reticent.mechanisms import MatrixMechanism
from tests.corpus.case import Case
from tests.corpus.project import projected

SIZES = {"batch_size": 100, "dataset_size": 10_000}
TARGETS = ("advantage=0.1", "bayes_security=0.9", "mu=0.5", "success=0.6@0.5", "tpr=0.05@0.01", "ppv=0.6@0.1,0.01",
           "epsilon=2@1e-5", "epsilon=8@1e-6", "secret=0.001@13.29,10", "recovered=0.3@0.1")  # fmt: skip


RELEASES: dict[str, Callable[[], rt.mechanisms.Mechanism]] = {
    "gaussian": lambda: rt.Gaussian(1.0, releases=10, dimension=50),
    "laplace": lambda: rt.Laplace(1.0, releases=3),
    "long": lambda: rt.DPSGD(1.0, 0.001, 20_000, num_parameters=1000),
    "whole batches": lambda: rt.DPSGD(1.0, 1.0, 100, num_parameters=1000),
    "randomised response": lambda: rt.RandomisedResponse(0.3, releases=2),
    "matrix": lambda: MatrixMechanism(1.0, 16),
    "selection": lambda: rt.Selection(rt.Gaussian(5.0), rt.Geometric(10.0)),
    "several": lambda: rt.Ledger([rt.Gaussian(2.0), rt.Laplace(8.0)]),
}


KINDS = ("laplace", "long", "matrix", "selection", "fixed-size", "shuffled", "random-allocation", "allocated-once")
OTHER_UNKNOWNS = {
    "gaussian": "steps",
    "selection": "mean_runs",
    "several": "noise_scale",
    "randomised response": "flip",
}
STATED: dict[str | None, Any] = {
    "relaxed": rt.Relaxed(dimension=1000),
    "relaxed, fixed": rt.Relaxed(dimension=1000, gradients=rt.Gradients.FIXED),
    "mixed": rt.Mixed(0.5, dimension=1000),
    "game": rt.MembershipGame(200.0),
    "final model": FinalModel(contraction=0.9),
    "attribute": rt.Attribute(0.5),
}


def _release(kind: str) -> rt.mechanisms.Mechanism:
    if kind in RELEASES:
        return RELEASES[kind]()
    return rt.dpsgd(noise_multiplier=1.0, epochs=3, num_parameters=1000, sampler=kind, **SIZES)


def _told(answer: Callable[[], Any]) -> Any:
    try:
        return projected(json.loads(answer().to_json()))
    except ReticentError as error:
        return {"refused": str(error)}


def _calibrated(kind: str, target: str, who: str | None = None, **options: Any) -> Case:
    name = f"{kind}; {target}; {who or 'default'}" + "".join(f"; {key}={value}" for key, value in options.items())
    return Case(name, lambda: _told(lambda: rt.calibrate(_release(kind), STATED.get(who, who), target, **options)))


def cases() -> Iterator[Case]:
    """Targets, attackers, unknowns, samplers, comparisons."""
    for target in TARGETS:
        yield _calibrated("poisson", target)
        yield _calibrated("gaussian", target)
    for kind in KINDS:
        yield _calibrated(kind, "advantage=0.1")
        yield _calibrated(kind, "epsilon=2@1e-5")
    for who in ("membership", "membership-game", "norm-only", *STATED):
        for target in ("advantage=0.1", "tpr=0.05@0.01"):
            yield _calibrated("whole batches" if who == "final model" else "poisson", target, who)
    for unknown in ("sample_rate", "steps", "batch_size"):
        yield _calibrated("poisson", "advantage=0.1", unknown=unknown)
        yield _calibrated("poisson", "epsilon=1@1e-5", unknown=unknown)
    for kind, unknown in OTHER_UNKNOWNS.items():
        yield _calibrated(kind, "advantage=0.6", unknown=unknown)
    yield _calibrated("laplace", "advantage=1e-30")
    for method in ("closed-form", "published", "clt"):
        yield _calibrated("poisson", "advantage=0.1", "membership", method=method)
    for relation in ("replace", "zero-out"):
        yield _calibrated("poisson", "advantage=0.1", neighbouring=relation)
    for kind in ("poisson", "gaussian"):
        yield Case(f"compare; {kind}", lambda k=kind: _told(lambda: rt.compare(_release(k), target="advantage=0.1")))
    for target in ("advantage=0.1", "epsilon=2@1e-5"):
        yield Case(f"samplers; {target}", lambda t=target: _told(
            lambda: rt.calibrate_samplers(t, dataset_size=6_000, epochs=5, batch_size=[64, 200])))  # fmt: skip
