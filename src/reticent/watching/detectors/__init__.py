"""What a watch looks for, one file each: a detector gets events of the loop and says what it found."""

from __future__ import annotations

from reticent.watching.detectors import alone, attribute, checkpoints, clipping, collating, divisor, draws, ghost

# isort: split
from reticent.watching.detectors import (
    layouts,
    model_form,
    moves,
    noise,
    parts,
    processes,
    record_gradients,
    seeds,
    start,
)

# isort: split
from reticent.watching.detectors import trained, weights
from reticent.watching.detectors.base import Detector

DETECTORS: tuple[type[Detector], ...] = (
    start.Start, clipping.Clipping, draws.Drawing, parts.Parts, divisor.Divisor, trained.Trained, seeds.NoiseSource,
    collating.Collating, attribute.SensitiveWatch, moves.Moves, moves.Beside, weights.Buffers, checkpoints.Checkpoints,
    layouts.MixingLayers, alone.AloneInFirstStep, record_gradients.RecordGradients, noise.NoisyGradients,
    noise.AddedNoise, ghost.GhostClipping, layouts.Layouts, model_form.FormWatch,
    processes.Processes,
)  # fmt: skip
"""All of them, in the order in which they look."""
