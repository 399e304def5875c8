"""The relaxed adversary: does not know the direction in which the target moves the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent import _check
from reticent.accountants import mu_limits
from reticent.adversaries.base import ADVERSARIES, Adversary, Assessment, Method
from reticent.adversaries.relaxed._answer import Answer, no_relaxed_curve
from reticent.adversaries.relaxed.dimension import DirectionLaw, relaxed_in, relaxed_replace, relaxed_under
from reticent.adversaries.relaxed.reacting_gradients import check_reaction, fitted_fields, reacting
from reticent.adversaries.relaxed.sign import laplace_sign, noncentrality, relaxed_dpsgd
from reticent.curves import RelaxedGaussianTradeOff, symmetrised
from reticent.curves.enclosure import Enclosure
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD, Gaussian, Laplace, Ledger, MatrixMechanism, Mechanism, Neighbouring, Sampler
from reticent.mechanisms.dpsgd import accountable, attained_shift, epoch_theorems
from reticent.mechanisms.gradients import Gradients, GradientsRecord
from reticent.mechanisms.ledger import parts_of
from reticent.proofs import Basis, Status, condition
from reticent.proofs.references import cite
from reticent.registry import described

_AVERAGE = (
    "The attacker does not know in which direction this record moves the result; it is the same direction in all "
    "releases. The number is an average over directions: a record whose direction can be guessed gets no relief. "
    "Features whose sign or pattern is known to everybody (counts, pixels, categories) can be guessed from."
)
_LOG_2 = "In one dimension the epsilon of showing that the record was used falls by at most log 2 = 0.693."
_SUBSAMPLED = "The attacker lacks one sign, the same in all steps. The number holds for any number of parameters."
_STATED = (
    "Dimension {}: whoever asked states that the attacker knows nothing about the direction of this record's gradient "
    "within a space of so many dimensions. What records share (a mean gradient, related records) makes that space "
    "smaller."
)
_PARAMETERS = (
    "{} was given as the number of trained parameters, too. Gradients of records share directions, so the dimension "
    "that can be defended is mostly far smaller; docs/relaxed-dimension.md says how to look at it."
)
_DRAWN = (
    "The direction of this record's gradient is taken as one more draw like those of {} other records; an attacker who "
    "knows more about it than their law gains more."
)
_TOGETHER = (
    "All records of one person are taken to move the result in one and the same direction, each by the full clip norm. "
    "The attacker does not know this direction; whoever knows how one of them moves it knows how all do."
)
_DIFFERENT = (
    "The runs differ in noise or sample rate: the answer is that of one unknown sign, the same in all of them, "
    "whatever the dimension. It is safe as well where the record moves different runs in different directions, if the "
    "attacker knows nothing that would change were all of these turned round together."
)
_APART = (
    "The attacker does not know in which direction any single record of the person moves the result, in any step. "
    "These directions may differ and depend on each other in any way. The number is an average over them. Whoever "
    "knows one of them is not covered."
)
_SAME_DIRECTION = "All participations of the record are taken to move the result in one and the same direction."
_DIFFERENCE = (
    "Replacement: the attacker knows nothing about the direction of the difference of both records; whoever knows one "
    "of the two knows a part of it."
)
_FIXED = ("fixed-length",)
_ONE_QUERY = (
    "One fixed query: given how far the record moves its answer, every direction is equally likely for this attacker."
)
_NEITHER = "Replacement: the attacker knows the direction of neither record; each is compared with its absence."


@ADVERSARIES.add
@dataclass(frozen=True, slots=True)
class Relaxed(Adversary):
    """Knows the training data and the size of the target's effect, not its direction (GLRT, maximin).

    Knows: every other record, the noise-free result without the target, how far the target moves it.
    Does not know: the direction of that move (for scalars: its sign), which is one and the same in all
    releases; which records were sampled; the noise.
    Claim: on the power averaged over a uniform direction. A bound for one release of a fixed query, and where
    ``gradients`` says how the model reacts; conditional for other training (docs/relaxed-reacting.md). The power
    against one fixed record can be that of the worst case: the one-sided test needs no magnitude.

    Attributes:
        dimension: of the space in which the direction is unknown to the attacker: a statement of the user, not a
            fact of the model. None states nothing: 1 for DP-SGD, the released coordinates for plain Gaussian releases.
            The number of trained parameters is allowed and noted; related gradients make the honest number smaller.
        gradients: how a record's gradient may react to the weights. ``fixed``: one direction, and a length that does
            not depend on it; training ensures this for no network, so the number is conditional. ``one-direction`` (a
            linear model with one output), ``linear-head`` (a last layer on frozen features) and ``any`` (the worst
            case) need no such condition. None is what the ledger of a run saw, else ``fixed``.
        known_share: with ``one-direction`` and ``linear-head``, how much of a gradient's squared length may lie in
            coordinates that everybody knows (the bias of a layer), in [0, 1].
        directions: in place of a dimension, inner products of gradients of records that are drawn as the target is. The
            curve is then an estimate, and private unless the law is declared public.

    Raises:
        ParameterError: ``dimension`` is not a whole number >= 1, ``directions`` stands beside a dimension or another
            kind of gradients, or ``known_share`` is no share or stands beside ``fixed``.

    Example:
        >>> import reticent as rt
        >>> plain, vector = rt.Gaussian(2.0), rt.Gaussian(2.0, dimension=30)
        >>> [round(rt.Relaxed().assess(what).measure(rt.advantage).value, 4) for what in (plain, vector)]
        [0.0581, 0.0128]
    """

    dimension: int | None = field(
        default=None, metadata=described("Dimensions in which the direction of the record is unknown to the attacker.")
    )
    directions: DirectionLaw | None = field(
        default=None, metadata=described("Directions of gradients of other records, in place of a dimension.")
    )
    gradients: Gradients | None = field(
        default=None,
        metadata=described("How a record's gradient reacts to the weights: fixed, one-direction, linear-head or any."),
    )
    known_share: float = field(
        default=0.0,
        metadata=described("Most of a gradient's squared length in coordinates that everybody knows, such as a bias."),
    )

    name: ClassVar[str] = "relaxed"
    title: ClassVar[str] = "Attacker who cannot tell the direction"
    knows: ClassVar[str] = "all other records and how far this one can move the result"
    averaged: ClassVar[bool] = True
    infers: ClassVar[str] = "whether this record was used, on average over all directions,"

    @property
    def reacts(self) -> bool:
        """Whether gradients may react to the weights."""
        return self.gradients not in (None, Gradients.FIXED)

    @property
    def label(self) -> str:
        """With the stated dimension."""
        return " ".join([self.name, *in_short(self.dimension, self.gradients)])

    @property
    def lacks(self) -> str:
        """With the stated dimension in words."""
        within = "" if self.dimension is None else f" in a space of {self.dimension} dimensions"
        return f"which way this record moves the result{within}"

    def fitted(self, form: GradientsRecord) -> Relaxed:
        return replace(self, **fitted_fields(self.dimension, self.gradients, self.known_share, form))

    def __post_init__(self) -> None:
        check_reaction(self.gradients, self.known_share)
        if self.directions is not None and self.gradients is not None:
            raise ParameterError("gradients", self.gradients, "left out where a law of directions is given")
        if self.dimension is not None:
            _check.count(dimension=self.dimension)
            if self.directions is not None:
                raise ParameterError("dimension", self.dimension, "left out where a law of directions is given")

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The maximin curve over a common unknown direction, or the worst case where none is proven.

        Args:
            mechanism: what was released.
            neighbouring: between which data sets.
            method: any; the answer is that of ``exact``.

        Raises:
            ParameterError: ``dimension`` exceeds the number of released coordinates or trained parameters.
            UnsupportedError: ``directions`` for anything but Poisson-sampled DP-SGD with noise, or for replacement.
        """
        if self.directions is not None:
            return self._under(self.directions, mechanism, neighbouring)
        _within(self.dimension, mechanism)
        said = Status.ASSUMED if self.gradients is None else Status.DECLARED
        if not self.reacts:
            found = _fixed_length(mechanism, neighbouring, self.dimension)
        else:
            kind = self.gradients or Gradients.ANY
            found = reacting(mechanism, neighbouring, self.dimension or 1, kind, self.known_share)
        lower, upper = mu_limits(mechanism, neighbouring)
        average = (_AVERAGE,) if found.average else ()
        return Assessment(
            adversary=self,
            neighbouring=neighbouring,
            method=Method.EXACT,
            basis=Basis.PROOF,
            curve=found.truth.pessimistic,
            truth=found.truth,
            theorems=cite(*dict.fromkeys((*found.keys, *_of_epochs(mechanism)))),
            conditions=(*mechanism.conditions, *(condition(key, said) for key in found.needs)),
            notes=(*average, *found.notes, *_stated(self.dimension, mechanism), *mechanism.notes),
            mu_limits=(lower if found.floor else 0.0, upper),
        )

    def _under(self, law: DirectionLaw, mechanism: Mechanism, neighbouring: Neighbouring) -> Assessment:
        """The estimate for a direction that is one more draw of ``law``."""
        if not isinstance(mechanism, DPSGD) or neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("a law of directions is answered for DP-SGD under add/remove and zero-out only")
        curve = relaxed_under(mechanism, law)
        low, value, high = law.advantage(mechanism)
        around = law.effective_dimension()
        notes = (
            _DRAWN.format(len(law.gram)),
            f"Resampling the records (95 %): bound on the advantage {low:.3g} to {high:.3g} around {value:.3g}; "
            f"effective dimension 1 / E<u, u'>^2 {around[0]:.3g} to {around[2]:.3g} around {around[1]:.3g}.",
        )
        return Assessment(
            adversary=self,
            neighbouring=neighbouring,
            method=Method.EXACT,
            basis=Basis.APPROXIMATION,
            curve=curve,
            truth=None,
            theorems=cite("RETICENT:second-moment", "RETICENT:hypercontractive", "RETICENT:one-normal"),
            conditions=mechanism.conditions,
            notes=notes + mechanism.notes,
            mu_limits=(0.0, mu_limits(mechanism, neighbouring)[1]),
            data_dependent=not law.public,
        )


