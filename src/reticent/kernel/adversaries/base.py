"""What an adversary is, what an assessment of one says, and the one list of adversaries that all others are made from.

An adversary turns *what was released* into a trade-off curve together with the claim that the curve
carries. Adding one takes a file in this folder and its line in ``__init__.pyi``. An adversary of your own takes a file
and an entry point of your package; docs/development/extending.md shows how.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from reticent.kernel import risk
from reticent.kernel.curves import TradeOff, from_advantage, no_privacy
from reticent.kernel.curves.enclosure import Enclosure, Interval
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Basis, Claim, Condition, Formula, Proof, Status, claim_of
from reticent.kernel.proofs.proof import Derived
from reticent.kernel.registry import Choice, Parameter, Registry, parameters_of, told, typed
from reticent.kernel.styles import SPARE, Style
from reticent.kernel.text import Brief, digits, one_of

if TYPE_CHECKING:
    from reticent.kernel.adversaries.witness import Witness
    from reticent.kernel.samplers import Run
    from reticent.mechanisms.gradients import GradientsRecord

_ROUNDING = 1e-9  # by which, relative, the two ends of an enclosure may be exchanged
_LEAST = 1e-14  # and absolute


class Method(StrEnum):
    """How an adversary's curve is evaluated."""

    EXACT = "exact"
    CLOSED_FORM = "closed-form"
    CLT = "clt"
    PROVEN = "proven"
    PUBLISHED = "published"
    """A formula as a paper prints it, for reproduction only; it may be unsafe."""


