"""The same randomness twice, and other data: what changed that may not?

Everything that torch, numpy and Python draw is replayed from one seed, so a step of DP-SGD has the same batch and
the same noise again. What other data then change in a release is the difference of two clipped sums and nothing else:

* gradients that are longer but clip to the same change nothing, and neither do labels of records without a gradient;
* a record that falls silent moves its own coordinate, by at most one clip norm, and no other.

This sees every fault that is a function of the data at once: noise or clip norms that depend on a batch, gradients that
pass besides the clipped one, weights that move by something that was not released. Nothing is left to chance, so a
correct loop is never accused. A loop whose randomness cannot be replayed is not tested (dp-recorder, arXiv 2602.17454,
replays libraries in the same way).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from reticent.attacks.participation import Check
from reticent.attacks.white_box import Layers, Released, dirac_records, usable
from reticent.kernel.mechanisms import DPSGD

STEPS = 64
"""Steps of a replay, at most."""
CERTAIN = 1e-300
"""p-value of what a correct loop cannot do."""
_NORM = 3.0
_LOUD, _LOUD_AT_LEAST = 1000.0, 300.0
_TOLERANCE = 0.05
"""Of a clip norm, at noise multiplier 0; low precision rounds by more where there is more noise."""
_SAME_WEIGHTS = 0.01
_AMPLIFIED = 100.0
"""By which the weights may move more than the releases, in units of their own size."""
_SPOTS = 8
_LONGER = (("base", "longer"), ("up", "down"))
_SAME_LENGTH = "longer gradients that clip to the same length"
_SAME_COUNT = 0.01
_ALIKE = 1e-6
NAMES = (
    "replay: longer gradients",
    "replay: fewer records",
    "replay: few and short gradients",
    "replay: small gradients",
    "replay: other labels",
)
NEEDS: tuple[tuple[str, ...], ...] = (
    ("base", "again", "longer", "up", "down"),
    ("base", "again", "fewer"),
    ("base", "again", "short and long", "short"),
    ("base", "again", "small", "silent"),
    ("base", "again", "silent", "labelled"),
)
"""The runs that each of ``NAMES`` compares; the first two show whether randomness can be replayed at all."""


@contextmanager
def same_randomness(seed: int) -> Iterator[None]:
    """Let torch, numpy, Python and the operating system draw from ``seed``, and go on afterwards as before."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    source = random.Random(seed)  # noqa: S311
    urandom, inner = os.urandom, random._urandom  # type: ignore[attr-defined]
    try:
        os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        yield
    finally:
        os.urandom, random._urandom = urandom, inner  # type: ignore[attr-defined]
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