def _fixed_length(mechanism: Mechanism, neighbouring: Neighbouring, stated: int | None) -> Answer:
    """The record moves all releases along one direction, by lengths that do not depend on it."""
    size = neighbouring.sensitivity
    match mechanism:
        case Gaussian(noise_multiplier=sigma, dimension=d) if sigma > 0.0:
            found = _common(noncentrality(mechanism, neighbouring), stated or d, size)
            return replace(found, needs=()).saying(_ONE_QUERY) if mechanism.releases == 1 else found
        case DPSGD(sampler=Sampler.FIXED_SIZE):  # the target displaces a record whose direction is known
            return no_relaxed_curve(mechanism, neighbouring)
        case DPSGD(noise_multiplier=sigma, sample_rate=1.0, steps=n) if sigma > 0.0:
            found = _common(n * (mechanism.records * size / sigma) ** 2, stated or 1, size)
            return _together(found) if mechanism.records > 1 else found
        case Ledger(parts=parts) if _one_direction(parts):
            return _common(noncentrality(mechanism, neighbouring), stated or _coordinates(mechanism) or 1, size)
        case Ledger(parts=parts) if runs := _unsampled(parts):
            lam = sum(run.steps * (run.records * size / run.noise_multiplier) ** 2 for run in runs)
            found = _common(lam, stated or 1, size)
            if any(getattr(part, "sample_rate", 1.0) < 1.0 for part in parts):  # shuffled: no data set shows as much
                found = found.below_unknown()
            return _together(found) if runs[0].records > 1 else found
        case Ledger(parts=parts) if run := _one_run(parts):
            return _fixed_length(run, neighbouring, stated)
        case Ledger(parts=parts) if size == 1.0 and all(map(_followed, parts)):
            return _schedule(mechanism, neighbouring, stated or 1)
        case MatrixMechanism(noise_multiplier=sigma) if sigma > 0.0:
            return _matrix(mechanism, neighbouring, stated)
        case Laplace(noise_multiplier=b, sample_rate=rate) if b > 0.0 and (rate == 1.0 or size == 1.0):
            once = mechanism.releases == 1 and rate == 1.0
            key = "KAISSIS2023:Theorem 1" if once else "RETICENT:laplace-sign"
            needs = () if once else ("fixed-length",)
            keys = (key, "RETICENT:relaxed-meaning")
            notes = (_LOG_2, _ONE_QUERY) if once else (_LOG_2,)
            return Answer(laplace_sign(mechanism, neighbouring), keys, notes, needs, floor=False)
        case DPSGD(noise_multiplier=sigma) if sigma > 0.0 and (size == 1.0 or stated is not None):
            return _sampled(mechanism, neighbouring, stated or 1)
        case _:
            return no_relaxed_curve(mechanism, neighbouring)


