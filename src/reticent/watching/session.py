"""``watch``: look over the shoulder of a training loop and write down what it really did."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_pre_hook

from reticent import facts
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.text import Brief
from reticent.mechanisms.sensitivity import SensitivityRecord
from reticent.records.ledger import RunLedger
from reticent.signing.envelope import LEDGER
from reticent.signing.keys import private_key
from reticent.signing.provenance import sealed
from reticent.watching import declared, one_at_a_time
from reticent.watching.declared import unit_of
from reticent.watching.detectors import DETECTORS, attribute, base, draws, moves, processes
from reticent.watching.detectors import start as starts
from reticent.watching.hooks import guarded
from reticent.watching.live import BudgetSpent, Live, LiveRisk, Log
from reticent.watching.private_loop import PrivateLoop
from reticent.watching.recorder import Recorder
from reticent.watching.steps import SeenStep


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
        packs: bool = False,
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
                together. Nobody can see it in a loop, so None states nothing, and numbers are about one record.
            start: ``"declared"`` states that the weights at the start do not depend on these records, whatever was
                trained before; or through nothing but loops that ``rt.certify([...])`` gets together with this one.
                ``"base-model"`` states this of weights of a model that was trained on other data.
            continues: the ledger of the loop that ended at these weights, where another process kept it: a watch, a
                ledger or its file. In one process a second watch of a model continues the first by itself.
            draws_ahead: the loop asks the loader for a batch before it has used the one before, as Lightning does.
            trainer_step: steps that a trainer took before, as it says.
            packs: a trainer laid several records into one item of the data set, as it says.
            planned_steps: noisy steps there are to be at most. A loop that stops earlier, for whatever reason, counts
                as if it had taken them all.
            stop_at: a risk such as ``"advantage=0.1"``: the loop stops before the step that would exceed it.
                ``should_stop`` says when; a loop that goes on leaves the block at its next step.
            log: called with a ``LiveRisk`` once in ``log_every`` steps; see ``reticent.watching.loggers``.
            log_every: see ``log``.
            unit: ``"record"``, or ``"client"`` for the server of federated learning, which calls ``step`` once per
                round: then clients are drawn and clipped, and the numbers are about whole clients.
            sign: an Ed25519 private key, or the path of its file, that signs the ledger when the loop ends; ``save``
                writes the signature too.

        Raises:
            ParameterError: what is declared contradicts what is seen, or is not known; the optimizer is not one of
                this model, or not its private one.
            UnsupportedError: ``sensitive`` for a loop whose labels or gradients cannot be seen.
        """
        self._model, self._optimizer = model, declared.innermost(optimizer)
        declared.check_together(model, self._optimizer)
        self._loader, self._key = loader, private_key(sign)
        records = None if records_per_user is None else checks.count(records_per_user=records_per_user)
        said = base.Said(clipping, sampler, start, continues, trainer_step, draws_ahead, packs, sensitive)
        self._loop = loop = base.Loop(model, self._optimizer, loader, said, DETECTORS)
        whom = unit_of(unit, private=loop.private, records_per_user=records_per_user)
        self._recorder = Recorder(loop, records=records, unit=whom)
        self._live = self._recorder.live = Live(self._recorder.so_far, planned_steps, stop_at, log, log_every)
        self._moves, self._drawing = loop.of(moves.Moves), loop.of(draws.Drawing)
        self._private = PrivateLoop(loop, self._recorder) if loop.private else None
        self._processes = loop.of(processes.Processes) if processes.Processes.fits(loop) else None
        self._undo: list[Callable[[], None]] = []
        self._ledger: RunLedger | None = None
        self._entered_before = self._failed = False
        self._signature: bytes | None = None

    def __enter__(self) -> Watch:
        if self._undo:
            raise ParameterError("watch", "entered twice", "left before it is entered again")
        self._undo.append(one_at_a_time.enter(self._model, self._optimizer, self._loader))
        try:
            self._look()
        except BaseException:
            self._look_away()
            raise
        return self

    def _look(self) -> None:
        self._started = time.perf_counter()
        declared.check_compiled(self._model)
        detectors = self._loop.detectors.values()
        for one in detectors:
            one.enters(self._entered_before)
        self._entered_before = True
        if self._private is None:
            self._undo.append(register_optimizer_step_pre_hook(self._ask).remove)
        for one in detectors:
            self._undo.extend(one.attach())
        if self._private is not None:
            self._undo.extend(self._private.attach())

    def _look_away(self) -> None:
        while self._undo:
            guarded(self._undo.pop(), self._loop.failed)()

    @property
    def entered(self) -> bool:
        """Whether the loop is being watched now."""
        return bool(self._undo)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._look_away()
        self._recorder.seconds += time.perf_counter() - self._started
        stopped = kind is BudgetSpent
        try:
            self._write(ended=stopped or kind is None)
        except Exception:  # whatever it is, the training is done
            traceback.print_exc()
            self._loop.failed()
            self._ledger, self._failed = None, True
            starts.lose(self._model)
        if self._processes is not None:
            self._processes.leaves()
        self._live.tell()
        return stopped

    def _write(self, ended: bool) -> None:
        """The loop is over: write its ledger, if it took a step."""
        for one in self._loop.detectors.values():  # also without a step: the watch may be entered again
            one.left(ended)
        if not len(self):
            self._recorder.unseen(self._moves.taken)
        if len(self):
            run = self._recorder.written(ended=ended)
            run = run if self._processes is None else self._processes.joined(run, ended)
            self._ledger = self._loop.of(starts.Start).close(run)
            if self._key is not None:
                self._signature = sealed(self._ledger.to_json().encode(), LEDGER, self._key)

    def _ask(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Before the step of an optimizer that is not private: whether it fits the plan."""
        if optimizer is self._optimizer:
            self._live.before_step()

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
            ParameterError: it is called outside of the block, Opacus's optimizer is watched already, or a number is out
                of range or contradicts the sampler.
        """
        if self._private is not None:
            raise ParameterError(
                "step", "called", "left out: Opacus's optimizer is watched and counts by itself", shown=False
            )
        self._refuse_outside("step")
        noise = checks.non_negative(noise_multiplier=noise_multiplier)
        rate = None if sample_rate is None else checks.rate(sample_rate=sample_rate)
        size = None if batch_size is None else batch_size and checks.count(batch_size=batch_size)
        norm = None if max_grad_norm is None else checks.positive(max_grad_norm=max_grad_norm)
        part = None if divisor is None else checks.positive(divisor=divisor)
        self._drawing.rate(rate)
        guarded(self._record, self._loop.failed)(SeenStep(noise, norm, part, rate, size, clipped, 1, None))

    def _record(self, step: SeenStep) -> None:
        """Write down an update, and what was drawn for it."""
        draws, skipped = self._drawing.draws, self._drawing.draws.skipped
        step.used = self._drawing.used(step.batch_size)
        self._loop.tells(base.Detector.by_hand)(draws.skipped > skipped)
        step.batches = draws.most if step.used is None else 1
        step.sample_rate = self._drawing.rate(step.sample_rate)
        self._recorder.add(step)
        if self._optimizer is None:
            self._live.before_step()  # nobody can be asked before the next one

    def _refuse_outside(self, name: str) -> None:
        if not self.entered:
            raise ParameterError(name, "called", "inside the with block")

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Other weights may be put in inside, such as their running mean, if they come back as they were.

        Of small tensors this is seen anyway; of large ones all values are compared here. Who reads the watched loader
        inside computes something from the training records that no noise hides.

        Raises:
            ParameterError: outside of the block.

        Example:
            >>> with ledger.evaluation():  # doctest: +SKIP
            ...     evaluate(with_mean_weights(model))
        """
        self._refuse_outside("evaluation")
        before = self._drawing.draws.passes
        try:
            with self._moves.lent():
                yield
        finally:
            if self._drawing.draws.passes > before:
                self._loop.found(facts.SEEN_IN_EVALUATION)

    @contextmanager
    def no_records(self) -> Iterator[None]:
        """Rows that go through the model inside hold no record, as those that a generator makes from noise.

        Opacus adds the gradients of two forward passes that wait for one backward pass, and clips the pair. A record
        moves the sum by one norm if the rows are drawn anew in each step, all alike and independent of each other and
        of the records: whoever joins moves all later records to another partner. Classes in order, kept noise, or
        batch normalisation in the generator break that. It is what the program states; the ledger says so. Make as
        many rows as there are records, and go backward from the sum of both losses: of two backward passes Opacus
        would take the activations of the wrong one.

        Another model that takes its step inside, as the generator, learns from such rows and the weights of this model
        alone: what comes of it is post-processing.

        Raises:
            ParameterError: outside of the block.

        Example:
            >>> real = discriminator(images)  # doctest: +SKIP
            >>> with ledger.no_records():  # doctest: +SKIP
            ...     made = discriminator(generator(noise).detach())
        """
        self._refuse_outside("no_records")
        before, self._loop.no_records = self._loop.no_records, True
        try:
            yield
        finally:
            self._loop.no_records = before

    @contextmanager
    def after_step(self) -> Iterator[None]:
        """The weights may be changed inside: masked, clamped, projected, or replaced by their running mean.

        What is made from released weights without the records reveals nothing more. That no record takes part, such as
        a loss that decides, is what the program states; the ledger says so.

        Raises:
            ParameterError: outside of the block.

        Example:
            >>> with ledger.after_step():  # doctest: +SKIP
            ...     model.weight.data.clamp_(-1.0, 1.0)
        """
        self._refuse_outside("after_step")
        if not len(self):  # what they were is what the ledger says of the start
            self._loop.found(facts.WEIGHTS_CHANGED)
        with self._moves.changed():
            yield

    @property
    def ledger(self) -> RunLedger:
        """What was seen.

        Raises:
            ParameterError: the block has not ended, or no noisy step was seen in it.
            UnsupportedError: the ledger could not be written.
        """
        if self._failed:
            raise UnsupportedError(
                "nothing is proven of this loop: the watch failed, and printed its error where it ran"
            )
        if self._ledger is None:
            hint = "read after the with block, in which the private optimizer takes at least one step, or "
            raise ParameterError("ledger", None, hint + "ledger.step(noise_multiplier=...) is called after each")
        return self._ledger

    def risk(self) -> LiveRisk:
        """What an attacker can have learnt from the steps so far; it prints as one line.

        It takes less than 50 ms for up to 10,000 levels of noise; each further thousand takes some 3 ms. Where nobody
        can say more, as before the block is entered, the advantage is at most 1.
        """
        return self._live.risk()

    def __len__(self) -> int:
        """Noisy steps so far."""
        return self._loop.count

    def __bool__(self) -> bool:
        return True  # also before the first step

    @property
    def should_stop(self) -> bool:
        """Whether a further step would exceed ``stop_at``."""
        return self._live.should_stop

    def mechanism(self) -> Mechanism:
        """The safe reading of what was seen: see ``RunLedger.mechanism``."""
        return self.ledger.mechanism()

    @property
    def sensitivity(self) -> SensitivityRecord:
        """What was recorded about the attribute; private.

        Raises:
            ParameterError: ``sensitive`` was not asked for.
            UnsupportedError: the loop could not be measured; the text says why.
        """
        if self._loop.said.sensitive is None:
            raise ParameterError("sensitive", None, "given to watch", shown=False)
        return self._loop.of(attribute.SensitiveWatch).record()

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the ledger as JSON; it is not for publication, as it holds diagnostics of the training records.

        With ``sign`` its signature is written next to it, in ``NAME.dsse.json``.

        Raises:
            ArtifactError: something lies there, and ``overwrite`` is not said; or it cannot be written.
        """
        self.ledger.save(path, overwrite=overwrite, signature=self._signature)

    def to_json(self) -> str:
        """The ledger as strict JSON text; see ``save``.

        Raises:
            ParameterError: the block has not ended, or no noisy step was seen in it.
        """
        return self.ledger.to_json()

    def _lines(self) -> list[str]:
        if self._ledger is None:
            return [f"watched loop: {len(self)} noisy steps so far"]
        return self._ledger._lines()
