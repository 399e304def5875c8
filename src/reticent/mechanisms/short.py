"""A mechanism in one line, for whoever reads."""

from __future__ import annotations

from dataclasses import fields

from reticent.mechanisms import Ledger, Mechanism, OneOf, Selection
from reticent.text import stated

_COUNTS = ("releases", "steps")
_NOT_TOLD = {"max_grad_norm", "num_parameters", "batch_size", "dataset_size", "sampler"}
"""What the numbers do not follow from, or what stands beside the sample rate."""


def in_short(mechanism: Mechanism) -> str:
    """What was released, in one line: at most three parts, and of each what was chosen."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    shown = [_one(part) for part in parts[:3]]
    return "; then ".join(shown + ([f"{len(parts) - 3} more"] if len(parts) > 3 else []))


def _one(part: Mechanism) -> str:
    if isinstance(part, Selection):
        law = part.runs.name.replace("-", " ")
        return f"the best of several runs ({law}, {part.runs.mean:g} on average) of {in_short(part.base)}"
    if isinstance(part, OneOf):
        return f"one of {len(part.settings)} settings, drawn by chance"
    chosen = stated(part).keys() - _NOT_TOLD
    told = [field.name for field in fields(part) if field.name in chosen or field.name in _COUNTS]  # type: ignore[arg-type]
    return f"{type(part).__name__}: {', '.join(_fact(name, part) for name in told)}"


def _fact(name: str, part: Mechanism) -> str:
    value = getattr(part, name)
    if name in _COUNTS:
        return f"{value} {name if value > 1 else name[:-1]}"
    if name == "unit":
        return "whole clients"
    words = f"{name.replace('_', ' ')} {format(value, 'g') if isinstance(value, float) else value}"
    return f"{words} ({getattr(part, 'sampler', 'poisson')})" if name == "sample_rate" else words
