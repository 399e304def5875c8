"""What opake's accountants save. The first document was written by opake-accounting and opake-dpsgd 0.16.1."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from reticent.interop.documents import read_release
from reticent.interop.opake import is_opake, mechanism_from_opake
from reticent.kernel.errors import ArtifactError, ReticentError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import Poisson
from reticent.mechanisms import Guarantee
from reticent.samplers import AllocatedOnce, BlockAllocation, RandomAllocation, TruncatedPoisson

EACH: dict[str, Any] = {"type": "Gaussian", "noise_multiplier": 1.1}
POISSON: dict[str, Any] = {
    "type": "Poisson",
    "inner": EACH,
    "sample_rate": 0.01,
    "truncated_batch_size": None,
    "dataset_size": None,
}
PARTS: list[dict[str, Any]] = [
    {"type": "EpsDelta", "epsilon": 1.0, "delta": 1e-06},
    {"type": "Repeated", "inner": {"type": "EpsDelta", "epsilon": 0.5, "delta": 0.0}, "count": 3},
    {"type": "Repeated", "inner": POISSON, "count": 100},
    {"type": "Repeated", "inner": {"type": "ParallelPoisson", "inner": POISSON, "num_workers": 4}, "count": 10},
    {**POISSON, "sample_rate": 0.5, "truncated_batch_size": 3, "dataset_size": 4},
]
SAVED = {"process": reduce(lambda left, right: {"type": "Composed", "left": left, "right": right}, PARTS)}
GAUSSIAN: dict[str, Any] = {"type": "Gaussian", "noise_multiplier": 1.5}


def kept(strategy: str = "IdentityStrategy", **more: Any) -> dict[str, Any]:
    inner = {
        "type": "MfGaussian",
        "noise_multiplier": 1.5,
        "strategy": {"type": strategy},
        "n_steps": None,
        "min_sep": 1,
        "max_participations": None,
    }
    return {"type": "BallsInBins", "inner": inner, "num_bins": 10, "n_steps": 30, **more}


def blocks(**more: Any) -> dict[str, Any]:
    return {"type": "KOutOfT", "inner": GAUSSIAN, "k": 3, "n_steps": 10, "allocation": "block", **more}


def parallel(**more: Any) -> dict[str, Any]:
    return {"type": "ParallelPoisson", "inner": {**POISSON, **more}, "num_workers": 2}


def allocated(bins: int, steps: int, uses: int | None = None) -> DPSGD:
    return DPSGD(1.5, 1 / bins, steps, sampler=RandomAllocation(bins, uses))


def test_an_accountant() -> None:
    assert is_opake(SAVED)
    assert mechanism_from_opake(SAVED, "a.json") == Ledger(
        (
            Guarantee(1.0, 1e-6),
            Guarantee(0.5, 0.0, 3),
            DPSGD(1.1, 0.01, 100),
            DPSGD(1.1, 0.01, 10, sampler=Poisson(4)),
            DPSGD(1.1, 0.5, 1, dataset_size=4, sampler=TruncatedPoisson(3)),
        )
    )


@pytest.mark.parametrize(
    ("process", "mechanism"),
    [
        (GAUSSIAN, Gaussian(1.5)),
        ({"type": "NonPrivate"}, Gaussian(0.0)),
        ({"type": "CachedProcess", "inner": {"type": "Repeated", "inner": GAUSSIAN, "count": 7}}, Gaussian(1.5, 7)),
        ({"type": "Composed", "left": {"type": "Identity"}, "right": GAUSSIAN}, Gaussian(1.5)),
        (blocks(), DPSGD(1.5, 0.1, 10, sampler=BlockAllocation(10, uses_per_epoch=3))),
        (blocks(allocation="total"), allocated(10, 10, 3)),
        (kept(), DPSGD(1.5, 0.1, 30, sampler=AllocatedOnce(10))),
    ],
)
def test_each_process(process: dict[str, Any], mechanism: object) -> None:
    assert mechanism_from_opake(process, "p.json") == mechanism


def test_blocks_are_runs_over_the_steps_of_each_length() -> None:
    """As they were read before they had a sampler: one block of four steps, two of three."""
    parts = mechanism_from_opake(blocks(), "p.json").parts_under(Neighbouring.ADD_REMOVE)
    alone = Ledger((allocated(4, 4), allocated(3, 6))).parts_under(Neighbouring.ADD_REMOVE)
    assert [(one.pair, one.count) for one in parts] == [(one.pair, one.count) for one in alone]


@pytest.mark.parametrize(
    ("process", "kind", "said"),
    [
        ({"type": "Identity"}, UnsupportedError, "releases nothing"),
        ({"type": "AdaClip", "inner": GAUSSIAN}, UnsupportedError, "AdaClip: the noisy count"),
        ({"type": "CyclicPoisson"}, UnsupportedError, "take turns"),
        ({"type": "BMinSep"}, UnsupportedError, "least distance"),
        (kept("BltStrategy"), UnsupportedError, "IdentityStrategy"),
        (kept()["inner"], UnsupportedError, "correlated noise"),
        ({"type": "Laplace", "scale": 1.0}, UnsupportedError, "type must be"),
        ({"type": "Repeated", "inner": blocks(), "count": 10**6}, UnsupportedError, "1000 runs"),
        ({"type": "ParallelPoisson", "inner": GAUSSIAN, "num_workers": 2}, UnsupportedError, "only Poisson"),
        ({"type": "Gaussian"}, ArtifactError, "lacks the field 'noise_multiplier'"),
        ({**GAUSSIAN, "clip": 1.0}, ArtifactError, "has no field 'clip'"),
        ({"type": "Gaussian", "noise_multiplier": -1.0}, ArtifactError, "noise_multiplier must be"),
        ({"type": "Gaussian", "noise_multiplier": "1"}, ArtifactError, "noise_multiplier must be"),
        ({"type": "Repeated", "inner": GAUSSIAN, "count": 0}, ArtifactError, "count must be"),
        ({"type": "CachedProcess", "inner": [1]}, ArtifactError, "must be an object"),
        (parallel(truncated_batch_size=3, dataset_size=4), UnsupportedError, "ParallelPoisson: nothing is proven"),
        ({**parallel(), "num_workers": 0}, ArtifactError, "num_workers must be"),
        (kept(num_bins=0), ArtifactError, "num_bins must be"),
        (blocks(k=11), ArtifactError, "uses_per_epoch must be at most the steps"),
        (blocks(allocation="any"), UnsupportedError, "KOutOfT: nothing is proven"),
    ],
)
def test_what_is_not_read_is_refused_by_name(process: Any, kind: type[ReticentError], said: str) -> None:
    with pytest.raises(kind, match=said) as raised:
        mechanism_from_opake(process, "p.json")
    assert str(raised.value).startswith("p.json: ")


def test_too_deep() -> None:
    process = GAUSSIAN
    for _ in range(300):
        process = {"type": "CachedProcess", "inner": process}
    with pytest.raises(ArtifactError, match="nested"):
        mechanism_from_opake(process, "p.json")


def test_a_file_is_read_by_every_door(tmp_path: Path) -> None:
    path = tmp_path / "accountant.json"
    path.write_text(json.dumps({"process": kept(), "budget": {"epsilon": 1}}))
    assert read_release(path) == DPSGD(1.5, 0.1, 30, sampler=AllocatedOnce(10))
    pytest.importorskip("dash")
    from reticent.dashboard.requests import release_in

    assert release_in(kept(), "accountant.json") == DPSGD(1.5, 0.1, 30, sampler=AllocatedOnce(10))
