"""The relaxed adversary: does not know the direction in which the target moves the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent.adversaries.relaxed import dimension as vectors
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.adversaries.relaxed.direction_unknown import DIMENSION, GRADIENTS, KNOWN_SHARE, DirectionUnknown
from reticent.adversaries.relaxed.fixed_length import as_one_run, fixed_length, released_coordinates
from reticent.adversaries.relaxed.question import Question
from reticent.adversaries.relaxed.reacting_gradients import FORMS, check_reaction, reacting
from reticent.kernel import checks
from reticent.kernel.accountants import mu_limits
from reticent.kernel.adversaries.base import Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Formula, Proof, Status, best, without_repeats
from reticent.kernel.registry import described
from reticent.kernel.styles import Style
from reticent.mechanisms.gradients import Gradients

_LIMIT = (
    "As published: mu {:.6g} in {} dimensions, the limit of many dimensions and little effect. It is no bound: at low "
    "false positive rates it states less risk than there is (KAISSIS2022:G8)."
)
_DRAWN = (
    "The direction of this record's gradient is taken as one more draw like those of {} other records; an attacker who "
    "knows more about it than their law gains more."
)

_SAID = {"fixed-length", "same-features", "known-share", *FORMS.values()}
"""Conditions that the form of the gradients states, where somebody names it; it says nothing about persons."""


@dataclass(frozen=True, slots=True)
class Relaxed(DirectionUnknown):
    """Knows the training data and the size of the target's effect, not its direction (GLRT, maximin).

    By RETICENT:relaxed-meaning.

    Knows: every other record, the noise-free result without the target, how far the target moves it.
    Does not know: the direction of that move (for scalars: its sign), which is one and the same in all
    releases; which records were sampled; the noise.
    Claim: on the power averaged over a uniform direction. A bound for one release of a fixed query, and where
    ``gradients`` says how the model reacts; conditional for other training (docs/theory/relaxed/reacting.md). The power
    against one fixed record can be that of the worst case: the one-sided test needs no magnitude.

    Attributes:
        dimension: of the space in which the direction is unknown to the attacker: a statement of the user, not a
            fact of the model. None states nothing: 1 for DP-SGD, the released coordinates for plain Gaussian releases.
            The number of trained parameters is allowed and noted; related gradients make the honest number smaller.
        gradients: how a record's gradient may react to the weights. ``fixed``: one direction, and a length that does
            not depend on it; training ensures this for no network, so the number is conditional. ``one-direction`` (a
            linear model with one output), ``hard-label-head`` (a last layer on frozen features, cross-entropy with one
            label for each record), ``linear-head`` (any loss) and ``any`` (the worst case) need no such condition. None
            is what the ledger of a run saw, else ``fixed``.
        known_share: with ``one-direction`` and both heads, how much of a gradient's squared length may lie in
            coordinates that everybody knows (the bias of a layer), in [0, 1].
        directions: instead of a dimension, inner products of gradients of records that are drawn as the target is. The
            curve is then an estimate, and private unless the law is declared public.

    Raises:
        ParameterError: ``dimension`` is not a whole number >= 1, ``directions`` is given with a dimension or with
            gradients, or ``known_share`` is no share or is given with ``fixed``.

    Example:
        >>> import reticent as rt
        >>> plain, vector = rt.Gaussian(2.0), rt.Gaussian(2.0, dimension=30)
        >>> [round(rt.Relaxed().assess(what).measure(rt.advantage).value, 4) for what in (plain, vector)]
        [0.0581, 0.0128]
    """

    dimension: int | None = field(default=None, metadata=DIMENSION)
    directions: DirectionLaw | None = field(
        default=None, metadata=described("Directions of gradients of other records, instead of a dimension.")
    )
    gradients: Gradients | None = field(default=None, metadata=GRADIENTS)
    known_share: float = field(default=0.0, metadata=KNOWN_SHARE)

    name: ClassVar[str] = "relaxed"
    title: ClassVar[Message | str] = Message("attacker.relaxed")
    short: ClassVar[str] = "direction unknown"
    also: ClassVar[tuple[str, ...]] = ("glrt",)
    style: ClassVar[Style] = Style("#c95f1c", (8, 3), "#b84700", "#ff9a5c")
    knows: ClassVar[Message | str] = Message("knows.others")
    averaged: ClassVar[bool] = True
    methods: ClassVar[tuple[Method, ...]] = (Method.EXACT, Method.PUBLISHED)
    infers: ClassVar[Message | str] = Message("infers.used-all-directions")

    @property
    def reacts(self) -> bool:
        """Whether gradients may react to the weights."""
        return self.gradients not in (None, Gradients.FIXED)

    @property
    def lacks(self) -> Message:
        """With the stated dimension."""
        if self.dimension is None:
            return Message("lacks.direction")
        return Message("lacks.direction-in", dimension=Figure(str(self.dimension)))

    def __post_init__(self) -> None:
        check_reaction(self.gradients, self.known_share)
        if self.dimension is not None:
            checks.count(dimension=self.dimension)
        for name, value in (("gradients", self.gradients), ("dimension", self.dimension)):
            if self.directions is not None and value is not None:
                raise ParameterError(name, value, "left out where a law of directions is given", shown=False)

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The maximin curve over a common unknown direction, or the worst case where none is proven.

        Args:
            mechanism: what was released.
            neighbouring: between which data sets.
            method: ``exact``, or ``published``: mu-GDP by Eq. (37) of KAISSIS2022, which understates low rates.

        Raises:
            ParameterError: ``dimension`` exceeds the number of released coordinates or trained parameters.
            UnsupportedError: ``directions`` for anything but Poisson-sampled DP-SGD with noise, or for replacement;
                ``published`` for anything but Gaussian noise in every step without sampling.
        """
        if method is Method.PUBLISHED:
            return self._published(mechanism, neighbouring)
        if self.directions is not None:
            return self._under(self.directions, mechanism, neighbouring)
        _within(self.dimension, mechanism)
        release = mechanism if self.reacts else as_one_run(mechanism)
        worst = worst_case_proof(release, neighbouring)
        own = self._proof(Question(release, neighbouring, self.dimension, worst.mu))
        notes = (*_stated(self.dimension, mechanism), *mechanism.notes)
        if own is None:
            proofs: tuple[Proof, ...] = (replace(worst, notes=(self._why_not(release), *notes)),)
        else:
            stated = own.under(*mechanism.conditions_under(neighbouring)).saying(*notes)
            proofs = without_repeats(best([stated, worst.from_above()]))
        epochs = _of_epochs(mechanism)
        return Assessment(self, neighbouring, Method.EXACT, tuple(proof.citing(*epochs) for proof in proofs))

    def _published(self, mechanism: Mechanism, neighbouring: Neighbouring) -> Assessment:
        """mu-GDP with mu = N (sensitivity/noise)^2 / sqrt(2 d) for N releases: KAISSIS2022:Theorem 3."""
        run = mechanism.sums
        told = neighbouring is Neighbouring.REPLACE or self.directions is not None or self.reacts
        if run is None or run.sample_rate < 1.0 or told:
            raise UnsupportedError(
                "Eq. (37) of KAISSIS2022 is published for Gaussian noise without sampling, records added or removed, "
                "and a direction that stays; with sampling the published pipeline is norm-only"
            )
        mechanism.one_record("Eq. (37)")
        _within(self.dimension, mechanism)
        dimension = self.dimension or run.num_parameters or 1
        mu = run.steps / checks.positive(noise_multiplier=run.noise_multiplier) ** 2 / math.sqrt(2.0 * dimension)
        formula = Formula(
            GaussianTradeOff(mu),
            theorems=("KAISSIS2022:Theorem 3",),
            conditions=mechanism.conditions_under(neighbouring),
            notes=(_LIMIT.format(mu, dimension), *mechanism.notes),
        )
        return Assessment(self, neighbouring, Method.PUBLISHED, (), formula)

    def _proof(self, asked: Question) -> Proof | None:
        """What is proven beyond the worst case; None where nothing is."""
        if self.gradients is None:
            return fixed_length(asked)
        found = reacting(asked, self.gradients, self.known_share) if self.reacts else fixed_length(asked)
        return found and found.vouched(dict.fromkeys(found.needs & _SAID, Status.DECLARED))

    def _why_not(self, mechanism: Mechanism) -> Message:
        if self.gradients is Gradients.ANY:
            return Message("note.any-gradients")
        several = len(mechanism.parts) > 1
        return Message("note.not-proven", release=Message("release.several" if several else "release.this"))

    def _under(self, law: DirectionLaw, mechanism: Mechanism, neighbouring: Neighbouring) -> Assessment:
        """The estimate for a direction that is one more draw of ``law``."""
        run = mechanism.training
        if run is None or neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("a law of directions is answered for DP-SGD under add/remove and zero-out only")
        curve = vectors.relaxed_under(run, law)
        low, value, high = law.advantage(run)
        around = law.effective_dimension()
        notes = (
            _DRAWN.format(len(law.gram)),
            f"Resampling the records (95 %): bound on the advantage {low:.3g} to {high:.3g} around {value:.3g}; "
            f"effective dimension 1 / E<u, u'>^2 {around[0]:.3g} to {around[2]:.3g} around {around[1]:.3g}.",
        )
        formula = Formula(
            curve,
            theorems=("RETICENT:second-moment", "RETICENT:hypercontractive", "RETICENT:one-normal"),
            conditions=mechanism.conditions_under(neighbouring),
            notes=notes + mechanism.notes,
            most_mu=mu_limits(mechanism, neighbouring)[1],
        )
        return Assessment(self, neighbouring, Method.EXACT, (), formula, data_dependent=not law.public)


def _of_epochs(mechanism: Mechanism) -> tuple[str, ...]:
    """What shuffled runs are counted by, for every attacker."""
    runs = (run for part in mechanism.parts if (run := part.training) is not None)
    keys = (key for run in runs for key in run.sampler.theorems(run))
    return tuple(dict.fromkeys(keys))


def _within(dimension: int | None, mechanism: Mechanism) -> None:
    """A direction cannot be unknown in more dimensions than a release has."""
    most = released_coordinates(mechanism)
    if dimension is not None and most is not None and dimension > most:
        raise ParameterError("dimension", dimension, f"at most {most}, the number of released coordinates")


def _stated(dimension: int | None, mechanism: Mechanism) -> tuple[Message, ...]:
    """What a stated dimension means, and that of all parameters."""
    if dimension is None or dimension == 1:
        return ()
    parameters = mechanism.training is not None and dimension == mechanism.coordinates
    keys = ("note.dimension", "note.parameters") if parameters else ("note.dimension",)
    return tuple(Message(key, dimension=Figure(str(dimension))) for key in keys)