def _matrix(mechanism: MatrixMechanism, neighbouring: Neighbouring, stated: int | None) -> Answer:
    size = neighbouring.sensitivity
    if mechanism.sample_rate < 1.0:
        found = _fixed_length(mechanism.equivalent(), neighbouring, stated)
        found = found.below_unknown().standing_on("RETICENT:block-sampling")  # last columns are shorter
        return found.saying(_SAME_DIRECTION)
    below, above = (size / mechanism.equivalent(attained=a).noise_multiplier for a in (True, False))
    found = _common(above**2, stated or 1, size).standing_on("RETICENT:participation-sensitivity")
    return found.over(_common(below**2, stated or 1, size)).saying(_SAME_DIRECTION)


def _sampled(run: DPSGD, neighbouring: Neighbouring, dimension: int) -> Answer:
    if run.sampler is Sampler.SHUFFLED:
        return _epochs(run, neighbouring, dimension)
    if run.records > 1:
        return _person(run, neighbouring, dimension)
    keys: tuple[str, ...] = ("RETICENT:common-sign", "RETICENT:relaxed-meaning")
    if dimension > 1:
        keys += ("RETICENT:second-moment", "RETICENT:hypercontractive", "RETICENT:one-normal", "RETICENT:told-mask")
        keys += ("RETICENT:cut-moments", "RETICENT:norms-and-direction")
    if neighbouring is Neighbouring.REPLACE:
        return _replaced(run, dimension, keys)
    if dimension > 1:
        return Answer(relaxed_in(run, dimension), keys, (), _FIXED)
    return Answer(relaxed_dpsgd(run), keys, (_LOG_2, _SUBSAMPLED), _FIXED)


