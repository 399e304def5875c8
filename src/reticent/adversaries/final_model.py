"""The attacker who sees the final model only: noisy gradient descent on convex problems, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from reticent.kernel import checks
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof, Status, best, condition, without_repeats
from reticent.kernel.registry import described
from reticent.kernel.styles import Style

if TYPE_CHECKING:
    from reticent.kernel.adversaries.witness import Witness

_ROUNDING = 1e-12  # relative: the closed forms are evaluated with expm1 and log1p, to a few units in the last place


@dataclass(frozen=True, slots=True)
class FinalModel(Adversary):
    """Sees the weights after the last step, and nothing of the steps before.

    Knows: every record but the target, both candidate data sets, the code, all parameters, the start weights.
    Does not know: the weights between the start and the end, and the noise.
    Protects: one record, in the sense of ``neighbouring``.
    Claim: a bound for convex problems. Each update without its noise has to bring any two weight vectors closer
    together, by the factor ``contraction``. That is a statement about loss, data and step size; it is declared here.

    Attributes:
        contraction: the factor, in (0, 1]; 1 for losses that are convex and no more. None where ``step_size`` is given.
        step_size: learning rate on the mean gradient, > 0, in units of 1 / ``smoothness``'s.
        strong_convexity: m >= 0: the least curvature of the clipped loss, weight decay included.
        smoothness: M >= m: its largest curvature. Then the factor is max(\\|1 - step_size m\\|, \\|1 - step_size M\\|).

    Raises:
        ParameterError: a field is outside its domain; the factor is stated twice, or above 1.

    Example:
        >>> import reticent as rt
        >>> from reticent.adversaries.final_model import FinalModel
        >>> run = rt.DPSGD(10.0, 1.0, 1000)  # whole batches
        >>> found = FinalModel(contraction=0.99).assess(run)
        >>> round(found.measure(rt.mu).value, 4), round(rt.WorstCase().assess(run).measure(rt.mu).value, 4)
        (1.4106, 3.1623)
    """

    contraction: float | None = field(
        default=None, metadata=described("Factor by which each update brings weights closer together.")
    )
    step_size: float | None = field(default=None, metadata=described("Learning rate on the mean gradient."))
    strong_convexity: float = field(default=0.0, metadata=described("Least curvature of the loss, with weight decay."))
    smoothness: float | None = field(default=None, metadata=described("Largest curvature of the loss."))

    name: ClassVar[str] = "final-model"
    title: ClassVar[Message | str] = Message("attacker.final-model")
    short: ClassVar[str] = "sees the last model"
    needs: ClassVar[str | None] = "contraction"
    every_step: ClassVar[bool] = False
    style: ClassVar[Style] = Style("#2f7d6d", (7, 2, 2, 2), "#1b5c4f", "#6fd3bd")
    knows: ClassVar[Message | str] = Message("knows.all")
    lacks: ClassVar[Message | str] = Message("lacks.weights")
    infers: ClassVar[Message | str] = Message("infers.used")
    every_test: ClassVar[bool] = True
    by_name_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (self.contraction is None) == (self.step_size is None):
            wanted = "given, or else step_size with smoothness; one of the two"
            raise ParameterError("contraction", self.contraction, wanted)
        if self.contraction is not None:
            checks.rate(contraction=self.contraction)
        else:
            checks.positive(step_size=self.step_size)
            checks.non_negative(strong_convexity=self.strong_convexity)
            if self.smoothness is None or checks.positive(smoothness=self.smoothness) < self.strong_convexity:
                raise ParameterError("smoothness", self.smoothness, "given with step_size, and >= strong_convexity")
            if self.factor > 1.0:
                raise ParameterError("step_size", self.step_size, "at most 2 / smoothness: longer steps may diverge")

    def checked_by(self, witness: Witness) -> dict[str, Status]:
        """That updates contract by this factor or a smaller one, and that nothing but the last weights was kept.

        Raises:
            UnsupportedError: updates were seen to differ.
        """
        if witness.unequal_updates is not None:
            raise UnsupportedError(
                f"the effect of hidden steps is known for equal updates only: {witness.unequal_updates}"
            )
        if witness.contraction is None or witness.contraction > self.factor:
            return {}
        return dict.fromkeys(("contraction", "equal-updates", "final-model-only"), Status.CHECKED)

    @property
    def factor(self) -> float:
        """By which each update without its noise brings any two weight vectors closer together, in (0, 1]."""
        if self.contraction is not None:
            return self.contraction
        step = self.step_size or 0.0
        most = max(abs(1.0 - step * self.strong_convexity), abs(1.0 - step * (self.smoothness or 0.0)))
        return max(most, math.ulp(0.0))

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The closed form, and never more than the worst case.

        Args:
            mechanism: what was released: ``DPSGD`` with whole batches, or with the sampler ``cyclic``.
            method: any; the answer is that of ``exact``.

        Raises:
            UnsupportedError: another release: hidden steps are proven to protect for these only.
        """
        run = mechanism.training
        if run is None or not _is_covered(run):
            raise UnsupportedError(Message("refused.hidden-steps"))
        mu = final_mu(run, neighbouring, self.factor) * (1.0 + _ROUNDING)
        proof = Proof(
            Enclosure.from_above(GaussianTradeOff(mu)),
            theorems=("RETICENT:hidden-steps", "BOK2024:Section 4"),
            conditions=(
                *mechanism.conditions_under(neighbouring),
                condition("contraction", Status.DECLARED),
                condition("equal-updates", Status.DECLARED),
                condition("final-model-only", Status.DECLARED),
            ),
            notes=(Message("note.networks"), *mechanism.notes),
            mu=(0.0, mu),
        )
        worst = worst_case_proof(mechanism, neighbouring).from_above()
        return Assessment(self, neighbouring, Method.EXACT, without_repeats(best([proof, worst]))[:1])


def _is_covered(run: DPSGD) -> bool:
    """Whole batches; or one batch after the other, where each record is in one of them."""
    if run.noise_multiplier == 0.0:
        return False
    whole = run.sampler.takes_all(run) and not run.sampler.displaces
    return whole or (run.sampler.in_order and run.records == 1)


def final_mu(run: DPSGD, neighbouring: Neighbouring, contraction: float) -> float:
    """mu of the last weights: RETICENT:hidden-steps, after Section 4 of BOK2024; docs/theory/final-model.md proves it.

    By BOK2024:Section 4.

    Args:
        run: whole batches or cyclic ones, with noise.
        neighbouring: between which data sets; replacement moves a sum by twice the clip norm.
    """
    once = neighbouring.sensitivity * run.records / run.noise_multiplier
    if run.sample_rate == 1.0:
        return once * math.sqrt(_sum_over_deviation(contraction, run.steps))
    batches = run.sampler.batches_of(run.sample_rate)
    epochs = -(-run.steps // batches)
    if epochs == 1:
        return once
    if contraction == 1.0:
        return once * math.sqrt(1.0 + (epochs - 1.0) / batches)
    log = math.log(contraction)
    shrunk = math.exp((2.0 * batches - 2.0) * log) * -math.expm1(2.0 * log) / math.expm1(batches * log) ** 2
    return once * math.sqrt(1.0 - shrunk * math.tanh(0.5 * batches * (epochs - 1.0) * log))


def _sum_over_deviation(contraction: float, steps: int) -> float:
    """(1 - c^t) / (1 + c^t) (1 + c) / (1 - c); t where c is 1."""
    if contraction == 1.0:
        return float(steps)
    log = math.log(contraction)
    return math.tanh(0.5 * steps * log) / math.tanh(0.5 * log)
