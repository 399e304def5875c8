"""The relaxed attacker where a record moves all releases along one direction, by lengths that do not depend on it.

Which theorem answers a release, and what it needs. docs/concepts/conditions.md has what each theorem assumes about
training.
"""

from __future__ import annotations

from dataclasses import replace

from reticent.adversaries.relaxed.dimension import relaxed_in, relaxed_replace
from reticent.adversaries.relaxed.question import Question
from reticent.adversaries.relaxed.sign import laplace_sign, noncentrality, relaxed_dpsgd
from reticent.curves import RelaxedGaussianTradeOff, symmetrised
from reticent.curves.enclosure import Enclosure
from reticent.mechanisms import DPSGD, Gaussian, Laplace, Ledger, MatrixMechanism, Mechanism, Neighbouring
from reticent.mechanisms.dpsgd import accountable
from reticent.mechanisms.ledger import parts_of
from reticent.proofs import Proof, condition

_LOG_2 = "In one dimension the epsilon of showing that the record was used falls by at most log 2 = 0.693."
_SUBSAMPLED = "The attacker lacks one sign, the same in all steps. The number holds for any number of parameters."
_TOGETHER = (
    "All records of one person are taken to move the result in one and the same direction, each by the full clip norm. "
    "The attacker does not know this direction; knowing how one of them moves it is knowing how all do."
)
_DIFFERENT = (
    "The runs differ in noise or sample rate: the answer is that of one unknown sign, the same in all of them, "
    "whatever the dimension. It is safe as well where the record moves different runs in different directions, if the "
    "attacker knows nothing that would change were all of these turned round together."
)
_APART = (
    "The attacker does not know in which direction any single record of the person moves the result, in any step. "
    "These directions may differ and depend on each other in any way. The number is an average over them. Someone who "
    "knows one of them is not covered."
)
_SAME_DIRECTION = "All participations of the record are taken to move the result in one and the same direction."
_DIFFERENCE = (
    "Replacement: the attacker knows nothing about the direction of the difference of both records; someone who knows "
    "one of the two knows a part of it."
)
_ONE_QUERY = (
    "One fixed query: given how far the record moves its answer, every direction is equally likely for this attacker."
)
_NEITHER = "Replacement: the attacker knows the direction of neither record; each is compared with its absence."
NOTES = (_LOG_2, _SUBSAMPLED, _TOGETHER, _DIFFERENT, _APART, _SAME_DIRECTION, _DIFFERENCE, _ONE_QUERY, _NEITHER)
"""What may be said about a number."""
_GLRT = ("KAISSIS2022:Theorem 1", "KAISSIS2022:Theorem 2", "RETICENT:relaxed-meaning")
_SIGN = ("RETICENT:common-sign", "RETICENT:relaxed-meaning")
_MOMENTS = (
    "RETICENT:second-moment",
    "RETICENT:hypercontractive",
    "RETICENT:one-normal",
    "RETICENT:told-mask",
    "RETICENT:cut-moments",
    "RETICENT:norms-and-direction",
)
_OF_PERSON = (
    "RETICENT:relaxed-meaning",
    "RETICENT:whole-user-directions",
    "RETICENT:hypercontractive",
    "RETICENT:one-normal",
    "RETICENT:whole-user-dominance",
)


def fixed_length(asked: Question) -> Proof | None:
    """The proof that fits the release; None where none is known."""
    size, stated = asked.neighbouring.sensitivity, asked.dimension
    match asked.mechanism:
        case Gaussian(noise_multiplier=sigma, dimension=d, releases=count) if sigma > 0.0:
            needs = () if count == 1 else ("fixed-length",)
            found = _common(asked, noncentrality(asked.mechanism, asked.neighbouring), stated or d, needs)
            return found.saying(_ONE_QUERY) if count == 1 else found
        case DPSGD(sampler=sampler) if sampler.tells_all:  # the target displaces a record whose direction is known
            return None
        case DPSGD(noise_multiplier=sigma, sample_rate=rate) if sigma > 0.0:
            if rate == 1.0:
                return _unsampled(asked, [asked.mechanism])
            return _sampled(asked, asked.mechanism) if size == 1.0 or stated is not None else None
        case Ledger(parts=parts):
            return _ledger(asked, asked.mechanism, parts)
        case MatrixMechanism(noise_multiplier=sigma) if sigma > 0.0:
            return _matrix(asked, asked.mechanism)
        case Laplace(noise_multiplier=b, sample_rate=rate) if b > 0.0 and (rate == 1.0 or size == 1.0):
            return _laplace(asked, asked.mechanism)
    return None