@dataclass(frozen=True, repr=False)
class Assessment(Brief):
    """One adversary against one release.

    Attributes:
        adversary: who attacks.
        neighbouring: between which data sets.
        method: how the curve was evaluated.
        proofs: what is proven of the attacker's curve, one proof for each set of conditions (``proofs.best``). The
            first one is the answer. Empty where nothing is proven.
        formula: the curve that is claimed in its place, where a closed form was asked for or nothing is proven.
        data_dependent: the numbers depend on private data and must not be published as they are.
    """

    adversary: Adversary
    neighbouring: Neighbouring
    method: Method
    proofs: tuple[Proof, ...]
    formula: Formula | None = None
    data_dependent: bool = False

    @property
    def _claimed(self) -> Proof | Formula:
        return self.formula or self.proofs[0]

    @property
    def basis(self) -> Basis:
        """How ``curve`` was found."""
        return Basis.PROOF if self.formula is None else self.formula.basis

    @property
    def claim(self) -> Claim:
        """The strength of ``curve``."""
        return claim_of(self.basis, self.conditions)

    @property
    def curve(self) -> TradeOff:
        """The curve that is claimed; for a bound, on the safe side."""
        return self.formula.curve if self.formula is not None else self.proofs[0].enclosure.pessimistic

    @property
    def truth(self) -> Enclosure | None:
        """What encloses the exact curve of the stated model; None where nothing is proven.

        Where a note says that the answer is the worst case, it encloses that.
        """
        return self.proofs[0].enclosure if self.proofs else None

    @property
    def theorems(self) -> tuple[str, ...]:
        """Keys of ``reticent.kernel.proofs.references`` that ``curve`` follows from."""
        return self._claimed.theorems

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the numbers rest on, with who vouches for it; first what makes the claim conditional."""
        return self._claimed.conditions

    @property
    def notes(self) -> tuple[Message, ...]:
        """What else a reader must know; then what went wrong in the enclosure, which is known once it is composed."""
        found = (*self._claimed.notes, *(self.truth.notes if self.truth is not None else ()))
        return tuple(dict.fromkeys(map(said, found)))

    @property
    def mu_limits(self) -> tuple[float, float]:
        """(lower, upper) around mu of ``truth``, known from the release and not from points of the curve."""
        if self.proofs:
            return self.proofs[0].mu
        return 0.0, math.inf if self.formula is None else self.formula.most_mu

    @property
    def lacks(self) -> Message | None:
        """What the attacker does not know of this release; completes "does not know ..."; None for nothing."""
        own, present = self.adversary.lacks, {one.key for one in self.conditions}
        hidden = [what for key, what in _HIDDEN.items() if key in present]
        if not own:
            return Message(f"lacks.{'-'.join(hidden)}") if hidden else None
        return Message("-".join(["lacks.own", *hidden]), what=said(own)) if hidden else said(own)

    def vouched(self, statuses: Mapping[str, Status]) -> Assessment:
        """The same with what is known about its conditions, by key; the claim follows."""
        return self._with(lambda one: one.vouched(statuses))

    def under(self, *conditions: Condition) -> Assessment:
        """The same under more conditions."""
        return self._with(lambda one: one.under(*conditions))

    def prefaced(self, *notes: Message | str) -> Assessment:
        """The same with notes that come first."""
        return self._with(lambda one: one.prefaced(*notes))

    def _with(self, change: Callable[[Derived], Derived]) -> Assessment:
        formula = None if self.formula is None else change(self.formula)
        return replace(self, proofs=tuple(map(change, self.proofs)), formula=formula)  # type: ignore[arg-type]

    def _lines(self) -> list[str]:
        value = f"{digits(self.measure(risk.advantage).value, up=True if self.claim.proven else None)} ({self.claim})"
        return [f"{self.adversary.name}, {self.neighbouring}: advantage {STRENGTH[self.claim]} {value}"]

    def measure(self, number: Callable[..., float], *at: float) -> Interval:
        """Read ``number(curve, *at)`` off the curve, with its enclosure from ``truth``; infinite ends without one.

        Where the two ends differ by rounding only they are one number. Where they contradict each other by
        more, nothing is enclosed, and a proof claims the larger risk.
        """
        value = float(number(self.curve, *at))
        if self.truth is None:
            return Interval(-math.inf, value, math.inf)
        same = self.truth.pessimistic is self.curve
        ends = float(number(self.truth.optimistic, *at)), value if same else float(number(self.truth.pessimistic, *at))
        falls = _falls(number, *at)
        lower, upper = ends[::-1] if falls else ends
        lower = 0.0 if lower == math.ulp(0.0) else lower  # what stands for less than it is an upper end alone
        if lower > upper and not math.isclose(lower, upper, rel_tol=_ROUNDING, abs_tol=_LEAST):
            larger = (min if falls else max)(ends) if same else value
            return Interval(-math.inf, larger, math.inf)
        return Interval(lower, value, max(lower, upper)) if falls else Interval(min(lower, upper), value, upper)

    def mu(self) -> Interval:
        """The smallest mu such that the curve is mu-GDP at every error rate; infinite where none is proven.

        An estimate states the mu of its own curve.
        """
        low, high = self.mu_limits
        if low == high and self.truth is not None and self.curve is self.truth.pessimistic:
            return Interval(low, high, high)
        value = risk.mu(self.curve)
        if self.claim.proven or not math.isfinite(value):
            value = min(value, high)
        if self.truth is None:
            return Interval(-math.inf, value, math.inf)
        upper = min(risk.mu(self.truth.pessimistic), high)
        lower = max(low, risk.mu_above(self.truth.optimistic))
        return Interval(min(lower, upper), value, upper)  # where both are exact, rounding may exchange them

    def mu_above(self, floor: float) -> Interval:
        """``risk.mu_above`` at ``floor``; a mu that holds at every error rate holds there too.

        Args:
            floor: the smallest error rate that counts.
        """
        found, most = self.measure(risk.mu_above, floor), self.mu_limits[1]
        if not most < found.upper:
            return found
        value = min(found.value, most) if self.claim.proven or not math.isfinite(found.value) else found.value
        return Interval(min(found.lower, most), value, most)


_HIDDEN = {"hidden-draws": "draws", "unpredictable-noise": "noise"}
STRENGTH = {
    Claim.BOUND: "at most",
    Claim.CONDITIONAL: "on conditions at most",
    Claim.ESTIMATE: "about",
    Claim.EMPIRICAL: "as measured",
}
"""The words before a number, by claim."""


@lru_cache(maxsize=64)  # many enclosures are read by few numbers
def _falls(number: Callable[..., float], *at: float) -> bool:
    """Whether a number is smaller where there is more risk, as Bayes security is."""
    with np.errstate(all="ignore"):
        return float(number(no_privacy(), *at)) < float(number(from_advantage(0.0), *at))


class Hidden(NamedTuple):
    """A direction that an attacker lacks.

    Attributes:
        dimension: of the space in which it is unknown; None states none.
        share: the probability that the attacker lacks it.
    """

    dimension: int | None
    share: float


class Stated(NamedTuple):
    """What a closed form says, without its proof.

    Attributes:
        mu: of a Gaussian curve; None where the form states none.
        advantage: of the line that follows from it alone; of no account where mu is stated.
    """

    mu: float | None
    advantage: float = 0.0


class Adversary(Choice, ABC):
    """Who attacks: a frozen dataclass with a name, sentences for people, and one method.

    Its fields are its parameters (``reticent.kernel.registry.described``). The first line of the docstring is shown
    to people.

    Attributes:
        name: as the command line and documents spell it.
        title: in people's words.
        short: a few words for a chip below the name; the title where nothing is stated.
        also: as other papers call it.
        style: how its curve is drawn; one of ``reticent.kernel.styles.SPARE`` where nothing is stated.
        averaged: whether the numbers are averages over what the attacker does not know.
        relation: the neighbouring relation that is meant where none is stated.
        methods: how it can be evaluated; the first is meant where none is stated.
        knows: completes "an attacker who knows ...".
        lacks: completes "does not know ..."; draws and noise are added. Empty where there is nothing else.
        infers: completes "can raise a 50% guess of ...".
        unmeasured: why it is left out where nobody measured what it needs; None where it needs nothing.
        needs: the field that a run has to state or measure; see ``knowing``.
        counts_parameters: it needs the number of released coordinates, where the release states it.
        by_name_only: not among "all": a published formula that is kept for reproduction.
        every_step: it may see the model after every step.
        every_test: its curve bounds every test of every two neighbouring data sets, one-sided ones too. Then it bounds
            whoever guesses a secret, or reconstructs a record.
        strongest: nobody knows more: all others are compared with it.
        keeps_mu: mu of its exact curve is that of the strongest.
        beside: of a mixture with the strongest, the name of the other one.
        repeated: key of what a page says where ``name`` has the same numbers.
    """

    __slots__ = ()

    name: ClassVar[str]
    title: ClassVar[Message | str]
    short: ClassVar[str] = ""
    also: ClassVar[tuple[str, ...]] = ()
    style: ClassVar[Style | None] = None
    averaged: ClassVar[bool] = False
    relation: ClassVar[Neighbouring] = Neighbouring.ADD_REMOVE
    methods: ClassVar[tuple[Method, ...]] = (Method.EXACT,)
    infers: ClassVar[Message | str]
    unmeasured: ClassVar[Message | str | None] = None
    needs: ClassVar[str | None] = None
    counts_parameters: ClassVar[bool] = False
    by_name_only: ClassVar[bool] = False
    every_step: ClassVar[bool] = True
    every_test: ClassVar[bool] = False
    strongest: ClassVar[bool] = False
    keeps_mu: ClassVar[bool] = False
    beside: ClassVar[str | None] = None
    repeated: ClassVar[str] = "repeats"

    @classmethod
    def knowing(cls, **measured: Any) -> Self:
        """The attacker with what it needs of what a run measured or states, by field; its own defaults for the rest."""
        return cls(**{name: value for name, value in measured.items() if name == cls.needs})

    @property
    def hidden(self) -> Hidden | None:
        """The direction that it lacks; None where that is none, or one that may change with the weights."""
        return None

    def stated(self, run: Run, neighbouring: Neighbouring, method: Method) -> Stated | None:
        """What a closed form states of a sampled run with noise, in microseconds; None where there is none."""
        return None

    def is_worst_by(self, method: Method) -> bool:
        """Whether its curve by this method is that of the strongest."""
        return self.strongest

    def fitted(self, form: GradientsRecord) -> Self:
        """The same attacker, with its open parameters as the model of a run has them.

        Raises:
            ParameterError: a parameter contradicts what was seen.
        """
        return self

    def checked_by(self, witness: Witness) -> dict[str, Status]:
        """Conditions of this attacker's own that a ledger establishes, by key."""
        return {}

    @property
    def label(self) -> str:
        """The name, and each parameter that is not at its default: numbers to 7 digits, of a law its parameter."""
        return " ".join([self.name, *starmap(self._brief, told(self).items())])

    @staticmethod
    def _brief(parameter: str, value: Any) -> str:
        """A parameter as a label has room for it; a choice is its value alone."""
        if isinstance(value, str):
            return str(value)
        number = f"={value:.7g}" if isinstance(value, (int, float)) else ""
        return parameter.replace("_", "-") + number

    @property
    @abstractmethod
    def knows(self) -> Message | str:
        """See the class."""

    @property
    @abstractmethod
    def lacks(self) -> Message | str:
        """See the class."""

    @abstractmethod
    def assess(self, mechanism: Mechanism, neighbouring: Neighbouring, method: Method) -> Assessment:
        """Assess ``mechanism``.

        Args:
            mechanism: what was released.
            neighbouring: between which data sets.
            method: how the curve is evaluated, of ``methods``.

        Raises:
            UnsupportedError: nothing proven is known for this combination; the text says what is.
        """


