"""``calibrate_samplers``: which sampler gives the least noise, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from reticent.adversaries.report import Record, strict
from reticent.calibration.samplers import Choice, LeftOut, Plan
from reticent.calibration.samplers import calibrate_samplers as solve
from reticent.calibration.spelling import forms
from reticent.calibration.targets import Target
from reticent.kernel import checks
from reticent.kernel.adversaries import Adversary, Method
from reticent.kernel.errors import ParameterError
from reticent.kernel.keywords import hinting
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import conditions_by_whom
from reticent.kernel.samplers import SAMPLERS
from reticent.mechanisms.codec import mechanism_record
from reticent.verbs.names import ATTACKER, METHOD, RELATION, WORST, Who
from reticent.verbs.request import COUNT, NUMBER, Request, Spelling, asked, one_or_more, several
from reticent.verbs.table import Cell, Table
from reticent.verbs.targets import TARGET, target_of

ANY = "any"


def _sizes(name: str, said: Any) -> tuple[int, ...]:
    """Batch sizes: one or several, each a number or all of a range such as 64..1024, by doubling."""
    each = said if isinstance(said, Iterable) and not isinstance(said, str) else (said,)
    counts = (_range(name, one) if isinstance(one, str) else [checks.count(**{name: one})] for one in each)
    return tuple(size for sizes in counts for size in sizes)


def _range(name: str, text: str) -> list[int]:
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high if dots else low)
    except ValueError:
        first, last = 1, 0
    if not 1 <= first <= last:
        raise ParameterError(name, text, "a whole number, or a range such as 64..1024")
    return [first << turn for turn in range((last // first).bit_length())]


def _sampler(name: str, said: Any) -> str:
    return ANY if said == ANY else SAMPLERS.find(said if isinstance(said, str) else str(said), name).name


SAMPLER = several(Spelling(_sampler, str, {"type": "string"}, str))
SIZES = Spelling(_sizes, list, one_or_more(COUNT.schema or {}), str, many=True)


@dataclass(frozen=True, kw_only=True)
class CalibrateSamplers(Request):
    """Which sampler gives the least noise for this data set, these epochs and this memory."""

    verb = "calibrate_samplers"
    target: Target = asked(TARGET, f"What has to be reached: {forms()}.")
    dataset_size: int = asked(COUNT, "Number of training records.")
    epochs: float = asked(NUMBER, "Passes over the data.")
    memory: int | None = asked(COUNT, "Most records in one batch; truncated Poisson batches are cut there.", None)
    batch_size: tuple[int, ...] = asked(
        SIZES, "A size, or a range such as 64..1024 by doubling. Default: what fits.", ()
    )
    sampler: tuple[str, ...] = asked(SAMPLER, f"{', '.join(SAMPLERS)} or {ANY}. Default: {ANY}.", (ANY,))
    adversary: Adversary = asked(ATTACKER, "Who attacks; default: the worst case.", WORST)
    neighbouring: Neighbouring | None = asked(RELATION, "Between which data sets; default: the attacker's own.", None)
    method: Method | None = asked(METHOD, "How curves are evaluated; default: the attacker's own.", None)

    def answer(self, progress: Callable[[str], None] | None = None) -> SamplerChoices:
        """The least noise of each sampler and batch size.

        Args:
            progress: called with a few words before each search.
        """
        plan, how = Plan(self.dataset_size, self.epochs, self.memory), self.method or Method.EXACT
        kinds = SAMPLERS.values() if ANY in self.sampler else [SAMPLERS[name] for name in self.sampler]
        who = (self.adversary, self.neighbouring, how)
        return SamplerChoices(self.target, *solve(plan, self.target, tuple(kinds), self.batch_size, *who, progress))


class SamplerRow(Record):
    """One sampler at one batch size, and the least noise that meets the target."""

    sampler: str
    batch_size: int | None
    largest_batch: int | None
    noise_multiplier: float
    noise_of_mean: float | None
    achieved: float | None
    adversary: str
    neighbouring: str
    claim: str
    mechanism: dict[str, Any]


class SamplerSkipped(Record):
    """One sampler without an answer, and why."""

    sampler: str
    batch_size: int | None
    reason: str


class SamplersDocument(Record):
    """What ``reticent calibrate samplers --json`` prints, the least noise of the mean gradient first."""

    schema_: str = Field(default="reticent.samplers/1", alias="schema")
    target: str
    rows: list[SamplerRow]
    skipped: list[SamplerSkipped]


class SamplerChoices(Table):
    """The least noise of each sampler and batch size, the least noise of the mean gradient first.

    Attributes:
        target: what had to be reached.
        choices: with an answer.
        skipped: without one, with the reason.
    """

    _leading = 2

    def __init__(self, target: Target, choices: Sequence[Choice], skipped: Sequence[LeftOut] = ()) -> None:
        self.target, self.choices, self.skipped = target, tuple(choices), tuple(skipped)

    @property
    def best(self) -> Choice:
        """The choice with the least noise of the mean gradient.

        Raises:
            ParameterError: there is none.
        """
        if not self.choices:
            raise ParameterError("sampler", None, "one with an answer; `skipped` has the reasons")
        return self.choices[0]

    def title(self) -> str:
        return f"least noise for {self.target}"

    def columns(self) -> tuple[str, ...]:
        """How batches are drawn, the noise, what that is on the mean gradient, and what must fit the memory."""
        return ("sampler", "batch_size", "noise_multiplier", "noise_of_mean", "steps", "largest_batch", "achieved")

    def rows(self) -> list[tuple[Cell, ...]]:
        each = ({**_numbers(one), "steps": getattr(one.answer.mechanism, "steps", None)} for one in self.choices)
        return [tuple(row[name] for name in self.columns()) for row in each]

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """Noise is rounded up; what is achieved, on the safe side."""
        return [None, None, True, True, None, None, self.target.grows_with_risk]

    def theorems(self) -> list[str]:
        return [key for one in self.choices for key in one.answer.assessment().theorems]

    def notes(self) -> list[str]:
        """What each sampler's number rests on, and which samplers were left out and why."""
        owned = ((one.sampler.name, one.answer.assessment().conditions) for one in self.choices)
        rests = conditions_by_whom(dict(owned).items())
        return [*(["What the numbers rest on:"] if rests else []), *rests, *self._left_out()]

    def _left_out(self) -> list[str]:
        sizes = ((one, f" at batches of {one.batch_size}" if one.batch_size else "") for one in self.skipped)
        return [f"{one.sampler.name}{size} left out: {one.reason}" for one, size in sizes]

    @property
    def document(self) -> SamplersDocument:
        """Every choice with its release, and who was left out."""
        rows = [
            SamplerRow(
                **_numbers(one) | {"achieved": strict(one.answer.achieved.value)},
                adversary=one.answer.adversary.name,
                neighbouring=one.answer.neighbouring.value,
                claim=one.answer.assessment().claim.value,
                mechanism=mechanism_record(one.answer.mechanism),
            )
            for one in self.choices
        ]
        skipped = [
            SamplerSkipped(sampler=one.sampler.name, batch_size=one.batch_size, reason=str(one.reason))
            for one in self.skipped
        ]
        return SamplersDocument(target=str(self.target), rows=rows, skipped=skipped)