def _ledger(asked: Question, whole: Ledger, parts: tuple[Mechanism, ...]) -> Proof | None:
    if _one_vector(parts):
        coordinates = asked.dimension or released_coordinates(whole) or 1
        return _common(asked, noncentrality(whole, asked.neighbouring), coordinates)
    if runs := _all_records(parts):
        found = _unsampled(asked, runs)
        shuffled = any(getattr(part, "sample_rate", 1.0) < 1.0 for part in parts)  # no data set shows as much
        return found.below_unknown() if shuffled else found
    if asked.neighbouring.sensitivity == 1.0 and all(map(_followed, parts)):
        return _schedule(asked, whole)
    return None


def _common(asked: Question, strength: float, dimension: int, needs: tuple[str, ...] = ("fixed-length",)) -> Proof:
    """Releases along one direction, of this noncentrality together."""
    notes = (_LOG_2,) if dimension == 1 else (_DIFFERENCE,) if asked.neighbouring.sensitivity > 1.0 else ()
    curve = symmetrised(RelaxedGaussianTradeOff(strength, dimension))
    return asked.proof(Enclosure.exact(curve), _GLRT, notes, needs)


def _unsampled(asked: Question, runs: list[DPSGD]) -> Proof:
    """Every release uses all records."""
    size = asked.neighbouring.sensitivity
    strength = sum(run.steps * (run.records * size / run.noise_multiplier) ** 2 for run in runs)
    found = _common(asked, strength, asked.dimension or 1)
    return _together(found) if runs[0].records > 1 else found


def _laplace(asked: Question, mechanism: Laplace) -> Proof:
    truth = laplace_sign(mechanism, asked.neighbouring)
    if mechanism.releases == 1 and mechanism.sample_rate == 1.0:
        keys = ("KAISSIS2023:Theorem 1", "RETICENT:relaxed-meaning")
        return asked.proof(truth, keys, (_LOG_2, _ONE_QUERY), (), floor=False)
    return asked.proof(truth, ("RETICENT:laplace-sign", "RETICENT:relaxed-meaning"), (_LOG_2,), floor=False)


def _matrix(asked: Question, mechanism: MatrixMechanism) -> Proof | None:
    if mechanism.sample_rate < 1.0:
        found = fixed_length(replace(asked, mechanism=mechanism.equivalent()))
        if found is None:
            return None
        return (
            found.below_unknown().citing("RETICENT:block-sampling").saying(_SAME_DIRECTION)
        )  # last columns are shorter
    size, dimension = asked.neighbouring.sensitivity, asked.dimension or 1
    below, above = (
        _common(asked, (size / mechanism.equivalent(attained=a).noise_multiplier) ** 2, dimension)
        for a in (True, False)
    )
    both = Enclosure(above.enclosure.pessimistic, below.enclosure.optimistic)
    return replace(above, enclosure=both).citing("RETICENT:participation-sensitivity").saying(_SAME_DIRECTION)


def _sampled(asked: Question, run: DPSGD) -> Proof | None:
    """Steps that draw their records, or passes over shuffled data."""
    dimension, replaced = asked.dimension or 1, asked.neighbouring is Neighbouring.REPLACE
    if run.sampler.in_passes:  # each started epoch is one release of all records, in one direction
        found = _replaced(asked, run, _GLRT) if replaced else _of_run(asked, run, _GLRT, (_LOG_2,))
        return _together(found) if run.records > 1 else found
    if run.records > 1:
        return _person(asked, run)
    keys = _SIGN if dimension == 1 else (*_SIGN, *_MOMENTS)
    return _replaced(asked, run, keys) if replaced else _of_run(asked, run, keys, (_LOG_2, _SUBSAMPLED))