ADVERSARIES: Registry[Adversary] = Registry("attacker", "reticent.adversaries", Adversary, "reticent.adversaries")
"""In the order in which certificates and tables show them."""

ALL = "all"


def refuse_one_sided(who: Adversary) -> None:
    """Refuse an attacker whose curve bounds nobody who guesses a secret, or recovers a record.

    Raises:
        UnsupportedError: the attacker is one.
    """
    if not who.every_test:
        known = " or ".join(name for name, kind in ADVERSARIES.items() if kind.every_test)
        raise UnsupportedError(
            f"{who.name} bounds nobody who guesses a secret or recovers a record: its curve is no limit for one-sided "
            f"tests; use {known}"
        )


def adversary_parameters() -> Iterator[tuple[str, Parameter]]:
    """(name of the attacker, parameter) for all that can be typed."""
    for name, kind in ADVERSARIES.items():
        for parameter in parameters_of(kind):
            if parameter.typeable:
                yield name, parameter


def adversaries_named(
    names: Sequence[str], given: dict[str, Any] | None = None, option: str = "adversary"
) -> tuple[tuple[Adversary, ...], bool]:
    """The attackers of these names, in order and without repeats; and whether all of them were asked for.

    Args:
        names: as typed; ``all`` means every one that is not kept for reproduction only.
        given: parameters by field name; None where nothing was given.
        option: that the names come from, for errors.

    Raises:
        ParameterError: a name is unknown, or a parameter is given that no attacker named here has.
    """
    everything = ALL in names
    kinds = [adversary_called(name, option) for name in dict.fromkeys(names) if name != ALL]
    kinds = list(dict.fromkeys([*everybody().values(), *kinds])) if everything else kinds
    stated = {name: value for name, value in (given or {}).items() if value is not None}
    taken = {kind: [p for p in parameters_of(kind) if p.name in stated] for kind in kinds}
    for name in stated:
        if not any(p.name == name for parameters in taken.values() for p in parameters):
            takers = [who for who, parameter in adversary_parameters() if parameter.name == name]
            wanted = f"left out unless --{option} {' or '.join(takers)} is asked for"
            raise ParameterError(name, stated[name], wanted, shown=False)
    return tuple(kind(**{p.name: typed(p, stated[p.name]) for p in taken[kind]}) for kind in kinds), everything


