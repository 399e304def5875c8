"""An accountant for Flower's strategies of central differential privacy, with certified numbers for whole clients.

It fulfils ``flwr.serverapp.PrivacyAccountant`` of Flower 1.42: Flower says what each round released, and asks what was
spent. Configurations and events are read by their fields, so that only ``get_privacy_spent`` imports Flower.

Flower's fixed-clipping strategies demand the sampling method ``no-amplification``, and that a round has a fixed number
of clients. A client that joins then takes another one's place, which moves the sum by up to twice the clip norm.
``RdpAccountant`` of Flower counts it once; here it counts twice, unless all clients take part in each round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reticent.kernel import checks
from reticent.kernel.accountants import compose
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError, needing
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import delta_at_epsilon, epsilon_at_delta
from reticent.kernel.samplers import INDEPENDENT
from reticent.samplers import FixedSize

if TYPE_CHECKING:
    from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig, PrivacySpent

    from reticent.kernel.curves import TradeOff
    from reticent.kernel.samplers import Sampler

NAME = "reticent"
_VERSION = 1
_EVENT = ("noise_multiplier", "sample_size", "population_size")
_CONFIG = ("target_delta", "population_size", "neighboring_relation", "sampling_method", "max_epsilon")
_MODELS: dict[tuple[str, str], tuple[Neighbouring, Sampler | None]] = {
    ("poisson", "add-or-remove-one"): (Neighbouring.ADD_REMOVE, INDEPENDENT),
    ("without-replacement", "replace-one"): (Neighbouring.REPLACE, FixedSize()),
    ("no-amplification", "add-or-remove-one"): (Neighbouring.ADD_REMOVE, None),
}
_Release = tuple[float, int, int]
"""Noise multiplier, clients of a round, rounds."""


class Accountant:
    """Keeps what each round released and answers with reticent's engine.

    Args:
        config: a ``PrivacyConfig`` of Flower.
        uniform: with ``no-amplification``: each cohort is drawn uniformly without replacement from the whole
            population, as ``FedAvg`` draws it, and nobody learns who was drawn. Then sampling amplifies.

    Raises:
        ParameterError: a field of ``config`` is outside its domain, or its sampling method has no such relation.
    """

    def __init__(self, config: PrivacyConfig, *, uniform: bool = False) -> None:
        self._stated = {name: _plain(getattr(config, name, None)) for name in _CONFIG}
        method, relation = self._stated["sampling_method"], self._stated["neighboring_relation"]
        if (method, relation) not in _MODELS:
            allowed = " or ".join(f"{one} with {other}" for one, other in _MODELS)
            raise ParameterError("sampling_method", f"{method} with {relation}", allowed)
        self.neighbouring, drawn = _MODELS[method, relation]
        if uniform and drawn is not None:
            raise ParameterError("uniform", uniform, f"left out, as the config says {method}", shown=False)
        self._uniform, self._sampler = bool(uniform), FixedSize() if uniform else drawn
        checks.open_fraction(target_delta=config.target_delta)
        self._clients = checks.count(population_size=config.population_size)
        if config.max_epsilon is not None:
            checks.positive(max_epsilon=config.max_epsilon)
        self._config, self._releases = config, tuple[_Release, ...]()

    @property
    def config(self) -> PrivacyConfig:
        """As it was given."""
        return self._config

    @property
    def num_releases(self) -> int:
        """How many rounds released something."""
        return sum(rounds for _, _, rounds in self._releases)

    def released(self) -> Mechanism:
        """What was run, for ``rt.assess`` and ``rt.certify``: any attacker, beside the worst case.

        Raises:
            ParameterError: nothing was released.
        """
        return together([self._rounds(*one) for one in self._releases])

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Record so many equal rounds.

        Raises:
            ParameterError: a field is outside its domain, or the event is of another population.
        """
        self._releases = self._after(event, count)

    def get_epsilon(self, delta: float) -> float:
        """Upper bound on epsilon at ``delta`` of all rounds so far; 0 without rounds, inf where there is none."""
        return self._epsilon(self._releases, delta)

    def get_delta(self, epsilon: float) -> float:
        """Upper bound on delta at ``epsilon`` of all rounds so far; 0 without rounds."""
        checks.non_negative(epsilon=epsilon)
        return delta_at_epsilon(self._composed(self._releases), epsilon) if self._releases else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Flower's record of what was spent, at the delta of the config unless another is given."""
        with needing("PrivacySpent of Flower", "flower"):
            from flwr.serverapp import PrivacySpent

        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, NAME)

    def would_exceed(self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether epsilon would be above the limit after these rounds; nothing is recorded."""
        limit = checks.positive(max_epsilon=self._config.max_epsilon if max_epsilon is None else max_epsilon)
        return self._epsilon(self._after(event, count), self._config.target_delta) > limit

    def state_dict(self) -> dict[str, object]:
        """Config and rounds as plain data, for JSON."""
        return {**self._head(), "compositions": self._written(self._releases)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Replace the rounds by saved ones.

        Raises:
            ArtifactError: the state is damaged, of another accountant or of another config; nothing changes.
        """
        head, releases = self._head(), tuple[_Release, ...]()
        if not isinstance(state, Mapping) or set(state) != {*head, "compositions"}:
            raise ArtifactError(f"accountant state must have {', '.join(head)} and compositions, and nothing else")
        for name, own in head.items():
            if state[name] != own:
                raise ArtifactError(f"accountant state has {name} {state[name]!r}, and this accountant {own!r}")
        saved: Any = state["compositions"]
        try:
            for one in saved:
                releases = _joined(releases, self._release(**one["event"], count=one["count"]))
        except (KeyError, TypeError, ReticentError) as error:
            raise ArtifactError(f"accountant state is damaged: {error}") from None
        if self._written(releases) != saved:
            raise ArtifactError("accountant state is damaged: compositions are not as this accountant writes them")
        self._releases = releases

    def _written(self, releases: tuple[_Release, ...]) -> list[dict[str, object]]:
        return [
            {"event": dict(zip(_EVENT, (noise, cohort, self._clients), strict=True)), "count": rounds}
            for noise, cohort, rounds in releases
        ]

    def _head(self) -> dict[str, object]:
        return {"schema_version": _VERSION, "backend": NAME, "config": self._stated, "uniform": self._uniform}

    def _after(self, event: GaussianPrivacyEvent, count: int) -> tuple[_Release, ...]:
        stated = {name: getattr(event, name, None) for name in _EVENT}
        return _joined(self._releases, self._release(**stated, count=count))

    def _release(self, noise_multiplier: Any, sample_size: Any, population_size: Any, count: Any) -> _Release:
        if checks.count(population_size=population_size) != self._clients:
            raise ParameterError("population_size", population_size, f"{self._clients}, as the config says")
        if checks.count(sample_size=sample_size) > self._clients:
            raise ParameterError("sample_size", sample_size, f"at most the population, {self._clients}")
        noise = checks.positive(noise_multiplier=noise_multiplier)
        return noise, int(sample_size), checks.count(count=count)

    def _rounds(self, noise: float, cohort: int, rounds: int) -> DPSGD:
        if cohort == self._clients:  # nobody's place can be taken
            return DPSGD(noise, 1.0, rounds, batch_size=cohort, dataset_size=cohort, unit=Unit.CLIENT)
        if self._sampler is None:
            return DPSGD(noise, 1.0, rounds, sampler=FixedSize(), unit=Unit.CLIENT)
        rate, clients = cohort / self._clients, self._clients
        return DPSGD(noise, rate, rounds, 1.0, None, cohort, clients, self._sampler, unit=Unit.CLIENT)

    def _composed(self, releases: tuple[_Release, ...]) -> TradeOff:
        return compose(together([self._rounds(*one) for one in releases]), self.neighbouring).pessimistic

    def _epsilon(self, releases: tuple[_Release, ...], delta: float) -> float:
        checks.open_fraction(delta=delta)
        return epsilon_at_delta(self._composed(releases), delta) if releases else 0.0


def _plain(value: Any) -> Any:
    """An enumeration of texts, as the text."""
    return getattr(value, "value", value)


def _joined(releases: tuple[_Release, ...], more: _Release) -> tuple[_Release, ...]:
    if releases and releases[-1][:2] == more[:2]:
        return (*releases[:-1], (*more[:2], releases[-1][2] + more[2]))
    return (*releases, more)