def _of_run(asked: Question, run: DPSGD, keys: tuple[str, ...], of_a_sign: tuple[str, ...]) -> Proof:
    dimension = asked.dimension or 1
    return asked.proof(relaxed_in(run, dimension), keys, of_a_sign if dimension == 1 else ())


def _replaced(asked: Question, run: DPSGD, keys: tuple[str, ...], *, average: bool = True) -> Proof:
    truth = relaxed_replace(run, asked.dimension or 1)
    return asked.proof(truth, (*keys, "RETICENT:chain"), (_NEITHER,), floor=False, average=average)


def _person(asked: Question, run: DPSGD) -> Proof | None:
    """All records of one person: the sign needs one direction for all of them, moments in d dimensions do not."""
    dimension, replaced = asked.dimension or 1, asked.neighbouring is Neighbouring.REPLACE
    if dimension == 1:
        return None if replaced else _together(_of_run(asked, run, (*_SIGN, "RETICENT:whole-user-sign"), (_LOG_2,)))
    if replaced:
        found = _replaced(asked, run, _OF_PERSON, average=False)
    else:
        found = asked.proof(relaxed_in(run, dimension), _OF_PERSON, average=False)
    return found.under(condition("independent-directions")).saying(_APART)


def _schedule(asked: Question, runs: Ledger) -> Proof:
    """Sampled runs of one model that differ: one sign in all of them."""
    parts, line = [part for part in runs.parts if isinstance(part, DPSGD)], asked.dimension in (None, 1)
    found = asked.proof(relaxed_dpsgd(runs), _SIGN, (_DIFFERENT, _LOG_2, _SUBSAMPLED) if line else (_DIFFERENT,))
    if not line or not all(part.sampler.attains(part) for part in parts):
        found = found.below_unknown()
    return _together(found.citing("RETICENT:whole-user-sign")) if parts[0].records > 1 else found


def _together(found: Proof) -> Proof:
    """The same where all records of a person move the result in one direction."""
    return found.under(condition("one-direction-per-person")).saying(_TOGETHER)


def _one_vector(parts: tuple[Mechanism, ...]) -> bool:
    """Whether all parts are noisy Gaussian releases of vectors of one dimension."""
    gaussian = [part for part in parts if isinstance(part, Gaussian) and part.noise_multiplier > 0.0]
    return len(gaussian) == len(parts) and len({part.dimension for part in gaussian}) == 1


def _all_records(parts: tuple[Mechanism, ...]) -> list[DPSGD]:
    """DP-SGD whose every counted release uses all records, with noise; nothing where a part is something else."""
    runs = [accountable(part) for part in parts if isinstance(part, DPSGD) and not part.sampler.tells_all]
    whole = [run for run in runs if run.sample_rate == 1.0 and run.noise_multiplier > 0.0]
    return whole if len(whole) == len(parts) else []


def _followed(part: Mechanism) -> bool:
    """Whether one unknown sign can be followed through this part of a ledger."""
    return isinstance(part, DPSGD) and not part.sampler.tells_all and part.noise_multiplier > 0.0


def as_one_run(mechanism: Mechanism) -> Mechanism:
    """A ledger of Poisson-sampled runs that differ in the number of steps alone, as one run; others as they are."""
    runs = [part for part in parts_of(mechanism) if isinstance(part, DPSGD) and part.sampler.independent]
    if len(runs) < len(parts_of(mechanism)) or len({replace(run, steps=1) for run in runs}) > 1:
        return mechanism
    return replace(runs[0], steps=sum(run.steps for run in runs)) if runs[0].sample_rate < 1.0 else mechanism


def released_coordinates(mechanism: Mechanism) -> int | None:
    """How many numbers each release has, where that is known."""
    match mechanism:
        case Gaussian(dimension=d):
            return d
        case DPSGD(num_parameters=d):
            return d
        case Laplace():
            return 1
        case Ledger(parts=parts):
            return min((d for d in map(released_coordinates, parts) if d is not None), default=None)
        case _:
            return None
