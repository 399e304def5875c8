"""An Opacus accountant with certified numbers: ``PrivacyEngine(accountant="reticent")``.

Importing this module registers it. Opacus tells an accountant the noise and the rate of each step but
not how batches were drawn; unless ``sampler`` is set, steps count as Poisson-sampled, which is true of
``make_private`` with its default ``poisson_sampling=True`` and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opacus.accountants import IAccountant, register_accountant

from reticent import _check
from reticent.composition import Bracket, compose
from reticent.errors import ArtifactError, ParameterError, ReticentError
from reticent.mechanism import DPSGD, Ledger, Mechanism, Neighbouring, Sampler
from reticent.risk import epsilon_at_delta
from reticent.tradeoff import TradeOff

NAME = "reticent"


class ReticentAccountant(IAccountant):
    """Keeps (noise_multiplier, sample_rate, steps) and answers with reticent's engine.

    Attributes:
        history: segments of equal steps, in order.
        sampler: how batches were really drawn; set it to ``Sampler.SHUFFLED`` or ``Sampler.FIXED_SIZE``
            where ``poisson_sampling=False`` was used, so that no amplification is claimed without proof.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[float, float, int]] = []
        self.sampler = Sampler.POISSON

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one noisy update.

        Raises:
            ParameterError: noise is negative or the rate outside (0, 1].
        """
        noise = _check.non_negative(noise_multiplier=noise_multiplier)
        rate = _check.rate(sample_rate=sample_rate)
        if self.history and self.history[-1][:2] == (noise, rate):
            self.history[-1] = (noise, rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise, rate, 1))

    def __len__(self) -> int:
        """Number of noisy updates, not of segments."""
        return sum(steps for _, _, steps in self.history)

    def released(self) -> Mechanism:
        """What was run, as frozen data.

        Raises:
            ParameterError: no step was taken.
        """
        parts = tuple(
            DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps, sampler=self.sampler)
            for noise, rate, steps in self.history
        )
        return parts[0] if len(parts) == 1 else Ledger(parts)

    def bracket(self, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE) -> Bracket:
        """Certified enclosure of the worst-case curve of all steps so far."""
        return compose(self.released(), neighbouring)

    def curve(self, adversary: Any, neighbouring: Neighbouring | None = None) -> TradeOff:
        """The curve of any adversary of ``reticent.threat``, evaluated as that adversary does by default.

        Args:
            adversary: for example ``reticent.threat.WorstCase()``.
            neighbouring: between which data sets; None means the adversary's own ``relation``.
        """
        from reticent.threat import Method

        return adversary.assess(self.released(), neighbouring or adversary.relation, Method.EXACT).curve

    def get_epsilon(
        self, delta: float, *, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, **unknown: Any
    ) -> float:
        """Upper bound on epsilon at ``delta`` of all steps so far; inf where there is none; 0 without steps.

        Raises:
            ParameterError: ``delta`` is outside (0, 1], or an option is given that means nothing here.
        """
        if unknown:
            raise ParameterError("options", sorted(unknown), "delta and neighbouring; the bound needs no tuning")
        _check.rate(delta=delta)
        return epsilon_at_delta(self.bracket(neighbouring).pessimistic, delta) if self.history else 0.0

    @classmethod
    def mechanism(cls) -> str:
        """The name under which the accountant is registered."""
        return NAME

    def state_dict(self, destination: Any = None) -> Any:
        """History, name and sampler, as plain data."""
        state = super().state_dict(destination)
        state["sampler"] = self.sampler.value
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replace the history by a saved one; a state without a sampler is one of Poisson steps.

        Raises:
            ArtifactError: the state is not one of this accountant; the history stays as it was.
        """
        if not isinstance(state_dict, Mapping) or state_dict.get("mechanism") != NAME:
            raise ArtifactError(f"accountant state is not one of mechanism {NAME!r}")
        try:
            history = [_segment(*entry) for entry in state_dict["history"]]
            sampler = Sampler(state_dict.get("sampler", Sampler.POISSON))
        except (KeyError, TypeError, ValueError, ReticentError) as error:
            raise ArtifactError(f"accountant state is damaged: {error}") from None
        self.history, self.sampler = history, sampler


def _segment(noise_multiplier: float, sample_rate: float, steps: int) -> tuple[float, float, int]:
    return (
        _check.non_negative(noise_multiplier=noise_multiplier),
        _check.rate(sample_rate=sample_rate),
        _check.count(steps=steps),
    )


register_accountant(NAME, ReticentAccountant, force=True)
