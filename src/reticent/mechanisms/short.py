"""A mechanism in one line, for whoever reads."""

from __future__ import annotations

from typing import Any

from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.registry import flat, told
from reticent.kernel.samplers import INDEPENDENT

_COUNTS = ("releases", "steps")
_NOT_TOLD = {"max_grad_norm", "num_parameters", "batch_size", "dataset_size", "sampler"}
"""What the numbers do not follow from, or what stands beside the sample rate."""


def in_short(mechanism: Mechanism) -> str:
    """What was released, in one line: at most three parts, and of each what was chosen."""
    parts = mechanism.parts
    shown = [_one(part) for part in parts[:3]]
    return "; then ".join(shown + ([f"{len(parts) - 3} more"] if len(parts) > 3 else []))


def _one(part: Mechanism) -> str:
    if part.runs is not None:
        law = part.runs.name.replace("-", " ")
        return f"the best of several runs ({law}, {part.runs.mean:g} on average) of {in_short(part.base)}"
    if len(part.settings) > 1:
        return f"one of {len(part.settings)} settings, drawn by chance"
    chosen = told(part).keys() - _NOT_TOLD | set(_COUNTS)
    facts = [_fact(name, value, part) for name, value in flat(part).items() if name in chosen]
    return f"{type(part).__name__}: {', '.join(facts)}"


def _fact(name: str, value: Any, part: Mechanism) -> str:
    if name in _COUNTS:
        return f"{value} {name if value > 1 else name[:-1]}"
    if name == "unit":
        return "whole clients"
    words = f"{name.replace('_', ' ')} {format(value, 'g') if isinstance(value, float) else value}"
    return f"{words} ({flat(part).get('sampler', INDEPENDENT.name)})" if name == "sample_rate" else words
