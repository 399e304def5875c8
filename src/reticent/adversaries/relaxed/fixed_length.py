"""The relaxed attacker where a record moves all releases along one direction, by lengths that do not depend on it.

Which theorem answers a release, and what it needs. docs/concepts/conditions.md has what each theorem assumes about
training.
"""

from __future__ import annotations

from dataclasses import replace

from reticent import curves, mechanisms
from reticent.adversaries.relaxed import dimension as vectors
from reticent.adversaries.relaxed import sign
from reticent.adversaries.relaxed.question import Question, noisy_sums
from reticent.kernel.curves import symmetrised
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof, condition

_LOG_2, _DIFFERENCE, _ONE_QUERY = Message("note.log-2"), Message("note.difference"), Message("note.one-query")
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
    size, parts = asked.neighbouring.sensitivity, asked.mechanism.parts
    match asked.mechanism:
        case mechanisms.MatrixMechanism(noise_multiplier=sigma) if sigma > 0.0:
            return _matrix(asked, asked.mechanism)
        case mechanisms.Laplace(noise_multiplier=b, sample_rate=rate) if b > 0.0 and (rate == 1.0 or size == 1.0):
            return _laplace(asked, asked.mechanism)
    runs = noisy_sums(asked.mechanism)
    if runs is None or len({part.training is None for part in parts}) > 1:
        return None
    if parts[0].training is None:
        return _queries(asked, runs)
    if len(runs) == 1 and runs[0].sample_rate < 1.0:
        return _sampled(asked, runs[0]) if size == 1.0 or asked.dimension is not None else None
    return _several(asked, runs)


def _queries(asked: Question, runs: list[DPSGD]) -> Proof | None:
    """Gaussian releases of vectors of one dimension."""
    if len({run.num_parameters for run in runs}) > 1:
        return None
    once, dimension = sum(run.steps for run in runs) == 1, asked.dimension or runs[0].num_parameters or 1
    return _common(asked, dimension, needs=()).saying(_ONE_QUERY) if once else _common(asked, dimension)


def _several(asked: Question, runs: list[DPSGD]) -> Proof | None:
    """Releases of all records, or sampled runs of one model."""
    if any(run.accountable.sample_rate < 1.0 for run in runs):
        return _schedule(asked, runs) if asked.neighbouring.sensitivity == 1.0 else None
    found = _common(asked, asked.dimension or 1)
    found = _together(found) if runs[0].records > 1 else found
    shuffled = any(run.sample_rate < 1.0 for run in runs)  # no data set shows as much
    return found.below_unknown() if shuffled else found


def _common(
    asked: Question, dimension: int, mu: float | None = None, needs: tuple[str, ...] = ("fixed-length",)
) -> Proof:
    """Releases along one direction: the square of mu of the worst case is their noncentrality together.

    By KAISSIS2022:Theorem 2: the sum of (sensitivity / noise)^2, that of the optimally weighted sum.
    """
    notes = (_LOG_2,) if dimension == 1 else (_DIFFERENCE,) if asked.neighbouring.sensitivity > 1.0 else ()
    curve = symmetrised(curves.RelaxedGaussianTradeOff((asked.mu[1] if mu is None else mu) ** 2, dimension))
    return asked.proof(Enclosure.exact(curve), _GLRT, notes, needs)


def _laplace(asked: Question, mechanism: mechanisms.Laplace) -> Proof:
    truth = sign.unknown_sign(mechanism, asked.neighbouring)
    if mechanism.releases == 1 and mechanism.sample_rate == 1.0:
        keys = ("KAISSIS2023:Theorem 1", "RETICENT:relaxed-meaning")
        return asked.proof(truth, keys, (_LOG_2, _ONE_QUERY), (), floor=False)
    return asked.proof(truth, ("RETICENT:laplace-sign", "RETICENT:relaxed-meaning"), (_LOG_2,), floor=False)


def _matrix(asked: Question, mechanism: mechanisms.MatrixMechanism) -> Proof | None:
    if mechanism.equivalent().sampler.tells_all:
        return None
    if mechanism.sample_rate < 1.0:
        found = fixed_length(replace(asked, mechanism=mechanism.equivalent()))
        if found is None:
            return None
        found = found.below_unknown().citing("RETICENT:block-sampling")  # last columns are shorter
    else:
        below, above = (_common(asked, asked.dimension or 1, mu=end) for end in asked.mu)
        both = Enclosure(above.enclosure.pessimistic, below.enclosure.optimistic)
        found = replace(above, enclosure=both).citing("RETICENT:participation-sensitivity")
    return found.saying(Message("note.same-direction"))


def _sampled(asked: Question, run: DPSGD) -> Proof | None:
    """Steps that draw their records, or passes over shuffled data, of which each is one release in one direction.

    Of several records of one person, a sign needs one direction for all of them; moments in d dimensions do not.
    """
    line, passes, person = asked.dimension in (None, 1), run.sampler.in_passes, run.records > 1
    apart, replaces = person and not passes and not line, asked.neighbouring is Neighbouring.REPLACE
    keys: tuple[str, ...]
    notes: tuple[Message, ...] = (_LOG_2,)
    if passes:
        keys = _GLRT
    elif person:
        keys = _OF_PERSON if apart else (*_SIGN, "RETICENT:whole-user-sign")
    else:
        keys, notes = _SIGN if line else (*_SIGN, *_MOMENTS), (_LOG_2, Message("note.one-sign"))
    if not replaces:
        found = asked.proof(
            vectors.relaxed_in(run, asked.dimension or 1), keys, notes if line else (), average=not apart
        )
    elif person and line and not passes:
        return None
    else:
        truth = vectors.replaced(run, vectors.relaxed_in(run, asked.dimension or 1).pessimistic)
        found = asked.proof(
            truth, (*keys, "RETICENT:chain"), (Message("note.neither"),), floor=False, average=not apart
        )
    if apart:
        return found.under(condition("independent-directions")).saying(Message("note.apart"))
    return _together(found) if person else found


def _schedule(asked: Question, runs: list[DPSGD]) -> Proof:
    """Sampled runs of one model that differ: one sign in all of them."""
    line, truth = asked.dimension in (None, 1), sign.unknown_sign(asked.mechanism)
    found = asked.proof(
        truth,
        _SIGN,
        (Message("note.different"), _LOG_2, Message("note.one-sign")) if line else (Message("note.different"),),
    )
    if not line or not all(run.sampler.attains(run) for run in runs):
        found = found.below_unknown()
    return _together(found.citing("RETICENT:whole-user-sign")) if runs[0].records > 1 else found


def _together(found: Proof) -> Proof:
    """The same where all records of a person move the result in one direction."""
    return found.under(condition("one-direction-per-person")).saying(Message("note.together"))


def as_one_run(mechanism: Mechanism) -> Mechanism:
    """A ledger of Poisson-sampled runs that differ in the number of steps alone, as one run; others as they are."""
    runs = mechanism.trainings
    if len({replace(run, steps=1) for run in runs}) != 1 or not runs[0].sampler.independent:
        return mechanism
    return replace(runs[0], steps=sum(run.steps for run in runs)) if runs[0].sample_rate < 1.0 else mechanism


def released_coordinates(mechanism: Mechanism) -> int | None:
    """How many numbers each release has, where that is known."""
    return min((d for part in mechanism.parts if (d := part.coordinates) is not None), default=None)
