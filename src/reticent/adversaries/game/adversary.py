"""The membership inference game: the data and the target are drawn at random from one law."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent.adversaries.game import gmip
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.kernel import checks
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.curves import GaussianTradeOff, Mixture, TradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Formula
from reticent.kernel.registry import described
from reticent.kernel.styles import Style

Susceptibility = float | SusceptibilityLaw | GradientSpectrum

_LARGEST_MU = 1e8
_SENSITIVITY = Neighbouring.REPLACE.sensitivity
_CLT = (
    "The sum over a batch is taken as Gaussian (central limit theorem): no bound; "
    "it fails for small batches and for sparse or lattice-valued gradients."
)


@dataclass(frozen=True, slots=True)
class MembershipGame(Adversary):
    """Plays the membership inference game: does not choose the data, and the target is a random record.

    Knows: the law of the data (mean and covariance of the gradients), the target, every released sum.
    Does not know: the other records, which are fresh draws from the same law; the noise.
    Relation: replacement, and no other. Definition 3.1 of LEEMANN2023 draws a fresh record into the target's
    place, so the data keep their size; a bound for adding a record is not one for that game
    (docs/theory/membership-game.md).
    Claim: an estimate by the harmonic rule where each batch is fresh (one step, or one pass over shuffled
    data). Everywhere else the worst case of the same release, which is a bound: f-DP implies f-MIP
    (Theorem 4.2 of LEEMANN2023). Steps that use the same records again may count the injected noise only:
    without noise, eight of them can identify every one of eight records (LEEMANN2023:G1).

    Attributes:
        susceptibility: ``K``, the squared Mahalanobis length of the target's gradient; None for ``K = d``,
            its mean over records; or a law of K, composed stochastically; or a spectrum of the gradients,
            which is exact where the harmonic rule is a bound on mu. K is measured from the mean gradient;
            under Poisson sampling from zero, in the metric of the second moment: its mean is d there too.

    Raises:
        ParameterError: ``susceptibility`` is a number that is not > 0.
    """

    susceptibility: float | SusceptibilityLaw | GradientSpectrum | None = field(
        default=None, metadata=described("Squared Mahalanobis norm K of the target's gradient.")
    )

    name: ClassVar[str] = "membership-game"
    title: ClassVar[Message | str] = Message("attacker.membership-game")
    short: ClassVar[str] = "knows the population"
    also: ClassVar[tuple[str, ...]] = ("gmip", "glir")
    style: ClassVar[Style] = Style("#b0578f", (2, 2), "#98467a", "#e59ac8")
    counts_parameters: ClassVar[bool] = True
    repeated: ClassVar[str] = "repeats.game"
    methods: ClassVar[tuple[Method, ...]] = (Method.EXACT, Method.PROVEN, Method.PUBLISHED)
    relation: ClassVar[Neighbouring] = Neighbouring.REPLACE
    knows: ClassVar[Message | str] = Message("knows.distribution")
    lacks: ClassVar[Message | str] = Message("lacks.others")
    infers: ClassVar[Message | str] = Message("infers.drawn")

    def __post_init__(self) -> None:
        if not isinstance(self.susceptibility, SusceptibilityLaw | GradientSpectrum | None):
            checks.positive(susceptibility=self.susceptibility)

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.REPLACE, method: Method = Method.EXACT
    ) -> Assessment:
        """The game's curve: harmonic rule where it holds, otherwise the worst case, with the reason.

        ``Method.PROVEN`` is the worst case always. ``Method.PUBLISHED`` is Eq. (10) of LEEMANN2023 with the
        paper's minimum rule, for any number of steps; it may be unsafe.

        Args:
            mechanism: what was released.
            neighbouring: ``replace`` only.
            method: ``exact``, ``proven`` or ``published``.

        Raises:
            ParameterError: batch size or number of parameters is needed and not known.
            UnsupportedError: another relation than replacement; or steps over the same data without noise, which
                have no guarantee.
        """
        if neighbouring is not self.relation:
            raise UnsupportedError(
                "the membership game puts a fresh record in the target's place: it is answered for neighbouring "
                f"replace only, not {neighbouring.value}"
            )
        mechanism.one_record("the membership game", Message("refused.game-persons"))
        if method is Method.PUBLISHED:
            return self._published(mechanism)
        if method is Method.PROVEN:
            return self._worst_case(mechanism, method, Message("note.game-asked"))
        run = mechanism.training
        if run is None:
            return self._worst_case(mechanism, method, Message("note.game-dpsgd"))
        batch, k = self._batch_size(run), self._susceptibility(run)
        reason = _why_only_noise_counts(run, k)
        if reason:
            return self._worst_case(mechanism, method, reason)
        return self._harmonic(run, method, batch, k)

    def _harmonic(self, mechanism: DPSGD, method: Method, batch: float, k: Susceptibility) -> Assessment:
        noise = _effective_noise(mechanism, batch, k.mean if isinstance(k, SusceptibilityLaw) else k)
        keys = ("RETICENT:harmonic-rule", "LEEMANN2023:Theorem 4.2", *_composition_keys(mechanism, k))
        formula = Formula(
            _game_curve(mechanism, batch, k),
            theorems=keys,
            conditions=mechanism.conditions_under(self.relation),
            notes=(
                _susceptibility_in_words(k, self.susceptibility is None),
                _rule_in_words(mechanism, noise, batch, k),
                _CLT,
                *mechanism.notes,
            ),
        )
        measured = isinstance(k, SusceptibilityLaw | GradientSpectrum)
        return Assessment(self, self.relation, method, (), formula, data_dependent=measured)

    def _worst_case(self, mechanism: Mechanism, method: Method, reason: Message) -> Assessment:
        if mechanism.training is not None and mechanism.noise_multiplier == 0.0:
            raise UnsupportedError(f"{reason} Without noise nothing is guaranteed; method published shows the formula.")
        notes = Message("note.game-worst", reason=reason), Message("note.game-as-strong")
        worst = worst_case_proof(mechanism, self.relation)
        theorems = ("LEEMANN2023:Theorem 4.2", *worst.theorems)
        proof = replace(worst, enclosure=compose(mechanism, self.relation), theorems=theorems).prefaced(*notes)
        return Assessment(self, self.relation, method, (proof,))

    def _published(self, release: Mechanism) -> Assessment:
        mechanism = release.training
        if mechanism is None:
            raise UnsupportedError("LEEMANN2023 publishes a formula for DP-SGD only; use method exact")
        batch, dimension = self._batch_size(mechanism), _dimension(mechanism)
        k = self._susceptibility(mechanism)
        typical = _mean_susceptibility(k)
        step = gmip.one_step_mu(dimension, typical, gmip.effective_batch(batch, mechanism.noise_multiplier))
        least = min(step, gmip.differential_privacy_mu(mechanism.noise_multiplier))
        whole = mechanism.sample_rate == 1.0
        mu = least * mechanism.steps**0.5 if whole else gmip.sampled_mu(least, mechanism.sample_rate, mechanism.steps)
        formula = Formula(
            GaussianTradeOff(min(mu, _LARGEST_MU)),
            theorems=("LEEMANN2023:Corollary 5.1", "LEEMANN2023:Lemma 5.1"),
            conditions=mechanism.conditions_under(self.relation),
            notes=(
                f"As published: mu {mu:.6g} from mu_step {least:.6g}, the smaller of {step:.6g} and the DP value. "
                "It composes steps as if each used fresh data, which re-used data break, "
                "and is a limit, not a bound, for finitely many steps (LEEMANN2023:G1, LEEMANN2023:G3).",
                _susceptibility_in_words(k, self.susceptibility is None),
                _CLT,
            ),
        )
        return Assessment(self, self.relation, Method.PUBLISHED, (), formula)

    def _susceptibility(self, mechanism: DPSGD) -> Susceptibility:
        return float(_dimension(mechanism)) if self.susceptibility is None else self.susceptibility

    def _batch_size(self, mechanism: DPSGD) -> float:
        if mechanism.batch_size is not None:
            return float(mechanism.batch_size)
        if mechanism.dataset_size is not None:
            return mechanism.sample_rate * mechanism.dataset_size
        wanted = "known for the membership game: the (expected) records per batch"
        raise ParameterError("batch_size", None, wanted, shown=False, says=Message("refused.game-batch"))


def _dimension(mechanism: DPSGD) -> int:
    if mechanism.num_parameters is None:
        wanted = "known for the membership game: the number of trained parameters"
        raise ParameterError("dimension", None, wanted, shown=False, says=Message("refused.game-dimension"))
    return mechanism.num_parameters


def _single_pass(mechanism: DPSGD) -> bool:
    """Whether no record is used in more than one step, whatever the random draws."""
    if mechanism.steps == 1:
        return True
    return mechanism.sampler.in_passes and mechanism.steps * mechanism.sample_rate <= 1.0 + 1e-9


def _why_only_noise_counts(mechanism: DPSGD, k: Susceptibility) -> Message | None:
    """Why the randomness of the data may not be counted, or nothing."""
    if not _single_pass(mechanism):
        return Message("note.game-reused", steps=Figure(str(mechanism.steps)))
    if not mechanism.sampler.game:
        return Message("note.game-sampler", sampler=mechanism.sampler.name)
    if mechanism.sampler.independent and mechanism.sample_rate < 1.0 and isinstance(k, GradientSpectrum):
        return Message("note.game-spectrum")
    return None


def _effective_noise(mechanism: DPSGD, batch: float, k: float | GradientSpectrum) -> float:
    """Noise multiplier whose worst case is the harmonic rule: injected noise plus the other records.

    Batches of fixed size: 1/mu^2 = n/K + sigma^2/4. Poisson: the other records add the covariance
    N p (M - p m m^T) >= n (1 - p) M with M the second moment and m the mean, hence
    1/mu^2 = n (1 - p)/K + sigma^2 for each of the two values of the target.
    """
    sigma = mechanism.noise_multiplier
    if isinstance(k, GradientSpectrum):
        return _SENSITIVITY / k.mu(batch, sigma)
    if mechanism.sampler.independent and mechanism.sample_rate < 1.0:
        return (sigma**2 + batch * (1.0 - mechanism.sample_rate) / k) ** 0.5
    return _SENSITIVITY / gmip.harmonic_mu(batch, k, sigma)


def _game_curve(mechanism: DPSGD, batch: float, k: Susceptibility) -> TradeOff:
    if isinstance(k, SusceptibilityLaw):
        return k.compose(lambda value: _game_curve(mechanism, batch, value))
    return _curve_of_one_use(replace(mechanism, noise_multiplier=_effective_noise(mechanism, batch, k)))


def _curve_of_one_use(mechanism: DPSGD) -> TradeOff:
    """The curve of at most one use of the target; for shuffled data its step is revealed, which is safe."""
    step = GaussianTradeOff(_SENSITIVITY / mechanism.noise_multiplier)
    if mechanism.sample_rate == 1.0:
        return step
    if not mechanism.sampler.in_passes:
        return compose(mechanism, Neighbouring.REPLACE).pessimistic
    used = min(1.0, mechanism.steps * mechanism.sample_rate)
    return Mixture([step, GaussianTradeOff(0.0)], [used, 1.0 - used])


def _composition_keys(mechanism: DPSGD, k: Susceptibility) -> tuple[str, ...]:
    partial = mechanism.sampler.in_passes and mechanism.steps * mechanism.sample_rate < 1.0
    return ("LEEMANN2023:Definition 4.1",) if partial or isinstance(k, SusceptibilityLaw) else ()


def _mean_susceptibility(k: Susceptibility) -> float:
    match k:
        case SusceptibilityLaw():
            return k.mean
        case GradientSpectrum():
            return k.susceptibility
        case _:
            return k


def _susceptibility_in_words(k: Susceptibility, typical: bool) -> str:
    if typical:
        return (
            f"Susceptibility K = d = {k:g}: a typical record, not the worst; about half of all records exceed it, "
            "and low false positive rates are ruled by those."
        )
    match k:
        case SusceptibilityLaw():
            return (
                f"Susceptibility K drawn from the given law of mean {k.mean:g}, known to the attacker: "
                "an average over records, not the worst."
            )
        case GradientSpectrum():
            return (
                f"K = {k.susceptibility:g} and the spectrum are as given: a record with a larger deviation is at more "
                "risk."
            )
        case _:
            return f"Susceptibility K = {k:g}, as given: records with a larger K are at more risk than stated."


def _rule_in_words(mechanism: DPSGD, noise: float, batch: float, k: Susceptibility) -> str:
    injected = _SENSITIVITY / mechanism.noise_multiplier if mechanism.noise_multiplier > 0.0 else float("inf")
    if isinstance(k, GradientSpectrum):
        formula = "Sum over the given spectrum"
    elif mechanism.sampler.independent and mechanism.sample_rate < 1.0:
        formula = (
            "Harmonic rule for Poisson batches, 1/mu^2 = (noise_multiplier^2 + n (1 - sample_rate)/K)/sensitivity^2"
        )
    else:
        formula = "Harmonic rule, 1/mu^2 = n/K + 1/mu_DP^2"
    return (
        f"{formula}, batch size n = {batch:g}: mu of one step is {_SENSITIVITY / noise:.6g} with the randomness of "
        f"the other records and {injected:.6g} by the noise alone (the worst case)."
    )