def _replaced(run: DPSGD, dimension: int, keys: tuple[str, ...]) -> Answer:
    return Answer(relaxed_replace(run, dimension), (*keys, "RETICENT:chain"), (_NEITHER,), _FIXED, floor=False)


def _epochs(run: DPSGD, neighbouring: Neighbouring, dimension: int) -> Answer:
    """Shuffled batches: each started epoch is one release of all records, in one direction."""
    keys = ("KAISSIS2022:Theorem 1", "KAISSIS2022:Theorem 2", "RETICENT:relaxed-meaning")
    if neighbouring is Neighbouring.REPLACE:
        found = _replaced(run, dimension, keys)
    else:
        found = Answer(relaxed_in(run, dimension), keys, (_LOG_2,) if dimension == 1 else (), _FIXED)
    return _together(found) if run.records > 1 else found


def _schedule(runs: Ledger, neighbouring: Neighbouring, dimension: int) -> Answer:
    """Sampled runs of one model that differ: one sign in all of them."""
    keys = ("RETICENT:common-sign", "RETICENT:relaxed-meaning")
    parts = [part for part in runs.parts if isinstance(part, DPSGD)]
    notes = (_DIFFERENT,) if dimension > 1 else (_DIFFERENT, _LOG_2, _SUBSAMPLED)
    found = Answer(relaxed_dpsgd(runs), keys, notes, _FIXED)
    if dimension > 1 or any(attained_shift(part, neighbouring) == 0.0 for part in parts):
        found = found.below_unknown()
    return _together(found.standing_on("RETICENT:whole-user-sign")) if parts[0].records > 1 else found


def _person(run: DPSGD, neighbouring: Neighbouring, dimension: int) -> Answer:
    """All records of one person: the sign needs one direction for all of them, moments in d dimensions do not."""
    if dimension == 1:
        if neighbouring is Neighbouring.REPLACE:
            return no_relaxed_curve(run, neighbouring)
        keys = ("RETICENT:common-sign", "RETICENT:relaxed-meaning", "RETICENT:whole-user-sign")
        return _together(Answer(relaxed_in(run, 1), keys, (_LOG_2,), _FIXED))
    keys = ("RETICENT:relaxed-meaning", "RETICENT:whole-user-directions", "RETICENT:hypercontractive")
    proven = (*keys, "RETICENT:one-normal", "RETICENT:whole-user-dominance")
    if neighbouring is Neighbouring.REPLACE:
        found = _replaced(run, dimension, proven)
    else:
        found = Answer(relaxed_in(run, dimension), proven, (), _FIXED)
    apart = (*_FIXED, "independent-directions")
    return replace(found, needs=apart, average=False).saying(_APART)


