"""Every target, unknown and attacker through ``rt.calibrate``, and ``rt.calibrate_samplers``, ``rt.compare``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import reticent as rt
from tests.corpus.case import Case
from tests.corpus.project import projected

SIZES = {"batch_size": 100, "dataset_size": 10_000}
TARGETS = ("advantage=0.1", "bayes_security=0.9", "mu=0.5", "success=0.6@0.5", "tpr=0.05@0.01", "ppv=0.6@0.1,0.01",
           "epsilon=2@1e-5", "epsilon=8@1e-6", "secret=0.001@13.29,10", "reconstruction=0.3@0.1")  # fmt: skip


def _release(kind: str) -> rt.mechanisms.Mechanism:
    match kind:
        case "gaussian":
            return rt.Gaussian(1.0, releases=10, dimension=50)
        case "laplace":
            return rt.Laplace(1.0, releases=3)
        case "long":
            return rt.DPSGD(1.0, 0.001, 20_000, num_parameters=1000)
    return rt.dpsgd(noise_multiplier=1.0, epochs=3, num_parameters=1000, sampler=kind, **SIZES)


def _told(answer: Callable[[], Any]) -> Any:
    try:
        return projected(json.loads(answer().to_json()))
    except rt.errors.ReticentError as error:
        return {"refused": str(error)}


def _calibrated(kind: str, target: str, who: Any = None, **options: Any) -> Case:
    named = who if isinstance(who, str) else type(who).__name__ if who is not None else "default"
    name = f"{kind}; {target}; {named}" + "".join(f"; {key}={value}" for key, value in options.items())
    return Case(name, lambda: _told(lambda: rt.calibrate(_release(kind), who, target, **options)))


def cases() -> Iterator[Case]:
    """Targets, attackers, unknowns, samplers, comparisons."""
    for target in TARGETS:
        yield _calibrated("poisson", target)
        yield _calibrated("gaussian", target)
    for kind in ("laplace", "long", "fixed-size", "shuffled", "random-allocation", "allocated-once"):
        yield _calibrated(kind, "advantage=0.1")
        yield _calibrated(kind, "epsilon=2@1e-5")
    for who in ("membership", "membership-game", "norm-only", rt.Relaxed(dimension=1000), rt.Mixed(0.5, dimension=1000),
                rt.Relaxed(dimension=1000, gradients=rt.Gradients.FIXED), rt.Attribute(0.5)):  # fmt: skip
        for target in ("advantage=0.1", "tpr=0.05@0.01"):
            yield _calibrated("poisson", target, who)
    for unknown in ("sample_rate", "steps", "batch_size"):
        yield _calibrated("poisson", "advantage=0.1", unknown=unknown)
        yield _calibrated("poisson", "epsilon=1@1e-5", unknown=unknown)
    for method in ("closed-form", "published", "clt"):
        yield _calibrated("poisson", "advantage=0.1", "membership", method=method)
    yield _calibrated("poisson", "advantage=0.1", neighbouring="replace")
    for kind in ("poisson", "gaussian"):
        yield Case(f"compare; {kind}", lambda k=kind: _told(lambda: rt.compare(_release(k), target="advantage=0.1")))
    for target in ("advantage=0.1", "epsilon=2@1e-5"):
        yield Case(f"samplers; {target}", lambda t=target: _told(
            lambda: rt.calibrate_samplers(t, dataset_size=6_000, epochs=5, batch_size=[64, 200])))  # fmt: skip
