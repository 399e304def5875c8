"""Processes of opake, as its accountants save them in JSON: objects with a ``type``, one inside the other.

Nothing of opake is imported. The form is that of opake-accounting 0.16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reticent.kernel import checks
from reticent.kernel.errors import ArtifactError, ReticentError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.samplers import SAMPLERS
from reticent.kernel.text import one_of, printable
from reticent.mechanisms import Guarantee

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
_MOST_RUNS = 1000


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
            yield from _parts(held["inner"], count * checks.count(count=held["count"]), depth + 1)
        case "CachedProcess":
            yield from _parts(held["inner"], count, depth + 1)
        case "Poisson" | "ParallelPoisson" | "KOutOfT" | "BallsInBins":
            yield from _drawn(kind, held, count, depth)
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


def _drawn(kind: str, held: Mapping[str, Any], count: int, depth: int) -> Iterator[DPSGD]:
    """Batches that a sampler draws: so many steps, or as often a run of its own."""
    noise, held = _inside(kind, held, depth)
    found = (fields for sampler in SAMPLERS.values() if (fields := sampler.of_process(held)) is not None)
    fields = next(found, None)
    if fields is None:
        raise UnsupportedError(f"{kind}: nothing is proven for such draws")
    runs = count if "steps" in fields else 1
    if runs > _MOST_RUNS:
        raise UnsupportedError(f"allocations that are repeated {count} times: at most {_MOST_RUNS} runs are read")
    for _ in range(runs):
        yield DPSGD(noise, **{"steps": count, **fields})


def _inside(kind: str, held: Mapping[str, Any], depth: int) -> tuple[float, Mapping[str, Any]]:
    """(noise, what is held) of the releases that share a sample, and of the draws around them."""
    inner, own = _read(held["inner"], depth + 1)
    if kind == "ParallelPoisson":
        if inner != "Poisson":
            raise UnsupportedError(f"ParallelPoisson of {inner}: only Poisson is read inside")
        return _inside(inner, {**held, **own}, depth + 1)
    if kind == "BallsInBins":
        strategy = own.get("strategy")
        if inner != "MfGaussian" or not isinstance(strategy, Mapping) or strategy.get("type") != "IdentityStrategy":
            raise UnsupportedError(f"BallsInBins: {_REASONS['MfGaussian']}")
    elif inner not in ("Gaussian", "NonPrivate"):
        raise UnsupportedError(f"{inner}: {_REASONS.get(inner, 'only Gaussian releases can share a sample')}")
    return checks.non_negative(noise_multiplier=own.get("noise_multiplier", 0.0)), held