def _together(found: Answer) -> Answer:
    """The same where all records of a person move the result in one direction."""
    return replace(found, needs=(*found.needs, "one-direction-per-person")).saying(_TOGETHER)


def _common(lam: float, dimension: int, size: float) -> Answer:
    keys = ("KAISSIS2022:Theorem 1", "KAISSIS2022:Theorem 2", "RETICENT:relaxed-meaning")
    notes = (_LOG_2,) if dimension == 1 else (_DIFFERENCE,) if size > 1.0 else ()
    return Answer(Enclosure.exact(symmetrised(RelaxedGaussianTradeOff(lam, dimension))), keys, notes, _FIXED)


def _one_direction(parts: tuple[Mechanism, ...]) -> bool:
    """Whether all parts are noisy Gaussian releases of vectors of one dimension."""
    gaussian = [part for part in parts if isinstance(part, Gaussian) and part.noise_multiplier > 0.0]
    return len(gaussian) == len(parts) and len({part.dimension for part in gaussian}) == 1


def _unsampled(parts: tuple[Mechanism, ...]) -> list[DPSGD]:
    """DP-SGD whose every counted release uses all records, with noise; nothing where a part is something else."""
    runs = [accountable(part) for part in parts if isinstance(part, DPSGD) and part.sampler is not Sampler.FIXED_SIZE]
    whole = [run for run in runs if run.sample_rate == 1.0 and run.noise_multiplier > 0.0]
    return whole if len(whole) == len(parts) else []


def _followed(part: Mechanism) -> bool:
    """Whether one unknown sign can be followed through this part of a ledger."""
    return isinstance(part, DPSGD) and part.sampler is not Sampler.FIXED_SIZE and part.noise_multiplier > 0.0


def _one_run(parts: tuple[Mechanism, ...]) -> DPSGD | None:
    """The Poisson-sampled run whose steps these are, where nothing but their number differs."""
    runs = [part for part in parts if isinstance(part, DPSGD) and part.sampler is Sampler.POISSON]
    if len(runs) < len(parts) or len({replace(run, steps=1) for run in runs}) > 1:
        return None
    return replace(runs[0], steps=sum(run.steps for run in runs))


def _of_epochs(mechanism: Mechanism) -> tuple[str, ...]:
    """What shuffled runs are counted by, whoever attacks."""
    keys = (key for part in parts_of(mechanism) if isinstance(part, DPSGD) for key in epoch_theorems(part))
    return tuple(dict.fromkeys(keys))


def _coordinates(mechanism: Mechanism) -> int | None:
    """How many numbers each release has, where that is known."""
    match mechanism:
        case Gaussian(dimension=d):
            return d
        case DPSGD(num_parameters=d):
            return d
        case Laplace():
            return 1
        case Ledger(parts=parts):
            return min((d for d in map(_coordinates, parts) if d is not None), default=None)
        case _:
            return None


def _within(dimension: int | None, mechanism: Mechanism) -> None:
    """A direction cannot be unknown in more dimensions than a release has."""
    most = _coordinates(mechanism)
    if dimension is not None and most is not None and dimension > most:
        raise ParameterError("dimension", dimension, f"at most {most}, the number of released coordinates")


_SHORT = {Gradients.ONE_DIRECTION: "line", Gradients.LINEAR_HEAD: "head"}


def in_short(dimension: int | None, gradients: Gradients | None) -> list[str]:
    """The parameters that tell one relaxed attacker from another, as a table has room for them."""
    form = [] if gradients is None else [_SHORT.get(gradients, gradients.value)]
    return form if dimension is None else [*form, f"d={dimension}"]


def _stated(dimension: int | None, mechanism: Mechanism) -> tuple[str, ...]:
    """What a stated dimension means, and that of all parameters."""
    if dimension is None or dimension == 1:
        return ()
    parameters = isinstance(mechanism, DPSGD) and dimension == mechanism.num_parameters
    return (_STATED.format(dimension), *([_PARAMETERS.format(dimension)] if parameters else []))
