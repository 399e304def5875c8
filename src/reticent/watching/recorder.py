"""What a watch writes down while a loop runs, and the ledger that it makes of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from typing import Any

from reticent import facts
from reticent.errors import ParameterError
from reticent.facts import Fact
from reticent.facts.base import Seen, word
from reticent.facts.steps import ClippingRecord, Drawn, Generator, SamplerRecord, Source
from reticent.mechanisms.units import Unit
from reticent.records.ledger import RunLedger
from reticent.records.parts import Diagnostics, Environment
from reticent.watching import declared, models, optimisers, seeds
from reticent.watching.checkpoints import Checkpoints
from reticent.watching.draws import Draws, Fresh, Used
from reticent.watching.live import Live
from reticent.watching.model_form import FormWatch
from reticent.watching.repeats import copies
from reticent.watching.samplers import logical_batches, look_again, look_at, unknown
from reticent.watching.seeds import Coins
from reticent.watching.sensitive import SensitiveWatch
from reticent.watching.starts import Start
from reticent.watching.steps import SeenStep, Steps
from reticent.watching.weights import Buffers

_WEAKER = (Generator.SECURE, Generator.DEFAULT, Generator.OF_PROGRAM)
"""Where a private optimizer draws its noise; each is weaker than the ones before."""


class Recorder:
    """The facts about one loop.

    Attributes:
        faults: so far.
        steps: noisy updates so far.
        live: their risk, and the plan; set by the maker of the recorder.
        draw_seeds: of the generator of a Poisson sampler.
        drawn_at: the largest rate at which the batches of the last step were drawn, where each record has a coin.
        form, sensitive, start, buffers: what others look at, where they do.
        seconds: wall time so far.
        catch_up: writes down steps that wait for it.
        pass_begins: looks at what waits when a pass over the data begins.
    """

    live: Live
    checkpoints: Checkpoints

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        loader: Any,
        *,
        clipping: str | None,
        sampler: str | None,
        records: int | None,
        unit: Unit,
    ) -> None:
        """Look at what does not change; the keywords are what the program declares.

        Raises:
            ParameterError: what is declared contradicts what is seen.
        """
        self._records, self._unit = records, unit
        self.form: FormWatch | None = None
        self.sensitive: SensitiveWatch | None = None
        self.start: Start | None = None
        self._model, self._optimizer, self._loader = model, optimizer, loader
        self._private = optimisers.is_private(optimizer)
        self._clipping = declared.clipping(clipping, optimizer if self._private else None)
        self._said_clipping = clipping
        self.sampler, self._batches = look_at(loader), logical_batches(loader)
        self._said = declared.sampler(sampler, self.sampler)
        self.faults = set[Fact]()
        self.found = self.faults.add
        self.steps, self.seconds = Steps(), 0.0
        self.catch_up: Callable[[], None] = lambda: None
        self.pass_begins = self.catch_up
        self._draws: Draws | None = None
        self.drawn_at = 0.0
        self._repeats, self._trained = False, math.inf
        self._sources = set[Generator]()

    def begin(self) -> None:
        """The loop begins: what is looked at once, before its first step."""
        self.buffers = Buffers(self._model)
        self._mixing = models.mixing_layers(self._model)
        self.draw_seeds = seeds.Seeds(seeds.of_draws(self._batches), self.found, use="draws")
        self._drawn_from = getattr(self._batches, "generator", None)
        if getattr(getattr(self._loader, "collate_fn", None), "rand_on_empty", False):  # whoever joins replaces it
            self.found(facts.LARGER_BATCH)

    def follow(self, ahead: bool) -> Draws:
        """Watch the sampler from now on.

        Args:
            ahead: the loop asks for a batch before it has used the one before.
        """
        self._look_at_clipping()
        self.count_trained()
        before = self.passes
        if self._draws is not None and self._draws.left_out:
            self.found(facts.LEFT_OUT)
        self._repeats = self._repeated
        drawn = self._coins if self.sampler.drawn is Drawn.POISSON else None
        self._draws = Draws(
            self._loader,
            ahead=ahead,
            passes=before,
            drawn=drawn,
            begins=self._look_again,
        )
        return self._draws

    def unseen(self, steps: int) -> None:
        """So many steps were taken, and nobody saw any noise."""
        for _ in range(steps):
            self.steps.add(SeenStep(0.0, None, None, None, None, None, 1, None))

    def count_trained(self) -> None:
        """How many numbers are trained now: the fewest of all times count, as few directions hide little."""
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        moved = {id(p) for group in groups for p in group["params"]}
        own = models.trained(self._model)
        now = sum(p.numel() for p in own if self._optimizer is None or id(p) in moved)
        self._trained = min(now, self._trained)

    @property
    def _repeated(self) -> bool:
        """Whether one batch held a record more than once, in this entry or one before."""
        return self._repeats or (self._draws is not None and self._draws.repeats)

    def _look_again(self) -> None:
        """A pass begins: a sampler that was changed since it was looked at counts as changed for the whole loop."""
        self.sampler = look_again(self._loader, self.sampler)
        self.pass_begins()

    def _coins(self) -> Coins:
        now = getattr(self._batches, "generator", None)
        if now is not self._drawn_from:
            self._drawn_from = now
            self.draw_seeds.exchange(seeds.of_draws(self._batches))
        coins = self.draw_seeds.coins()
        coins.rate = float(self._batches.sample_rate)
        return coins

    @property
    def passes(self) -> int:
        """Passes over the data that have begun, as far as anybody sees."""
        return 0 if self._draws is None else self._draws.passes

    @property
    def draws(self) -> Draws:
        """Of the loader.

        Raises:
            ParameterError: nothing is watched yet.
        """
        if self._draws is None:
            raise ParameterError("step", "called", "inside the with block")
        return self._draws

    def used(
        self,
        size: int | None,
        fresh: Fresh | None = None,
        parts: int = 0,
        empty: int = 0,
        batches: int | None = None,
    ) -> Used | None:
        """The draws of a step. Coins from where others that a step used came are the same.

        Args:
            size: records in it, if known.
            fresh: what was drawn between the step before and this one; None for what was drawn until now.
            parts: how many of the records belong to batches that were not drawn for this step; what it used is unknown
                then, but for what it left out.
            empty: batches without records that it added up.
            batches: in which they went through the model, if that is known.
        """
        draws = self.draws
        used = draws.take(size and size - parts, draws.fresh() if fresh is None else fresh, empty, batches)
        self.drawn_at = 0.0
        for coins in draws.coins:
            self.drawn_at = max(self.drawn_at, coins.rate)
            if self.draw_seeds.shown(coins):
                self.found(facts.PUBLIC_DRAWS)
        if used is None and size is not None and draws.fewer_than(size - parts, batches):
            self.found(facts.LARGER_BATCH)
        return None if parts else used

    def add(self, step: SeenStep) -> None:
        """A step was taken."""
        if step.used is None and self.draws.seen:
            self.faults.add(facts.OTHER_BATCHES)
        self.steps.add(step)
        self._kind = self._counted_as() if self.live.listens else ((), 0)
        self.live.after_step(*self._kind)

    def again(self, size: int | None, clipped: int | None) -> None:
        """A step was taken that differs from the last one in these numbers only."""
        self.steps.again(size, clipped)
        self.live.after_step(*self._kind)

    def clipped_by_hand(self) -> None:
        """Noise was added to a sum of others than the gradients that the private optimizer was left to clip."""
        said = self._said_clipping
        self._clipping = ("unknown", Source.UNKNOWN) if said is None else (said, Source.DECLARED)

    def gradients_by_hand(self) -> None:
        """The program states the gradients of records that are clipped; nobody saw where they come from."""
        if self._clipping[1] is Source.SEEN:
            self._clipping = self._clipping[0], Source.DECLARED

    def _counted_as(self) -> tuple[Hashable, int]:
        """What the risk of further steps follows from, if they go on like the last; and batches that no step used."""
        same, unused = self.steps.last(self.sampler.batches_per_epoch)
        hidden = facts.PUBLIC_DRAWS in self.faults, facts.OTHER_BATCHES in self.faults
        return (same, self.sampler.drawn, hidden), unused

    def _look_at_clipping(self) -> None:
        """Whether it was replaced since it was looked at."""
        if self._private and self._clipping[1] is Source.SEEN and optimisers.clipping_of(self._optimizer) == "unknown":
            self._clipping = "unknown", Source.UNKNOWN

    def noise_from(self) -> None:
        """Noise is about to be drawn, perhaps from another source than before: of all, the weakest is written down."""
        self._look_at_clipping()
        self._sources.add(optimisers.randomness_of(self._optimizer))

    def _weakest(self) -> Generator:
        if not self._private or facts.UNKNOWN_NOISE in self.faults:
            return Generator.NOT_SEEN
        return max(self._sources | {optimisers.randomness_of(self._optimizer)}, key=_WEAKER.index)

    @property
    def coins(self) -> Any:
        """What draws each record independently, at its ``sample_rate`` now; None where nothing does."""
        return self._batches if self.sampler.drawn is Drawn.POISSON else None

    def rate(self, said: float | None) -> float | None:
        """The sample rate of the step that was just taken, if batches are Poisson.

        Raises:
            ParameterError: ``said`` is not that of the loader.
        """
        if self.coins is None:
            return said if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) else None
        seen = float(self.coins.sample_rate)
        if said is not None and abs(said - seen) > 1e-9 * seen:
            raise ParameterError("sample_rate", said, f"as in the loader, {seen:g}, or left out")
        return max(seen, self.drawn_at)

    def written(self, ended: bool) -> RunLedger:
        """The ledger of the loop.

        Args:
            ended: it did not end with an error.
        """
        self.count_trained()
        self._look_at_divisor()
        if self.draws.left_out:
            self.found(facts.LEFT_OUT)
        if self.buffers.learnt():
            self.faults.add(facts.BUFFERS_LEARNT)
        listed = copies(getattr(self._loader, "dataset", None))  # a Subset may have been changed on the way
        if listed > (self.sampler.copies or 1):
            self.sampler = self.sampler.model_copy(update={"copies": listed})
        seen = self._private and self._clipping[1] is Source.SEEN
        if seen and hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            self._clipping = ("adaptive", Source.SEEN)
        steps, start = self.steps, self.start
        last = models.fingerprint(self._model) if ended else None
        both = self._of_both(self._mixing_now())
        return RunLedger(
            **both | {"facts": both["facts"] | self.checkpoints.stated(last)},
            divisor=steps.divisor,
            num_parameters=int(self._trained) or None,
            start=None if start is None else start.record,
            environment=Environment(
                optimiser=self._optimizer_names(),
                device=models.device_of(self._model),
                randomness=self._weakest(),
                versions=models.versions(),
            ),
            weights_sha256=last,
            gradients=self.form.record() if self.form is not None else None,
            diagnostics=Diagnostics(
                batch_sizes=tuple(steps.batch_sizes),
                clipped=tuple(steps.clipped),
                seconds=self.seconds,
                sensitivity=None if self.sensitive is None else self.sensitive.measured(),
                start_salt=None if start is None else start.salt,
            ),
        ).sealed()

    def _look_at_divisor(self) -> None:
        """Where each record joins a batch by chance, nobody may learn how many did."""
        hidden = (Drawn.POISSON, Drawn.RANDOM_ALLOCATION)
        if (self.sampler.drawn in hidden or self._said is Drawn.POISSON) and self.steps.divided_by_size:
            self.found(facts.PRIVATE_DIVISOR)

    def _of_both(self, mixing: Iterable[str]) -> dict[str, Any]:
        """What a ledger says from which its mechanism follows.

        Args:
            mixing: layers that mix records.
        """
        (kind, source), (low, high) = self._clipping, self.steps.clip_norms or (None, None)
        sampler = self._sampler_record()
        seen: dict[str, Any] = {fault.key: Seen.FOUND for fault in self.faults if fault.shown is None}
        mixed = tuple(mixing) or tuple(fault.cause for fault in self.faults if fault == facts.MIXES_RECORDS)
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "sampler": sampler,
            "clipping": ClippingRecord(kind=kind, source=source, smallest=low, largest=high),
            "segments": self.steps.segments(sampler.sample_rate),
            "records_per_user": self._records,
            "unit": self._unit,
            "facts": seen | self.live.stated | ({facts.MIXES_RECORDS.key: mixed} if mixed else {}),
        }

    def so_far(self) -> RunLedger | None:
        """What the mechanism of the ledger would follow from, if the loop ended now; None where nothing ran yet.

        Raises:
            ParameterError: nobody knows what ran before.
        """
        self.catch_up()
        if not len(self.steps):
            if self.start is None or any(fault.voids for fault in self.faults):
                raise ParameterError("risk", "asked", "inside the with block, of a model whose training was watched")
            return self.start.before
        self._look_at_divisor()
        return RunLedger(
            **self._of_both(self._mixing),
            earlier=() if self.start is None else self.start.earlier,
            divisor=None,
            num_parameters=None,
            environment=Environment(optimiser=(), device="", randomness=Generator.NOT_SEEN, versions={}),
        )

    def _mixing_now(self) -> tuple[str, ...]:
        """Layers that mix records, as far as the model is looked at again."""
        return tuple(dict.fromkeys([*self._mixing, *models.mixing_layers(self._model)]))

    def _sampler_record(self) -> SamplerRecord:
        seen, rates = self.sampler, [rate for rate in self.steps.rates if rate is not None]
        once = seen.drawn in (Drawn.SHUFFLED, Drawn.IN_ORDER) and seen.times_per_epoch == 1
        if once and self._repeated:
            seen = unknown(seen)
        if seen.drawn is not Drawn.UNKNOWN:
            return seen.model_copy(update={"sample_rate": max(rates)}) if rates else seen
        said = {"drawn": self._said, "source": Source.DECLARED, "name": "declared", "copies": seen.copies}
        if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) and rates:
            return SamplerRecord(**said, sample_rate=max(rates))
        if self._said is Drawn.SHUFFLED:
            return SamplerRecord(**said, times_per_epoch=1)
        if self._repeated:
            most = max(size for size in self.steps.batch_sizes if size is not None)
            return seen.model_copy(update={"drawn": Drawn.WITH_REPLACEMENT, "batch_size": most})
        return seen

    def _optimizer_names(self) -> tuple[str, ...]:
        if self._optimizer is None:
            return ()
        inner = getattr(self._optimizer, "original_optimizer", None)
        return tuple(word(type(one).__name__) for one in (self._optimizer, inner) if one is not None)
