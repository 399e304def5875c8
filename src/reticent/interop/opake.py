"""Processes of opake, as its accountants save them in JSON: objects with a ``type``, one inside the other.

Nothing of opake is imported. The form is that of opake-accounting 0.16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reticent import _check
from reticent.errors import ArtifactError, ReticentError, UnsupportedError
from reticent.mechanisms import DPSGD, Gaussian, Guarantee, Mechanism
from reticent.mechanisms.ledger import together
from reticent.samplers import AllocatedOnce, Poisson, RandomAllocation, TruncatedPoisson
from reticent.text import one_of, printable

_FIELDS: dict[str, tuple[str, ...]] = {
    "Identity": (),
    "NonPrivate": (),
    "EpsDelta": ("epsilon", "delta"),
    "Gaussian": ("noise_multiplier",),
    "Composed": ("left", "right"),
    "Repeated": ("inner", "count"),
    "CachedProcess": ("inner",),
    "Poisson": ("inner", "sample_rate", "truncated_batch_size", "dataset_size"),
    "ParallelPoisson": ("inner", "num_workers"),
    "KOutOfT": ("inner", "k", "n_steps", "allocation"),
    "BallsInBins": ("inner", "num_bins", "n_steps"),
    "MfGaussian": ("noise_multiplier", "strategy", "n_steps", "min_sep", "max_participations"),
}
"""The processes that are read, with their fields."""
_REASONS = {
    "AdaClip": "the noisy count of clipped gradients is a release that is not read",
    "MfGaussian": "correlated noise is read only inside BallsInBins, where the strategy is IdentityStrategy",
    "CyclicPoisson": "no theorem here covers Poisson draws from groups that take turns",
    "BMinSep": "no theorem here covers draws with a least distance",
}
_DEEPEST = 200
_MOST_PARTS = 1000


def is_opake(document: Mapping[str, Any]) -> bool:
    """Whether the JSON is a process of opake, or an accountant that holds one."""
    process = document.get("process", document)
    return isinstance(process, Mapping) and isinstance(process.get("type"), str)


def mechanism_from_opake(document: Mapping[str, Any], where: str) -> Mechanism:
    """What the process releases; an accountant's budget says nothing about that.

    Raises:
        ArtifactError: it is malformed.
        UnsupportedError: nothing is proven for a process, or it releases nothing.
    """
    process = document.get("process", document)
    try:
        parts = tuple(_parts(process, 1, 0))
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error}") from None
    except ReticentError as error:
        raise ArtifactError(f"{where}: {error}") from None
    if not parts:
        raise UnsupportedError(f"{where}: the process releases nothing")
    return together(parts)


def _parts(process: Any, count: int, depth: int) -> Iterator[Mechanism]:
    """What ``process`` releases when it runs ``count`` times; the order does not matter."""
    kind, held = _read(process, depth)
    match kind:
        case "Identity":
            return
        case "NonPrivate":
            yield Gaussian(0.0, count)
        case "EpsDelta":
            yield Guarantee(held["epsilon"], held["delta"], count)
        case "Gaussian":
            yield Gaussian(held["noise_multiplier"], count)
        case "Composed":
            yield from _parts(held["left"], count, depth + 1)
            yield from _parts(held["right"], count, depth + 1)
        case "Repeated":
            yield from _parts(held["inner"], count * _check.count(count=held["count"]), depth + 1)
        case "CachedProcess":
            yield from _parts(held["inner"], count, depth + 1)
        case "Poisson":
            yield _poisson(held, count, depth)
        case "ParallelPoisson":
            inner, fields = _read(held["inner"], depth + 1)
            if inner != "Poisson":
                raise UnsupportedError(f"ParallelPoisson of {inner}: only Poisson is read inside")
            yield _poisson(fields, count, depth + 1, draws_per_step=_check.count(num_workers=held["num_workers"]))
        case "KOutOfT" | "BallsInBins":
            yield from _often(_blocks(held, depth) if kind == "KOutOfT" else [_bins(held, depth)], count)
        case _:
            raise UnsupportedError(f"{kind}: {_REASONS[kind]}")


def _read(process: Any, depth: int) -> tuple[str, dict[str, Any]]:
    """(type, fields) of one object."""
    if depth > _DEEPEST or not isinstance(process, Mapping):
        raise ArtifactError(f"a process of opake must be an object, nested at most {_DEEPEST} deep")
    kind = process.get("type")
    if kind in _REASONS and kind not in _FIELDS:
        raise UnsupportedError(f"{kind}: {_REASONS[kind]}")
    if kind not in _FIELDS:
        raise UnsupportedError(f"type must be {one_of(printable(str(kind), 60), _FIELDS)}")
    held = {name: value for name, value in process.items() if name != "type"}
    wrong = sorted(set(held) ^ set(_FIELDS[kind]))
    if wrong:
        problem = "has no field" if wrong[0] in held else "lacks the field"
        raise ArtifactError(f"{kind} {problem} {printable(wrong[0], 60)!r}")
    return kind, held


def _noise(process: Any, depth: int) -> float:
    kind, held = _read(process, depth + 1)
    if kind not in ("Gaussian", "NonPrivate"):
        raise UnsupportedError(f"{kind}: {_REASONS.get(kind, 'only Gaussian releases can share a sample')}")
    return _check.non_negative(noise_multiplier=held.get("noise_multiplier", 0.0))


def _poisson(held: Mapping[str, Any], count: int, depth: int, draws_per_step: int | None = None) -> DPSGD:
    noise, rate, cut = _noise(held["inner"], depth), held["sample_rate"], held["truncated_batch_size"]
    if cut is None:
        return DPSGD(noise, rate, count, sampler=Poisson(draws_per_step))
    if draws_per_step is not None:
        raise UnsupportedError("ParallelPoisson of batches that are cut: nothing is proven")
    return DPSGD(noise, rate, count, sampler=TruncatedPoisson(cut), dataset_size=held["dataset_size"])


def _blocks(held: Mapping[str, Any], depth: int) -> list[DPSGD]:
    """k of t steps: one in each of k blocks, or any k of them."""
    noise = _noise(held["inner"], depth)
    uses, steps = _check.count(k=held["k"]), _check.count(n_steps=held["n_steps"])
    if uses > steps or held["allocation"] not in ("block", "total"):
        raise ArtifactError("KOutOfT has at most as many uses as steps, and the allocation block or total")
    if held["allocation"] == "total":
        return [_allocated(noise, steps, RandomAllocation(steps, uses))]
    longer = steps % uses
    sizes = {steps // uses + 1: longer, steps // uses: uses - longer}
    return [_allocated(noise, size * blocks, RandomAllocation(size)) for size, blocks in sizes.items() if blocks]


def _bins(held: Mapping[str, Any], depth: int) -> DPSGD:
    """Bins that are drawn once and kept for all epochs."""
    kind, inner = _read(held["inner"], depth + 1)
    strategy = inner.get("strategy")
    if kind != "MfGaussian" or not isinstance(strategy, Mapping) or strategy.get("type") != "IdentityStrategy":
        raise UnsupportedError(f"BallsInBins: {_REASONS['MfGaussian']}")
    bins, steps = _check.count(num_bins=held["num_bins"]), _check.count(n_steps=held["n_steps"])
    return _allocated(inner["noise_multiplier"], steps, AllocatedOnce(bins))


def _allocated(noise: float, steps: int, sampler: AllocatedOnce | RandomAllocation) -> DPSGD:
    return DPSGD(noise, 1.0 / (sampler.batches_per_epoch or 1), steps, sampler=sampler)


def _often(parts: list[DPSGD], count: int) -> Iterator[DPSGD]:
    if count * len(parts) > _MOST_PARTS:
        raise UnsupportedError(f"allocations that are repeated {count} times: at most {_MOST_PARTS} runs are read")
    for _ in range(count):
        yield from parts