def replay_data(layers: Layers, claim: DPSGD, seed: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Features and labels of all replays, by name.

    In the base most records have a gradient above the clip norm: some have a coordinate of their own, two crowds share
    one each, and the rest has none. In "fewer" half of the first and one crowd fall silent: most of the records.
    """
    rng = np.random.default_rng([seed, 1])
    size, clip = claim.dataset_size or 1, claim.max_grad_norm
    plan = _Plan.of(layers, size)
    base = np.full(len(plan.places), _NORM * clip)
    loud = rng.permutation(np.geomspace(base[0], max(_LOUD * clip, _LOUD_AT_LEAST), len(base)))
    plain = torch.zeros(size, dtype=torch.int64)
    flipped = plain.clone()
    flipped[len(base) + torch.from_numpy(np.flatnonzero(rng.random(size - len(base)) < 0.5))] = 1
    small = np.full(size, 0.5 * clip / max(1.0, claim.sample_rate * size))
    nothing = dirac_records(layers, np.array([], dtype=int), np.array([]), size)
    # A seventh of the records is short; what is typical of lengths and losses changes with the others.
    few, crowd = np.arange(size) % 7 == 0, usable(layers)[[0, 1]]
    short = np.where(few, clip * np.geomspace(0.05, 0.5, size), 0.0)
    places = np.where(few, *crowd)

    def records(norms: np.ndarray, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return dirac_records(layers, plan.places, norms, size), labels

    longer = records(loud, flipped)
    longer[0][:, -1] = torch.from_numpy(rng.integers(0, 100, size))
    # Half of these pull one way and half the other: which half is longer decides which weights have the smaller loss.
    # All are long: what a small constant adds to a norm would show here, where the sums cancel.
    spots, pull = usable(layers)[np.arange(size) // 2 % _SPOTS], np.where(np.arange(size) % 2 == 0, 1.0, -1.0)
    up, down = (np.where(pull == side, _LOUD, 0.1 * _LOUD) * clip * pull for side in (1.0, -1.0))
    both = dirac_records(layers, places, np.where(few, short, base[0]), size)
    both[:, -1] = torch.from_numpy(np.where(few, 0.0, 99.0))

    return {
        "base": records(base, plain),
        "again": records(base, plain),
        "longer": longer,
        "up": (dirac_records(layers, spots, up, size), plain),
        "down": (dirac_records(layers, spots, down, size), plain),
        "fewer": records(base * ~plan.silenced, plain),
        "short and long": (both, plain),
        "short": (dirac_records(layers, places, short, size), plain),
        "small": (dirac_records(layers, np.zeros(size, dtype=int), small, size), plain),
        "silent": (nothing, plain),
        "labelled": (nothing, torch.ones(size, dtype=torch.int64)),
    }


@dataclass(frozen=True, slots=True)
class _Plan:
    """Coordinates of the records with a gradient, which of them fall silent, and how many have one of their own."""

    places: np.ndarray
    silenced: np.ndarray
    single: int

    @classmethod
    def of(cls, layers: Layers, size: int) -> _Plan:
        """Coordinates of one's own are spread over all layers; every other falls silent, the first and the last too."""
        first, kept, crowd, *others = usable(layers)
        alone = np.array([first, *others])
        single = min(len(alone), max(2, size // 4))
        alone = alone[np.linspace(0, len(alone) - 1, single).round().astype(int)]
        silenced = np.arange(single) % 2 == 0
        silenced[-1] = True
        stays, falls = size // 5, (2 * size) // 5
        places = np.concatenate([alone, np.full(stays, kept), np.full(falls, crowd)])[:size]
        silenced = np.concatenate([silenced, np.zeros(stays, bool), np.ones(falls, bool)])[:size]
        return cls(places, silenced, min(single, size))


def replay_check(number: int, runs: Mapping[str, Released], layers: Layers, claim: DPSGD) -> Check:
    """The test ``NAMES[number]``, of the runs on ``replay_data`` that it ``NEEDS``."""
    name, base = NAMES[number], runs["base"]
    if _drawn_anew(runs):
        return Check(name, 1.0, "not tested: the loop draws randomness that cannot be replayed")
    tolerance = _TOLERANCE * (1.0 + claim.noise_multiplier)
    size = claim.dataset_size or 1
    crowd = int(usable(layers)[1])
    match number:
        case 0:
            found = (_nothing_changed(name, runs[a], runs[b], tolerance, _SAME_LENGTH) for a, b in _LONGER)
            return min(found, key=lambda check: check.p_value)
        case 1:
            plan = _Plan.of(layers, size)
            fallen = Counter(plan.places[plan.silenced].tolist())
            return _own_coordinates(name, base, runs["fewer"], fallen, tolerance, "records that fall silent")
        case 2:
            what, long, short = "long gradients that fall silent", runs["short and long"], runs["short"]
            return _own_coordinates(name, long, short, {crowd: size}, tolerance, what)
        case 3:
            what = "gradients below the clip norm"
            return _own_coordinates(name, runs["small"], runs["silent"], {0: size}, tolerance, what)
    what = "labels of records without a gradient"
    return _nothing_changed(name, runs["silent"], runs["labelled"], tolerance, what)


def counted_by_replay(runs: Mapping[str, Released], layers: Layers, claim: DPSGD) -> float | None:
    """What one record adds to the release at its coordinate, in clip norms, by the runs of ``NEEDS[1]``.

    The median over the records that took part; None where nothing could be replayed or nobody took part.
    """
    base, plan = runs["base"], _Plan.of(layers, claim.dataset_size or 1)
    if _drawn_anew(runs):
        return None
    alone = (base.sums - runs["fewer"].sums)[:, plan.places[: plan.single][plan.silenced[: plan.single]]]
    took_part = alone[alone > 2.0 * _ALIKE * _scale(base) + 0.02]
    return float(np.median(took_part)) if took_part.size else None


def _drawn_anew(runs: Mapping[str, Released]) -> bool:
    """Whether the same data gave something else. Parallel sums may come out in another order, to the last bits."""
    base, again = runs["base"], runs["again"]
    other = np.abs(base.sums - again.sums).max() > _ALIKE * _scale(base)
    return bool(other) or _other_weights(base, again) > _ALIKE * 100


def _scale(base: Released) -> float:
    return max(1.0, float(np.abs(base.sums).max()))


def _nothing_changed(name: str, one: Released, other: Released, tolerance: float, what: str) -> Check:
    change = np.abs(one.sums - other.sums)
    # Gradients that are normalised with a small constant grow a little with their length, and so does a sum of many.
    beyond = change - _SAME_COUNT * np.abs(one.sums)
    step, place = np.unravel_index(int(beyond.argmax()), change.shape)
    if beyond[step, place] > tolerance:
        words = f"{what} change coordinate {place} of release {step} by {change[step, place]:.3g} clip norms"
        return Check(name, CERTAIN, words)
    moved = _other_weights(one, other)
    if moved > min(_SAME_WEIGHTS, 100.0 * _ALIKE + _AMPLIFIED * float(change.mean())):
        words = f"{what} change no release, and the weights at the end by {moved:.3g} of their size"
        return Check(name, CERTAIN, words)
    return Check(name, 1.0, f"{what} change nothing")


def _other_weights(one: Released, other: Released) -> float:
    size = max(float(np.abs(one.weights).max()), 1e-12)
    return float(np.abs(one.weights - other.weights).max()) / size


def _own_coordinates(
    name: str, one: Released, other: Released, most: Mapping[int, int], tolerance: float, what: str
) -> Check:
    """``one`` may have more than ``other``, at each of some coordinates at most so much."""
    change, own = one.sums - other.sums, np.array(sorted(most))
    others = np.abs(np.delete(change, own, axis=1))
    if others.size and others.max() > tolerance:
        first = int(others.max(axis=1).argmax())
        words = f"{what} change what is not theirs: release {first} by {others.max():.3g} clip norms"
        return Check(name, CERTAIN, words)
    mine = change[:, own]
    beyond = np.maximum(mine - [most[place] for place in own], -mine)
    step, place = np.unravel_index(int(beyond.argmax()), beyond.shape)
    if beyond[step, place] > tolerance:
        words = f"{what} change a release by {mine[step, place]:.3g} clip norms where {most[own[place]]} is the most"
        return Check(name, CERTAIN, words)
    return Check(name, 1.0, f"{what} change their own coordinates and no others")