def adversary_called(name: str, option: str = "adversary") -> type[Adversary]:
    """The attacker of this name.

    Raises:
        ParameterError: there is none; the message lists those that are shown to people, and asks about the nearest.
    """
    if name in ADVERSARIES:
        return ADVERSARIES[name]
    shown = [*everybody(), ALL]
    said = name.strip().lower().replace("_", "-").replace(" ", "-")
    meant = next((known for known, kind in ADVERSARIES.items() if said in kind.also), None)
    hint = one_of(name, shown) if meant is None else f"one of {', '.join(shown)} (did you mean {meant}?)"
    raise ParameterError(option, name, hint)


def standard_adversaries(**measured: Any) -> tuple[Adversary, ...]:
    """All that need no measurement, with their own defaults, and those that need what is known of a run, by field."""
    kinds = ADVERSARIES.values()
    asked = (k for k in kinds if not (k.by_name_only or k.unmeasured) or measured.get(k.needs or "") is not None)
    return tuple(kind.knowing(**measured) for kind in asked)


def everybody() -> dict[str, type[Adversary]]:
    """What "all" means: every attacker but those that are kept for reproduction, by name."""
    return {name: kind for name, kind in ADVERSARIES.items() if not kind.by_name_only}


def style_of(attacker: str) -> Style:
    """How the curve of the attacker with this name is drawn; of one that is not known, as the first without a style."""
    if (kind := ADVERSARIES.get(attacker)) is not None and kind.style is not None:
        return kind.style
    unstyled = [name for name, kind in ADVERSARIES.items() if kind.style is None]
    return SPARE[unstyled.index(attacker) % len(SPARE) if attacker in unstyled else 0]
