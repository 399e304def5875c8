"""The gradient likelihood ratio attack (GLiR): from models, or a saved trace, to membership scores.

Algorithm 1 of LEEMANN2023, corrected (LEEMANN2023:G14 to LEEMANN2023:G18): likelihood ratios instead of p-values,
the right null, the distance scaled by n, Cholesky solves, and noise, clipping and random batch sizes in the model
of the attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from reticent.adversaries.game import gmip
from reticent.attacks import glir_statistics as statistics
from reticent.attacks.covariance import Background
from reticent.attacks.gradients import GradientMap, Sketch
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.training.config import Clipping
from reticent.training.rundir import Run
from reticent.training.trace import Trace

_LARGEST_DIMENSION = 3000
_SKETCH = 1000
_BACKGROUND = 5000
"""Background records, at most."""
MOST_STEPS = 50
"""Recorded steps that are used, at most."""


class ReleasedStep(NamedTuple):
    """One step as the attacker sees it."""

    weights: torch.Tensor
    """Flat weights at which the gradients were computed."""
    total: np.ndarray
    """Released noisy sum of clipped gradients, flat, in the order of ``model.parameters()``."""


@dataclass(frozen=True)
class Records:
    """Features and labels of some records, on one device.

    Attributes:
        features: shape (records, ...).
        labels: class numbers, shape (records,).
    """

    features: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class GlirResult:
    """What the attack found; arrays with one entry per query.

    Attributes:
        log_ratio: log likelihood ratio summed over steps: the score; larger is more member-like.
        susceptibility: K at the first step.
        held_out: the same score of held-out non-members, or None where none were given.
        warnings: sentences on what the numbers cannot be trusted for.
    """

    log_ratio: np.ndarray
    susceptibility: np.ndarray
    held_out: np.ndarray | None
    warnings: tuple[str, ...] = field(default=())

    def p_values(self) -> np.ndarray:
        """p-values of the queries, by ranks among held-out non-members.

        Raises:
            UnsupportedError: there are none.
        """
        if self.held_out is None:
            raise UnsupportedError("this attack cannot give a p-value without held-out non-members")
        return statistics.held_out_p_values(self.log_ratio, self.held_out)


def glir_attack(
    steps: Iterable[ReleasedStep],
    gradients: GradientMap,
    queries: Records,
    background: Records,
    design: statistics.BatchDesign,
    held_out: Records | None = None,
    progress: Callable[[int], None] | None = None,
) -> GlirResult:
    """Score ``queries`` on every released step.

    Args:
        steps: weights and noisy sums, in the order of training.
        gradients: clipped gradients of the model, with its sketch if it has one.
        queries: records whose membership is in question.
        background: records drawn like the data, not members, for mean and covariance of the gradients.
        design: batch size, sampling and noise of every step; noise in the gradients' units.
        held_out: further non-members, drawn like the queries, that calibrate p-values.
        progress: called with the number of steps done.

    Not claimed: that scores are likelihood ratios where the central limit theorem fails, or where steps use the
    same data again; they remain scores, and ``held_out`` calibrates them in any case.

    Raises:
        ParameterError: no step, or shapes disagree.
    """
    everyone = queries if held_out is None else _joined(queries, held_out)
    scored: list[statistics.StepScores] = []
    normal: str | None = None
    shrunk = False
    for done, step in enumerate(steps, start=1):
        rows = gradients(step.weights, everyone.features, everyone.labels)
        known = gradients(step.weights, background.features, background.labels)
        total = step.total if gradients.sketch is None else gradients.sketch.apply(step.total)
        law = Background.estimated(known)
        keep = _coordinates(law, design)
        if keep is not None:
            rows, total = rows[:, keep], total[keep]
            # A sample covariance of some coordinates is a part of the whole one; shrinkage depends on all.
            law = Background.estimated(known[:, keep]) if law.shrunk else law.restricted(keep)
        scored.append(statistics.score_step(total, rows, law, design))
        shrunk |= law.shrunk
        normal = statistics.normality(law, rows, design.batch_size) if normal is None else normal
        if progress is not None:
            progress(done)
    if normal is None:
        raise ParameterError("steps", "none", "at least one released step")
    score, split = _sum_over_steps(scored, design), len(queries)
    more = score[split:]
    return GlirResult(
        log_ratio=score[:split],
        susceptibility=scored[0].susceptibility[:split],
        held_out=more if len(more) else None,
        warnings=_warnings(normal, shrunk, len(scored)),
    )


def _coordinates(law: Background, design: statistics.BatchDesign) -> np.ndarray | None:
    """Coordinates to keep, where some are redundant and no noise hides that; None for all."""
    if design.noise > 0.0 or len(law.rows) <= law.dimension + 3:
        return None
    keep = law.independent_coordinates()
    return keep if len(keep) < law.dimension else None


def _warnings(normal: str, shrunk: bool, steps: int) -> tuple[str, ...]:
    found = [normal] if normal else []
    if shrunk:
        found.append("Background records are few for the number of coordinates: the covariance is shrunk.")
    if steps > 1:
        found.append(
            "Steps over the same data depend on each other (LEEMANN2023:G1): their summed log ratio ranks records, "
            "it is no likelihood ratio of the run."
        )
    return tuple(found)


def _sum_over_steps(steps: list[statistics.StepScores], design: statistics.BatchDesign) -> np.ndarray:
    permuted = design.sampler.public_places and not design.sampler.in_order
    if not permuted or design.sample_rate == 1.0:
        return np.sum([step.log_ratio for step in steps], axis=0)
    per_epoch = max(1, round(1.0 / design.sample_rate))
    inside = np.array([step.log_ratio_in_batch for step in steps])
    epochs = [inside[i : i + per_epoch] for i in range(0, len(inside), per_epoch)]
    return np.sum([statistics.combine_shuffled(epoch, design.sample_rate) for epoch in epochs], axis=0)


def _joined(first: Records, second: Records) -> Records:
    return Records(torch.cat([first.features, second.features]), torch.cat([first.labels, second.labels]))


def glir_audit(
    run: Run,
    *,
    records: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Scores:
    """Attack a run that was recorded with ``reticent train --trace``.

    Members are drawn from the training records, non-members from the test records; the other test records are the
    background and, a fifth of them, held-out non-members for p-values. Members' gradients never enter the null.

    Args:
        run: the run; of its recorded steps at most ``MOST_STEPS`` are used, evenly spaced.
        records: members, and non-members, at most.
        seed: of the draw of records and of the sketch.
        progress: called with (steps done, steps that are used).
        announce: called with each warning.

    Returns:
        Scores of records of one trained model. Their ``meta`` has ``smallest_p_value``, below which ranks among the
        held-out records cannot reject, numbers of steps, records and coordinates, ``sketched``, and mu of one step by
        the harmonic rule at K = d.

    Raises:
        ArtifactError: the run has no trace, or is corrupt.
        ParameterError: ``records`` is below 10.
        UnsupportedError: the data set has fewer than 40 test records, or the run was augmented or normalised
            gradients.
    """
    trace, mechanism = run.trace(), run.ledger.equal_steps()
    if trace is None:
        raise ArtifactError(f"{run.path}: has no trace; train with --trace")
    if run.config.augmentation is not None:
        raise UnsupportedError(
            "glir computes the gradient of a record, not of its augmented views, which this run used"
        )
    if run.config.clipping is not Clipping.FLAT:
        raise UnsupportedError("glir clips the gradient of a record; this run normalised it")
    rng = np.random.default_rng(seed)
    parts = _split(run, records, rng)
    gradients = _gradient_map(run, mechanism, rng)
    used = min(len(trace), MOST_STEPS)
    steps = _chosen_steps(trace, float(run.ledger.divisor or 0.0), used)
    design = statistics.BatchDesign(
        batch_size=_expected_batch(mechanism),
        sample_rate=mechanism.sample_rate,
        noise=mechanism.noise_multiplier * mechanism.max_grad_norm,
        sampler=mechanism.sampler,
    )
    queries = _joined(parts["member"], parts["non_member"])
    tell, say = progress or (lambda done, used: None), announce or (lambda line: None)
    known, held_out = parts["background"], parts["held_out"]
    result = glir_attack(steps, gradients, queries, known, design, held_out, lambda done: tell(done, used))
    for warning in result.warnings:
        say(warning)
    split = len(parts["member"])
    meta: dict[str, MetaValue] = {
        "attack": "glir",
        "steps": used,
        "recorded_steps": len(trace),
        "background": len(known),
        "held_out": len(held_out),
        "smallest_p_value": 1.0 / (1.0 + len(held_out)),
        "dimension": mechanism.num_parameters or gradients.num_parameters,
        "sketched": gradients.sketch is not None,
        "mu_step": gmip.harmonic_mu(design.batch_size, gradients.num_parameters, mechanism.noise_multiplier),
    }
    return Scores(result.log_ratio[:split], result.log_ratio[split:], meta, Design.POPULATION)


def _split(run: Run, records: int, rng: np.random.Generator) -> dict[str, Records]:
    dataset = run.dataset()
    test, train = rng.permutation(dataset.test), rng.permutation(dataset.train)
    outside = min(records, len(test) // 4)
    if records < 10:
        raise ParameterError("records", records, "at least 10")
    if outside < 10:
        raise UnsupportedError(
            f"glir needs at least 40 test records, for non-members and background; here are {len(test)}"
        )
    chosen = {
        "member": train[:records],
        "non_member": test[:outside],
        "held_out": test[outside : 2 * outside],
        "background": test[2 * outside :][:_BACKGROUND],
    }
    return {
        name: Records(torch.from_numpy(dataset.features[rows]), torch.from_numpy(dataset.labels[rows]))
        for name, rows in chosen.items()
    }


def _gradient_map(run: Run, mechanism: DPSGD, rng: np.random.Generator) -> GradientMap:
    model = run.model().train()
    size = sum(p.numel() for p in model.parameters() if p.requires_grad)
    sketch = Sketch.draw(size, _SKETCH, rng) if size > _LARGEST_DIMENSION else None
    return GradientMap(model, mechanism.max_grad_norm, sketch=sketch)


def _expected_batch(mechanism: DPSGD) -> float:
    if mechanism.sampler.independent and mechanism.dataset_size is not None:
        return mechanism.sample_rate * mechanism.dataset_size
    if mechanism.batch_size is None:
        raise ArtifactError("the ledger does not say how large the batches were")
    return float(mechanism.batch_size)


def _chosen_steps(trace: Trace, divisor: float, used: int) -> Iterator[ReleasedStep]:
    """``used`` recorded steps, evenly spaced, shard by shard."""
    wanted = set(np.unique(np.linspace(0, len(trace) - 1, used).round().astype(int)))
    steps = (step for shard in trace for step in zip(shard.weights, shard.gradients, strict=True))
    for position, (weights, gradient) in enumerate(steps):
        if position in wanted:
            yield ReleasedStep(weights, gradient.double().numpy() * divisor)
