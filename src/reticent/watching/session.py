"""``watch``: look over the shoulder of a training loop and write down what it really did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from pydantic import ValidationError
from torch.optim.optimizer import register_optimizer_step_pre_hook

from reticent import _check
from reticent.adversaries.attribute import SensitivityRecord
from reticent.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.io import files
from reticent.mechanisms import Mechanism
from reticent.mechanisms.units import Unit
from reticent.records.rules import word
from reticent.records.watch_faults import Fault
from reticent.records.watched_run import (
    Drawn,
    MeasuredChange,
    PublicWatchedRun,
    Randomness,
    SamplerRecord,
    Source,
    Tally,
    WatchDiagnostics,
    WatchedRun,
)
from reticent.signing.envelope import LEDGER
from reticent.signing.provenance import sealed, signature_of
from reticent.text import Brief
from reticent.watching import declared, models, optimisers, seeds
from reticent.watching.alone import AloneInFirstStep
from reticent.watching.draws import Draws
from reticent.watching.layouts import look_at_layouts
from reticent.watching.live import BudgetSpent, Live, LiveRisk, Log
from reticent.watching.model_form import FormWatch
from reticent.watching.moves import Moves
from reticent.watching.samplers import look_at, observed_sampler
from reticent.watching.sensitive import SensitiveWatch
from reticent.watching.starts import Start
from reticent.watching.steps import SeenStep, Steps
from reticent.watching.units import unit_of
from reticent.watching.weights import Buffers

_MEASURE_EVERY = 64
"""Norms of single records are computed once in so many steps: they cost a pass over all their gradients."""

_NOISE_FIRST = 8
"""Steps at the start in which the length of the noise is measured; afterwards with the norms."""


class Watch(Brief):
    """A training loop under observation; as a context manager it gives itself.

    Nothing is drawn, changed or delayed that the loop depends on: the trained weights are bit-identical with and
    without. After the block ``ledger`` holds what was seen.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        loader: Any = None,
        *,
        clipping: str | None = None,
        sampler: str | None = None,
        sensitive: Any = None,
        records_per_user: int | None = None,
        start: str | None = None,
        continues: Any = None,
        draws_ahead: bool = False,
        trainer_step: int = 0,
        planned_steps: int | None = None,
        stop_at: str | None = None,
        log: Log | Sequence[Log] | None = None,
        log_every: int = 50,
        unit: str = Unit.RECORD,
        sign: Any = None,
    ) -> None:
        """Prepare; nothing is observed before ``with``.

        Args:
            model: the module, bare or wrapped by Opacus.
            optimizer: what moves its weights: Opacus's, or any of torch; None for a loop without one.
            loader: the loader that the loop reads. Its sampler is looked at.
            clipping: how the loop clips (``"flat"``, ``"per-layer"``, ``"adaptive"``, ``"automatic"``), where that
                cannot be seen; it is recorded as declared.
            sampler: ``"poisson"``, ``"fixed-size"`` or ``"shuffled"``, where it cannot be seen; recorded as declared.
            sensitive: an attribute whose effect on the clipped gradients is recorded, privately: a
                ``SensitiveAttribute``, or ``reticent.watching.sensitive.Sensitive`` with a loss of its own.
            records_per_user: the most records that one person contributed: the numbers then cover all of them
                together. Nobody can see it in a loop, so None states nothing, and they speak about one record.
            start: ``"declared"`` states that the weights at the start do not depend on these records, whatever was
                trained before.
            continues: the ledger of the loop that ended at these weights, where another process kept it: a watch, a
                ledger or its file. In one process a second watch of a model continues the first by itself.
            draws_ahead: the loop asks the loader for a batch before it has used the one before, as Lightning does.
            trainer_step: steps that a trainer took before, as it says.
            planned_steps: noisy steps there are to be at most. A loop that stops earlier, for whatever reason, counts
                as if it had taken them all.
            stop_at: a risk such as ``"advantage=0.1"``: the loop stops before the step that would exceed it.
                ``should_stop`` says when; a loop that goes on leaves the block at its next step.
            log: called with a ``LiveRisk`` once in ``log_every`` steps; see ``reticent.watching.loggers``.
            log_every: see ``log``.
            unit: ``"record"``, or ``"client"`` for the server of federated learning, which calls ``step`` once per
                round: then clients are drawn and clipped, and the numbers are about whole clients.
            sign: an Ed25519 private key that signs the ledger when the loop ends; ``save`` writes the signature too.

        Raises:
            ParameterError: what is declared contradicts what is seen, or is not known; the optimizer is not one of
                this model, or not its private one.
            UnsupportedError: ``sensitive`` for a loop whose labels or gradients cannot be seen.
        """
        self._model, self._optimizer = model, declared.innermost(optimizer)
        declared.check_together(model, self._optimizer)
        self._private = optimisers.is_private(self._optimizer)
        self._loader, self._ahead, self._key = loader, draws_ahead, sign
        self._clipping = declared.clipping(clipping, self._optimizer if self._private else None)
        self._sampler = look_at(loader)
        self._said = declared.sampler(sampler, self._sampler)
        self._records = None if records_per_user is None else _check.count(records_per_user=records_per_user)
        self._begin = (start, continues, trainer_step)
        self._start: Start | None = None
        self._steps, self._faults = Steps(), set[Fault]()
        self._pieces: list[tuple[int | None, int, int | None, float]] = []
        self._undo: list[Callable[[], None]] = []
        self._moves = Moves(self._optimizer, self._faults.add)
        self._measures = False
        self._draws: Draws | None = None
        self._seconds = 0.0
        self._unit = unit_of(unit, private=self._private, records_per_user=records_per_user)
        self._live = Live(self._so_far, planned_steps, stop_at, log, log_every)
        self._ledger: WatchedRun | None = None
        self._left: str | None = None
        self._signature: bytes | None = None
        self._form = FormWatch(model, self._optimizer, loader) if self._private else None
        self._sensitive: SensitiveWatch | None = None
        if sensitive is not None:
            self._sensitive = SensitiveWatch(sensitive, model, self._optimizer, loader)

    def __enter__(self) -> Watch:
        if self._undo:
            raise ParameterError("watch", "entered twice", "left before it is entered again")
        self._started = time.perf_counter()
        if self._start is None:
            self._begin_first()
        else:
            self._begin_again()
        if self._private and not self._pieces and optimisers.is_pending(self._optimizer):
            self._faults.add(Fault.STEPS_BEFORE)
        before = 0 if self._draws is None else self._draws.passes
        drawn = self._on_draw if self._sampler.drawn is Drawn.POISSON else None
        sampler = observed_sampler(self._loader)
        self._draws = Draws(self._loader, sampler, ahead=self._ahead, passes=before, drawn=drawn)
        self._undo.append(self._draws.close)
        if self._sensitive is not None:
            self._undo += self._sensitive.attach(self._draws)
        self._undo += [register_optimizer_step_pre_hook(self._ask).remove, *self._moves.attach(self._model)]
        for generators in (self._noise_seeds, self._draw_seeds):
            generators.arrive()
            self._undo.append(generators.watch_torch())
        self._undo.append(AloneInFirstStep(models.bare(self._model), self._faults.add).attach())
        if self._form is not None:
            self._undo += self._form.attach()
        if self._private:
            self._watch_optimizer()
        return self

    def _begin_first(self) -> None:
        self._start = Start(self._model, self._optimizer, *self._begin)
        if self._start.unseen:
            self._faults.add(Fault.STEPS_BEFORE)
        self._buffers = Buffers(self._model)
        self._mixing = models.mixing_layers(self._model)
        device = models.trained(self._model)[:1]
        default = [seeds.default(p.device) for p in device] or [torch.default_generator]
        self._noise_seeds = seeds.Seeds(seeds.of_noise(self._optimizer) if self._private else default)
        self._draw_seeds = seeds.Seeds(seeds.of_draws(self._loader), use="draws")

    def _begin_again(self) -> None:
        """Once more, as for the next pass over the data: numbers go on where they were."""
        if self._left != models.fingerprint(self._model):
            self._faults.add(Fault.WEIGHTS_CHANGED)
        self._noise_seeds.go_on()
        self._draw_seeds.go_on()

    def _watch_optimizer(self) -> None:
        ghost, noisy = optimisers.is_ghost(self._optimizer), self._moves.noisy
        self._around("accumulate" if ghost else "clip_and_accumulate", before=self._on_clip)
        self._around("add_noise", before=self._on_noise, after=self._after_noise)
        if noisy is not None:
            self._around("scale_grad", after=lambda: noisy.keep(values=self._measures))
        for handle in look_at_layouts(self._model, ghost=ghost, found=self._faults.add):
            self._undo.append(handle.remove)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        while self._undo:
            self._undo.pop()()
        self._seconds += time.perf_counter() - self._started
        stopped = kind is BudgetSpent
        kind = None if stopped else kind
        self._left = models.fingerprint(self._model) if kind is None or self._moves.settled() else None
        if len(self._steps):
            run = self._written(ended=kind is None)
            self._ledger = run if self._start is None else self._start.close(run)
            if self._key is not None:
                self._signature = sealed(self._ledger.to_json().encode(), LEDGER, self._key)
        elif kind is None:
            hint = "at least one: step the private optimizer, or call ledger.step(noise_multiplier=...) after each step"
            raise ParameterError("noisy steps", 0, hint)
        self._live.tell()
        return stopped

    def step(
        self,
        *,
        noise_multiplier: float,
        sample_rate: float | None = None,
        max_grad_norm: float | None = None,
        batch_size: int | None = None,
        divisor: float | None = None,
        clipped: int | None = None,
    ) -> None:
        """Record one noisy update of a loop that is not Opacus's; call it once after each step of the optimizer.

        Args:
            noise_multiplier: noise standard deviation over ``max_grad_norm``, on the sum, >= 0.
            sample_rate: probability of one record in this batch; it counts only with Poisson sampling that was seen,
                where it must agree, or declared to ``watch``.
            max_grad_norm: norm (L2, all parameters) to which each record's gradient was brought.
            batch_size: records that were really in the batch.
            divisor: what the noisy sum was divided by.
            clipped: how many records were clipped.

        Raises:
            ParameterError: Opacus's optimizer is watched already, or a number is out of range or contradicts the
                sampler.
        """
        if self._private:
            raise ParameterError("step", "called", "left out: Opacus's optimizer is watched and counts by itself")
        noise = _check.non_negative(noise_multiplier=noise_multiplier)
        rate = None if sample_rate is None else _check.rate(sample_rate=sample_rate)
        size = None if batch_size is None else batch_size and _check.count(batch_size=batch_size)
        norm = None if max_grad_norm is None else _check.positive(max_grad_norm=max_grad_norm)
        part = None if divisor is None else _check.positive(divisor=divisor)
        draws = self._open_draws()
        skipped = draws.skipped
        used = draws.take(size)
        if self._optimizer is None:
            self._moves.update_by_hand(draws.skipped > skipped)
        if self._noise_seeds.public():
            self._faults.add(Fault.PUBLIC_SEED)
        self._add(SeenStep(noise, norm, part, self._rate(rate), size, clipped, 1, used))
        if self._optimizer is None:
            self._live.before_step()  # nobody can be asked before the next one

    @property
    def ledger(self) -> WatchedRun:
        """What was seen.

        Raises:
            ParameterError: the block has not ended, or no noisy step was seen in it.
        """
        if self._ledger is None:
            raise ParameterError("ledger", None, "read after the with block, in which at least one noisy step is taken")
        return self._ledger

    def risk(self) -> LiveRisk:
        """What an attacker can have learnt from the steps so far, in milliseconds; it prints as one line.

        Raises:
            ParameterError: there was no noisy step yet.
        """
        return self._live.risk()

    def __len__(self) -> int:
        """Noisy steps so far."""
        return len(self._steps)

    def __bool__(self) -> bool:
        return True  # also before the first step

    @property
    def should_stop(self) -> bool:
        """Whether a further step would exceed ``stop_at``."""
        return self._live.should_stop

    def mechanism(self) -> Mechanism:
        """The safe reading of what was seen: see ``WatchedRun.mechanism``."""
        return self.ledger.mechanism()

    @property
    def sensitivity(self) -> SensitivityRecord:
        """What was recorded about the attribute; private.

        Raises:
            ParameterError: ``sensitive`` was not asked for.
            UnsupportedError: the loop could not be measured; the text says why.
        """
        if self._sensitive is None:
            raise ParameterError("sensitive", None, "given to watch")
        return self._sensitive.record()

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the ledger as JSON; it is not for publication, as it holds diagnostics of the training records.

        With ``sign`` its signature lies beside it, in ``NAME.dsse.json``.

        Raises:
            ArtifactError: something lies there, and ``overwrite`` is not said; or it cannot be written.
        """
        path, text = Path(path), self.ledger.to_json().encode()
        if path.exists() and not overwrite:
            raise ArtifactError(f"{path} already exists; choose another name, or say overwrite=True")
        with files.writing(path):
            files.write_atomic(path, text, private=True)
            if self._signature is not None:
                files.write_atomic(signature_of(path), self._signature)

    def to_json(self) -> str:
        """The ledger as strict JSON text; see ``save``.

        Raises:
            ParameterError: the block has not ended, or no noisy step was seen in it.
        """
        return self.ledger.to_json()

    def _lines(self) -> list[str]:
        if self._ledger is None:
            return [f"watched loop: {len(self._steps)} noisy steps so far"]
        return self._ledger._lines()

    # What is called while the loop runs.

    def _around(
        self, name: str, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
    ) -> None:
        """Call these before and after the method ``name`` of the optimizer, on this object only."""
        optimizer, method = self._optimizer, getattr(self._optimizer, name)

        def looked_at(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                before()
            found = method(*args, **kwargs)
            if after is not None:
                after()
            return found

        looked_at.reticent_watches = True  # type: ignore[attr-defined]
        previous = vars(optimizer).get(name)
        setattr(optimizer, name, looked_at)
        self._undo.append(lambda: setattr(optimizer, name, previous) if previous else delattr(optimizer, name))

    def _open_draws(self) -> Draws:
        if self._draws is None:
            raise ParameterError("step", "called", "inside the with block")
        return self._draws

    def _on_clip(self) -> None:
        if not self._pieces:
            self._live.before_step()
        size, batches = optimisers.batch_of(self._optimizer)
        norm = optimisers.clip_norm(self._optimizer, self._model)
        measure = len(self._steps) % _MEASURE_EVERY == 0 and size != 0
        clipped = optimisers.count_clipped(self._optimizer, norm) if measure else None if size else 0
        self._pieces.append((size, batches, clipped, norm))
        if self._form is not None:
            self._form.clipped(batches)
        if self._sensitive is not None:
            self._looking(lambda watch: watch.clipped(size))

    def _on_noise(self) -> None:
        """The last moment before noise: what was clipped since the last step is what is released now."""
        pieces, self._pieces = self._pieces, []
        self._measures = len(self._steps) < _NOISE_FIRST or len(self._steps) % _MEASURE_EVERY == 0
        size = _total([piece[0] for piece in pieces])
        release = optimisers.release_of(self._optimizer, max((p[3] for p in pieces), default=1.0), size)
        if release.differ:
            self._faults.add(Fault.CLIP_AND_NOISE_DIFFER)
        self._look_at_seeds(release.noise_multiplier)
        used = self._open_draws().take(size)
        batches = max(1, sum(piece[1] for piece in pieces))
        clipped = _total([piece[2] for piece in pieces])
        noise, norm, divisor = release.noise_multiplier, release.clip_norm, release.divisor
        self._add(SeenStep(noise, norm, divisor, self._rate(None), size, clipped, batches, used))
        if self._sensitive is not None:
            drawn = batches if used is None else used.batches
            self._looking(lambda watch: watch.noisy(noise, norm, release.differ, drawn))

    def _on_draw(self) -> None:
        """A batch of coins was drawn; from a state that was seen after another one, they are the same coins."""
        if self._draw_seeds.public() or self._draw_seeds.repeated():
            self._faults.add(Fault.PUBLIC_DRAWS)

    def _look_at_seeds(self, noise: float) -> None:
        if self._noise_seeds.public():
            self._faults.add(Fault.PUBLIC_SEED)
        if self._noise_seeds.repeated() and noise > 0.0:
            self._faults.add(Fault.REPEATED_NOISE)

    def _after_noise(self) -> None:
        self._noise_seeds.drawn()
        self._moves.noise_added(self._measures)

    def _looking(self, look: Callable[[SensitiveWatch], None]) -> None:
        sensitive = self._sensitive
        if sensitive is not None:
            self._moves.borrowed(lambda: look(sensitive))

    def _add(self, step: SeenStep) -> None:
        if step.used is None and self._open_draws().seen:
            self._faults.add(Fault.OTHER_BATCHES)
        self._steps.add(step)
        self._live.after_step((step.noise_multiplier, step.sample_rate))

    def _ask(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Before the step of an optimizer that is not private: whether it fits the plan."""
        if optimizer is self._optimizer and not self._private:
            self._live.before_step()

    def _rate(self, said: float | None) -> float | None:
        """The sample rate of the step that was just taken, if batches are Poisson."""
        if self._sampler.drawn is not Drawn.POISSON:
            return said if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) else None
        seen = float(self._loader.batch_sampler.sample_rate)
        if said is not None and abs(said - seen) > 1e-9 * seen:
            raise ParameterError("sample_rate", said, f"that of the loader, {seen:g}, or left out")
        return seen

    # What becomes of it.

    def _written(self, ended: bool) -> WatchedRun:
        self._moves.end(len(self._steps), complete=ended)
        if self._buffers.learnt():
            self._faults.add(Fault.BUFFERS_LEARNT)
        if self._private and hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            self._clipping = ("adaptive", Source.SEEN)
        sampler, steps = self._sampler_record(), self._steps
        draft = WatchedRun(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            sampler=sampler,
            clipping=optimisers.clipping_record(*self._clipping, steps.clip_norms),
            segments=steps.segments(sampler.sample_rate),
            tally=self._tally(sampler),
            divisor=steps.divisor,
            num_parameters=sum(p.numel() for p in models.trained(self._model)) or None,
            records_per_user=self._records,
            start=None if self._start is None else self._start.record,
            planned=self._live.planned,
            unit=self._unit,
            optimiser=self._optimizer_names(),
            mixing_layers=self._mixes(),
            randomness=optimisers.randomness_of(self._optimizer) if self._private else Randomness.NOT_SEEN,
            device=models.device_of(self._model),
            weights_sha256=models.fingerprint(self._model) if ended else None,
            versions=models.versions(),
            faults=(),
            gradients=self._form.record() if self._form is not None else None,
            diagnostics=WatchDiagnostics(
                batch_sizes=tuple(steps.batch_sizes),
                clipped=tuple(steps.clipped),
                seconds=self._seconds,
                sensitivity=self._measured(),
                start_salt=None if self._start is None else self._start.salt,
            ),
        )
        wanted = {*self._faults, *draft.demanded()}
        return draft.model_copy(update={"faults": tuple(fault for fault in Fault if fault in wanted)}).sealed()

    def _tally(self, sampler: SamplerRecord) -> Tally:
        counted = self._steps.tally(sampler.sample_rate, sampler.most_uses, self._records, len(self._faults))
        planned = None if self._live.planned is None else self._live.planned.steps
        return counted.model_copy(update={"planned_steps": planned, "unit": self._unit})

    def _so_far(self) -> PublicWatchedRun:
        """What the mechanism of the ledger would follow from, if the loop ended now."""
        if not len(self._steps):
            raise ParameterError("noisy steps", 0, "at least one before its risk is asked for")
        sampler, steps = self._sampler_record(), self._steps
        return PublicWatchedRun(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            sampler=sampler,
            clipping=optimisers.clipping_record(*self._clipping, steps.clip_norms),
            segments=steps.segments(sampler.sample_rate),
            divisor=None,
            num_parameters=None,
            records_per_user=self._records,
            planned=self._live.planned,
            unit=self._unit,
            optimiser=(),
            mixing_layers=tuple(self._mixing),
            randomness=Randomness.NOT_SEEN,
            device="",
            weights_sha256=None,
            versions={},
            faults=tuple(self._faults | ({Fault.MIXES_RECORDS} if self._mixing else set())),
        )

    def _mixes(self) -> tuple[str, ...]:
        found = dict.fromkeys([*self._mixing, *models.mixing_layers(self._model)])
        by_hand = Fault.MIXES_RECORDS in self._faults and not found
        return ("in the first step, by hand",) if by_hand else tuple(found)

    def _measured(self) -> MeasuredChange | None:
        if self._sensitive is None:
            return None
        try:
            return MeasuredChange(**asdict(self._sensitive.record()))
        except (UnsupportedError, ValidationError):
            return None

    def _sampler_record(self) -> SamplerRecord:
        seen = self._sampler
        if seen.drawn is not Drawn.UNKNOWN:
            rates = [rate for rate in self._steps.rates if rate is not None]
            return seen.model_copy(update={"sample_rate": max(rates)}) if rates else seen
        rates = [rate for rate in self._steps.rates if rate is not None]
        if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) and rates:
            said = SamplerRecord(drawn=self._said, source=Source.DECLARED, name="declared", sample_rate=max(rates))
            return said.model_copy(update={"copies": seen.copies})
        if self._said is Drawn.SHUFFLED:
            said = SamplerRecord(drawn=Drawn.SHUFFLED, source=Source.DECLARED, name="declared", times_per_epoch=1)
            return said.model_copy(update={"copies": seen.copies})
        if self._open_draws().repeats:
            most = max(size for size in self._steps.batch_sizes if size is not None)
            return seen.model_copy(update={"drawn": Drawn.WITH_REPLACEMENT, "batch_size": most})
        return seen

    def _optimizer_names(self) -> tuple[str, ...]:
        if self._optimizer is None:
            return ()
        inner = getattr(self._optimizer, "original_optimizer", None)
        return tuple(word(type(one).__name__) for one in (self._optimizer, inner) if one is not None)


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None
