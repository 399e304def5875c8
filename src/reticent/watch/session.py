"""``watch``: look over the shoulder of a training loop and write down what it really did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from reticent import _check, _strict
from reticent._envelope import LEDGER
from reticent._text import Brief, one_of
from reticent.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.mechanism import Mechanism
from reticent.mechanism.rules import word
from reticent.mechanism.units import Unit
from reticent.mechanism.watch_faults import Fault
from reticent.mechanism.watched_run import (
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
from reticent.provenance import sealed, signature_of
from reticent.threat.attribute import SensitivityRecord
from reticent.watch import models, optimisers
from reticent.watch.draws import Draws
from reticent.watch.layouts import look_at_layouts
from reticent.watch.live import BudgetSpent, Live, LiveRisk, Log
from reticent.watch.model_form import FormWatch
from reticent.watch.samplers import look_at, observed_sampler
from reticent.watch.sensitive import SensitiveWatch
from reticent.watch.steps import SeenStep, Steps
from reticent.watch.units import unit_of

_MEASURE_EVERY = 64
"""Norms of single records are computed once in so many steps: they cost a pass over all their gradients."""

_CLIPPINGS = ("flat", "per-layer", "adaptive", "automatic")


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
        draws_ahead: bool = False,
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
                ``SensitiveAttribute``, or ``reticent.watch.sensitive.Sensitive`` with a loss of its own.
            records_per_user: the most records that one person contributed: the numbers then cover all of them
                together. Nobody can see it in a loop, so None states nothing, and they speak about one record.
            draws_ahead: the loop asks the loader for a batch before it has used the one before, as Lightning does.
            planned_steps: noisy steps there are to be at most. A loop that stops earlier, for whatever reason, counts
                as if it had taken them all.
            stop_at: a risk such as ``"advantage=0.1"``: the loop stops before the step that would exceed it.
                ``should_stop`` says when; a loop that goes on leaves the block at its next step.
            log: called with a ``LiveRisk`` once in ``log_every`` steps; see ``reticent.watch.loggers``.
            log_every: see ``log``.
            unit: ``"record"``, or ``"client"`` for the server of federated learning, which calls ``step`` once per
                round: then clients are drawn and clipped, and the numbers are about whole clients.
            sign: an Ed25519 private key that signs the ledger when the loop ends; ``save`` writes the signature too.

        Raises:
            ParameterError: what is declared contradicts what is seen, or is not known.
            UnsupportedError: ``sensitive`` for a loop whose labels or gradients cannot be seen.
        """
        if not isinstance(models.bare(model), nn.Module):
            raise ParameterError("model", type(model).__name__, "a torch module, bare or wrapped by Opacus")
        self._model, self._optimizer = model, _innermost(optimizer)
        self._private = optimisers.is_private(self._optimizer)
        self._loader, self._ahead, self._key = loader, draws_ahead, sign
        self._clipping = _declared_clipping(clipping, self._optimizer if self._private else None)
        self._sampler = look_at(loader)
        self._said = _declared_sampler(sampler, self._sampler)
        self._records = None if records_per_user is None else _check.count(records_per_user=records_per_user)
        self._steps, self._faults = Steps(), set[Fault]()
        self._pieces: list[tuple[int | None, int, int | None, float]] = []
        self._parameters = list(models.bare(model).parameters())
        self._own = {id(p) for p in self._parameters}
        self._undo: list[Callable[[], None]] = []
        self._armed, self._taken = 0, 0
        self._unit = unit_of(unit, private=self._private, records_per_user=records_per_user)
        self._live = Live(self._so_far, planned_steps, stop_at, log, log_every)
        self._ledger: WatchedRun | None = None
        self._signature: bytes | None = None
        self._form = FormWatch(model, self._optimizer, loader) if self._private else None
        self._sensitive: SensitiveWatch | None = None
        if sensitive is not None:
            self._sensitive = SensitiveWatch(sensitive, model, self._optimizer, loader)

    def __enter__(self) -> Watch:
        self._started = time.perf_counter()
        self._draws = Draws(self._loader, observed_sampler(self._loader), ahead=self._ahead)
        self._undo.append(self._draws.close)
        if self._sensitive is not None:
            self._undo += self._sensitive.attach(self._draws)
        self._mixing = models.mixing_layers(self._model)
        self._versions = self._count_changes()
        for handle in (
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ):
            self._undo.append(handle.remove)
        if self._form is not None:
            self._undo += self._form.attach()
        if self._private:
            ghost = optimisers.is_ghost(self._optimizer)
            self._before("accumulate" if ghost else "clip_and_accumulate", self._on_clip)
            self._before("add_noise", self._on_noise)
            for handle in look_at_layouts(self._model, ghost=ghost, found=self._faults.add):
                self._undo.append(handle.remove)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        while self._undo:
            self._undo.pop()()
        stopped = kind is BudgetSpent
        kind = None if stopped else kind
        if len(self._steps):
            self._ledger = self._written(ended=kind is None)
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
        self._add(SeenStep(noise, norm, part, self._rate(rate), size, clipped, 1, self._draws.take(size)))
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
        with _strict.writing(path):
            _strict.write_atomic(path, text, private=True)
            if self._signature is not None:
                _strict.write_atomic(signature_of(path), self._signature)

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

    def _before(self, name: str, look: Callable[[], None]) -> None:
        """Call ``look`` before the method ``name`` of the optimizer, on this object only."""
        optimizer, method = self._optimizer, getattr(self._optimizer, name)

        def looked_at(*args: Any, **kwargs: Any) -> Any:
            look()
            return method(*args, **kwargs)

        previous = vars(optimizer).get(name)
        setattr(optimizer, name, looked_at)
        self._undo.append(lambda: setattr(optimizer, name, previous) if previous else delattr(optimizer, name))

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
        size = _total([piece[0] for piece in pieces])
        release = optimisers.release_of(self._optimizer, max((p[3] for p in pieces), default=1.0), size)
        if release.differ:
            self._faults.add(Fault.CLIP_AND_NOISE_DIFFER)
        used = self._draws.take(size)
        batches = max(1, sum(piece[1] for piece in pieces))
        clipped = _total([piece[2] for piece in pieces])
        noise, norm, divisor = release.noise_multiplier, release.clip_norm, release.divisor
        self._add(SeenStep(noise, norm, divisor, self._rate(None), size, clipped, batches, used))
        if self._sensitive is not None:
            drawn = batches if used is None else used.batches
            self._looking(lambda watch: watch.noisy(noise, norm, release.differ, drawn))
        self._armed += 1

    def _looking(self, look: Callable[[SensitiveWatch], None]) -> None:
        """Measure; weights that are borrowed for a moment are not weights that somebody wrote."""
        if self._sensitive is not None:
            before = self._count_changes()
            look(self._sensitive)
            self._versions += self._count_changes() - before

    def _add(self, step: SeenStep) -> None:
        if step.used is None and self._draws.seen:
            self._faults.add(Fault.OTHER_BATCHES)
        self._steps.add(step)
        self._live.after_step((step.noise_multiplier, step.sample_rate))

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._is_mine(optimizer) and not self._private:
            self._live.before_step()
        if self._is_mine(optimizer) and self._count_changes() != self._versions:
            self._faults.add(Fault.WEIGHTS_CHANGED)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._is_mine(optimizer):
            wrapper = hasattr(optimizer, "original_optimizer")
            if not wrapper and any(id(p) in self._own for group in optimizer.param_groups for p in group["params"]):
                self._faults.add(Fault.OTHER_OPTIMISER)
                self._versions = self._count_changes()
            return
        self._taken += 1
        self._versions = self._count_changes()
        if self._private:
            if not self._armed:
                self._faults.add(Fault.UNRECORDED_STEPS)
            self._armed = 0

    def _is_mine(self, optimizer: Any) -> bool:
        """Whether this is the optimizer that really moves the weights."""
        return optimizer is (self._optimizer.original_optimizer if self._private else self._optimizer)

    def _count_changes(self) -> int:
        """How often weights were written to, in place."""
        return sum(p._version for p in self._parameters)

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
        if not self._private and self._optimizer is not None and self._taken > len(self._steps):
            self._faults.add(Fault.UNRECORDED_STEPS)
        if ended and self._optimizer is not None and self._count_changes() != self._versions:
            self._faults.add(Fault.WEIGHTS_CHANGED)
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
            planned=self._live.planned,
            unit=self._unit,
            optimiser=self._optimizer_names(),
            mixing_layers=tuple(dict.fromkeys([*self._mixing, *models.mixing_layers(self._model)])),
            randomness=optimisers.randomness_of(self._optimizer) if self._private else Randomness.NOT_SEEN,
            device=models.device_of(self._model),
            weights_sha256=models.fingerprint(self._model) if ended else None,
            versions=models.versions(),
            faults=(),
            gradients=self._form.record() if self._form is not None else None,
            diagnostics=WatchDiagnostics(
                batch_sizes=tuple(steps.batch_sizes),
                clipped=tuple(steps.clipped),
                seconds=time.perf_counter() - self._started,
                sensitivity=self._measured(),
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
            return SamplerRecord(drawn=self._said, source=Source.DECLARED, name="declared", sample_rate=max(rates))
        if self._said is Drawn.SHUFFLED:
            return SamplerRecord(drawn=Drawn.SHUFFLED, source=Source.DECLARED, name="declared", times_per_epoch=1)
        if self._draws.repeats:
            most = max(size for size in self._steps.batch_sizes if size is not None)
            return seen.model_copy(update={"drawn": Drawn.WITH_REPLACEMENT, "batch_size": most})
        return seen

    def _optimizer_names(self) -> tuple[str, ...]:
        if self._optimizer is None:
            return ()
        inner = getattr(self._optimizer, "original_optimizer", None)
        return tuple(word(type(one).__name__) for one in (self._optimizer, inner) if one is not None)


def _innermost(optimizer: Any) -> Any:
    """The optimizer inside wrappers of other libraries, such as that of accelerate."""
    while hasattr(optimizer, "optimizer") and not optimisers.is_private(optimizer):
        optimizer = optimizer.optimizer
    return optimizer


def _declared_clipping(said: str | None, optimizer: Any) -> tuple[Any, Source]:
    if said is not None and said not in _CLIPPINGS:
        raise ParameterError("clipping", said, one_of(said, _CLIPPINGS))
    seen = "unknown" if optimizer is None else optimisers.clipping_of(optimizer)
    if seen != "unknown":
        if said not in (None, seen):
            raise ParameterError("clipping", said, f"what the optimizer does, {seen}, or left out")
        return seen, Source.SEEN
    if said is not None:
        return said, Source.DECLARED
    # A loop of one's own declares its clipping with the noise multiplier: noise over the norm of clipping.
    return ("flat", Source.DECLARED) if optimizer is None else ("unknown", Source.UNKNOWN)


def _declared_sampler(said: str | None, seen: SamplerRecord) -> Drawn | None:
    if said is None:
        return None
    if said not in (Drawn.POISSON, Drawn.SHUFFLED, Drawn.FIXED_SIZE):
        raise ParameterError("sampler", said, "poisson, fixed-size or shuffled, or left out")
    if seen.drawn not in (Drawn.UNKNOWN, said):
        raise ParameterError("sampler", said, f"what the loader does, {seen.drawn}, or left out")
    return Drawn(said)


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None