def _numbers(one: Choice) -> dict[str, Any]:
    return {
        "sampler": one.sampler.name,
        "batch_size": one.batch_size,
        "largest_batch": one.largest_batch,
        "noise_multiplier": one.answer.value,
        "noise_of_mean": one.noise_of_mean,
        "achieved": one.answer.achieved.value,
    }


@hinting
def calibrate_samplers(
    target: Target | str | None = None,
    *,
    dataset_size: int,
    epochs: float,
    batch_size: int | Sequence[int] = (),
    memory: int | None = None,
    sampler: str | Sequence[str] = ANY,
    adversary: Who | None = None,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    progress: Callable[[str], None] | None = None,
    **limits: float,
) -> SamplerChoices:
    """Which sampler gives the least noise for this data set, these epochs and this memory?

    Args:
        target, limits, adversary, neighbouring, method: as for ``calibrate``.
        dataset_size: number of training records.
        epochs: passes over the data.
        batch_size: one or several; left out, each sampler gets the largest that fits the memory.
        memory: most records in one batch; truncated Poisson batches are cut there.
        sampler: one or several, or ``"any"``.
        progress: called with a few words before each search.

    Raises:
        ParameterError: an argument is missing or wrong.

    Example:
        >>> import reticent as rt
        >>> found = rt.calibrate_samplers(
        ...     advantage=0.1, dataset_size=6400, epochs=10, batch_size=64, sampler=["poisson", "shuffled"]
        ... )
        >>> found.best.sampler.name
        'poisson'
    """
    said = dict(locals())
    goal, progress = target_of(said.pop("target"), said.pop("limits")), said.pop("progress")
    return CalibrateSamplers.of(target=goal, **said).answer(progress)
