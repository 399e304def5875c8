"""An Opacus accountant with certified numbers, and a ``PrivacyEngine`` that tells it the facts.

Importing this module registers the accountant under the name ``reticent``. Opacus tells an accountant the noise and
the rate of each step, but neither how batches were drawn nor what the layers read. ``PrivacyEngine`` of this module
shows it the loader and the model. With Opacus's own engine no amplification by sampling is claimed until
``accountant.look_at(loader, model)`` has seen the sampler, or ``accountant.sampler`` is set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reticent.facts import Fact, all_facts
from reticent.facts.steps import SamplerRecord
from reticent.kernel import checks
from reticent.kernel.accountants import compose
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError, needing
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta
from reticent.kernel.samplers import INDEPENDENT, SAMPLERS, Sampler
from reticent.kernel.samplers.base import sampler_given, seen_as
from reticent.kernel.samplers.epochs import batches_of_a_pass, whole_batches_of_a_pass
from reticent.kernel.text import stated

with needing("reticent.interop.opacus", "train"):
    import opacus
    from opacus.accountants import IAccountant, register_accountant

NAME = "reticent"


class ReticentAccountant(IAccountant):  # type: ignore[misc]
    """Keeps (noise_multiplier, sample_rate, steps) and answers with reticent's engine.

    Attributes:
        history: segments of equal steps, in order.
        max_grad_norm: smallest clip norm of the optimizers that stepped, or None before the first step.
        repeats: how often one record can be in one batch; more than 1 for draws with replacement.
        copies: how often the data list one record; all of them are protected together.
        faults: what was wrong with the inputs of convolutions. With a fault that voids the guarantee no noise counts.
        unseen_layouts: steps were taken with convolutions of a model that nobody had shown to ``look_at``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[float, float, int]] = []
        self._sampler: Sampler | None = None
        self.max_grad_norm: float | None = None
        self.repeats = self.copies = 1
        self.faults: set[Fact] = set()
        self.unseen_layouts = False
        self._model_seen = False
        self._batches_per_epoch: int | None = None

    @property
    def sampler(self) -> Sampler | None:
        """How batches were really drawn, or None where nobody has seen it: each step then releases the whole data.

        ``look_at`` sets it.

        Raises:
            ParameterError: it is set to something else, such as the name of one.
        """
        return self._sampler

    @sampler.setter
    def sampler(self, drawn: Sampler | None) -> None:
        self._sampler = None if drawn is None else sampler_given(drawn)

    def look_at(self, loader: Any, model: Any = None) -> SamplerRecord:
        """See how ``loader`` draws its batches; the steps so far and to come are accounted for it.

        Passes over the data are taken to be complete, and drawn anew; ``rt.watch`` also sees those that are broken off.

        Args:
            model: what ``make_private`` returned. The inputs of its convolutions are looked at from now on: Opacus
                1.6.0 misreads those that are not in plain order in memory.
        """
        from reticent.watching.detectors.layouts import look_at_layouts
        from reticent.watching.detectors.samplers import look_at

        if model is not None:
            look_at_layouts(model, ghost=hasattr(model, "get_norm_sample"), found=self.add_fault)
            self._model_seen = True
        seen = look_at(loader)
        kind, times = seen_as(seen.drawn), seen.times_per_epoch
        drawn = None if kind is None else kind.of_uses(times or 1)
        known = drawn is not None and (drawn.independent or (drawn.in_passes and times is not None))
        self.sampler = drawn.unless_whole() if drawn is not None and known else None
        self.repeats, self.copies = seen.most_uses if self.sampler is None else 1, seen.copies or 1
        self._batches_per_epoch = seen.batches_per_epoch if self.sampler and self.sampler.in_passes else None
        return seen

    def add_fault(self, fault: Fact) -> None:
        """Keep what is wrong with the run; ``get_epsilon`` warns about it."""
        self.faults.add(fault)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """What Opacus calls after each noisy update: reads noise and clip norm off the optimizer itself."""

        def hook(optimizer: Any) -> None:
            batches = optimizer.accumulated_iterations
            if batches == 1:
                self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)
            else:  # a record may be in each of them: the sum of their rates would forget how far it then moves the sum
                self.step(noise_multiplier=optimizer.noise_multiplier / batches, sample_rate=1.0)
            norm = float(optimizer.max_grad_norm)  # a change of a gradient counts against the least noise
            self.max_grad_norm = norm if self.max_grad_norm is None else min(self.max_grad_norm, norm)
            self.unseen_layouts |= not self._model_seen and any(p.dim() == 4 for p in optimizer.params)

        return hook

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one noisy update.

        Raises:
            ParameterError: noise is negative or the rate outside (0, 1].
        """
        noise, rate, _ = _segment(noise_multiplier, sample_rate, 1)
        if self.history and self.history[-1][:2] == (noise, rate):
            self.history[-1] = (noise, rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise, rate, 1))

    def __len__(self) -> int:
        """Number of noisy updates, not of segments."""
        return sum(steps for _, _, steps in self.history)

    def released(self) -> Mechanism:
        """What was run, as frozen data; without noise where a fault voids the guarantee.

        Raises:
            ParameterError: no step was taken.
        """
        begun, parts = 0, []
        for noise, rate, steps in self.history:
            parts.append(self._part(noise, rate, steps, begun))
            begun += steps
        return together(parts)

    def _part(self, noise: float, rate: float, steps: int, begun: int) -> DPSGD:
        """Equal steps, ``begun`` steps after the first of the run."""
        norm = self.max_grad_norm or 1.0
        noise = 0.0 if any(fault.voids for fault in self.faults) else noise
        if self.sampler is None:
            return DPSGD(noise / (self.repeats * self.copies), 1.0, steps, max_grad_norm=norm)
        batches = self._batches_per_epoch
        if not batches == batches_of_a_pass(rate) == whole_batches_of_a_pass(rate):
            batches = None
        part = DPSGD(
            noise,
            rate,
            steps,
            max_grad_norm=norm,
            sampler=self.sampler.in_batches(batches),
            copies=self.copies if self.copies > 1 else None,
        )
        return part if begun == 0 or not self.sampler.in_passes else self._in_whole_passes(part, begun, batches)

    def _in_whole_passes(self, part: DPSGD, begun: int, batches: int | None) -> DPSGD:
        """Each pass that these steps touch counts: it may have begun with other noise, which was less or more."""
        fewest = part.sampler.batches_of(part.sample_rate)
        known = batches is not None and len({rate for _, rate, _ in self.history}) == 1
        offset = begun % fewest if known else fewest - 1
        touched = -(-(offset + part.steps) // fewest)
        return part if touched == -(-part.steps // fewest) else replace(part, steps=touched * fewest)

    def bracket(self, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE) -> Enclosure:
        """Certified enclosure of the worst-case curve of all steps so far."""
        return compose(self.released(), neighbouring)

    def curve(self, adversary: Any, neighbouring: Neighbouring | None = None) -> TradeOff:
        """The curve of any adversary of ``reticent.adversaries``, evaluated as that adversary does by default.

        Args:
            adversary: for example ``reticent.kernel.adversaries.WorstCase()``.
            neighbouring: between which data sets; None means the adversary's own ``relation``.
        """
        from reticent.kernel.adversaries import Method

        return adversary.assess(self.released(), neighbouring or adversary.relation, Method.EXACT).curve

    def get_epsilon(
        self, delta: float, *, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, **unknown: Any
    ) -> float:
        """Upper bound on epsilon at ``delta`` of all steps so far; inf where there is none; 0 without steps.

        Warns of each fault, and where nobody has seen how batches are drawn or what convolutions read.

        Raises:
            ParameterError: ``delta`` is outside (0, 1], or an option is given that means nothing here.
        """
        if unknown:
            raise ParameterError("options", sorted(unknown), "delta and neighbouring; the bound needs no tuning")
        checks.rate(delta=delta)
        if self.history and self.sampler is None:
            warnings.warn(_UNSEEN, stacklevel=2)
        if self.unseen_layouts:
            warnings.warn(_UNSEEN_LAYOUTS, stacklevel=2)
        for fault in sorted(self.faults):
            warnings.warn(f"{fault.key}: {fault.text}", stacklevel=2)
        return epsilon_at_delta(self.bracket(neighbouring).pessimistic, delta) if self.history else 0.0

    @classmethod
    def mechanism(cls) -> str:
        """The name under which the accountant is registered."""
        return NAME

    def state_dict(self, destination: Any = None) -> Any:
        """History, name, sampler, repeats, clip norm and faults, as plain data."""
        state = super().state_dict(destination)
        state["sampler"] = None if self.sampler is None else {"name": self.sampler.name, **stated(self.sampler)}
        state["repeats"], state["copies"], state["max_grad_norm"] = self.repeats, self.copies, self.max_grad_norm
        state["faults"], state["unseen_layouts"] = sorted(fault.key for fault in self.faults), self.unseen_layouts
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replace the history by a saved one; a state without a sampler is one of batches that nobody saw drawn.

        Raises:
            ArtifactError: the state is not one of this accountant; the history stays as it was.
        """
        if not isinstance(state_dict, Mapping) or state_dict.get("mechanism") != NAME:
            raise ArtifactError(f"accountant state is not one of mechanism {NAME!r}")
        try:
            history = [_segment(*entry) for entry in state_dict["history"]]
            own, norm = dict(state_dict.get("sampler") or {}), state_dict.get("max_grad_norm")
            sampler = SAMPLERS[own.pop("name")](**own) if own else None
            repeats = checks.count(repeats=state_dict.get("repeats", 1))
            listed = checks.count(copies=state_dict.get("copies", 1))
            norm = None if norm is None else checks.positive(max_grad_norm=norm)
            faults = {all_facts()[name] for name in state_dict.get("faults", ())}
        except (KeyError, TypeError, ValueError, ReticentError) as error:
            raise ArtifactError(f"accountant state is damaged: {error}") from None
        self.history, self.sampler, self.max_grad_norm = history, sampler, norm
        self.repeats, self.copies = repeats, listed
        self.faults, self.unseen_layouts = faults, bool(state_dict.get("unseen_layouts", False))
        self._batches_per_epoch = None


class PrivacyEngine(opacus.PrivacyEngine):  # type: ignore[misc]
    """Opacus's engine with this accountant, which sees loader and model; noise for an epsilon is from ``calibrate``."""

    def __init__(self, *, secure_mode: bool = False) -> None:
        super().__init__(accountant=NAME, secure_mode=secure_mode)

    def make_private(self, **arguments: Any) -> Any:
        """As Opacus's; the accountant looks at the loader and the model that are returned."""
        made = super().make_private(**arguments)
        self.accountant.look_at(made[-1], made[0])
        return made

    def make_private_with_epsilon(self, *, target_epsilon: float, target_delta: float, epochs: int, **more: Any) -> Any:
        """As Opacus's, with the least noise that ``calibrate`` proves for the sampler that will run.

        Raises:
            UnreachableError: no noise meets the target.
        """
        loader, poisson = more["data_loader"], more.get("poisson_sampling", True)
        noise = get_noise_multiplier(
            target_epsilon=target_epsilon,
            target_delta=target_delta,
            sample_rate=1.0 / len(loader),
            epochs=epochs,
            sampler=INDEPENDENT if poisson else _drawn(loader),
        )
        return self.make_private(noise_multiplier=noise, **more)


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
    sampler: Sampler | None = INDEPENDENT,
) -> float:
    """Least noise multiplier that meets (epsilon, delta), as Opacus's function of this name, by ``calibrate``.

    Args:
        target_epsilon, target_delta: the budget, between data sets that differ by adding or removing one record.
        sample_rate: probability of one record per step, or the share of the data in one batch.
        epochs, steps: exactly one; an epoch is ``1 / sample_rate`` steps, rounded up for the whole run.
        sampler: how batches will be drawn; None, where nobody can say, claims no amplification by sampling.

    Raises:
        UnreachableError: no noise in the searched range meets the target.
        ParameterError: an argument is outside its domain.
    """
    from reticent.calibration import EpsilonAtDelta, NoiseMultiplier
    from reticent.calibration.solve import calibrate

    if (steps is None) == (epochs is None):
        raise ParameterError("steps", steps, "given, or epochs, and not both", shown=steps is not None)
    rate = checks.rate(sample_rate=sample_rate)
    drawn = INDEPENDENT if sampler is None else sampler_given(sampler)
    count = checks.count(steps=steps) if epochs is None else drawn.steps_in(epochs, rate)
    run = DPSGD(1.0, 1.0 if sampler is None else rate, count, sampler=drawn)
    return calibrate(run, NoiseMultiplier(), EpsilonAtDelta(target_epsilon, target_delta)).value


_UNSEEN = (
    "nobody has seen how batches are drawn, so no amplification by sampling is claimed, and it is taken for granted "
    "that no record decides who else is in a batch: call accountant.look_at(loader, model) with what make_private "
    "returned, or use reticent.interop.opacus.PrivacyEngine"
)
_UNSEEN_LAYOUTS = (
    "nobody has looked at the inputs of the convolutions, and Opacus 1.6.0 misreads those that are not in plain order "
    "in memory: call accountant.look_at(loader, model) before training, with what make_private returned, or use "
    "reticent.interop.opacus.PrivacyEngine"
)


def _drawn(loader: Any) -> Sampler | None:
    probe = ReticentAccountant()
    probe.look_at(loader)
    if probe.repeats * probe.copies > 1:
        raise ParameterError("data_loader", type(loader).__name__, "one that draws no record twice into one batch")
    return probe.sampler


def _segment(noise_multiplier: float, sample_rate: float, steps: int) -> tuple[float, float, int]:
    return (
        checks.non_negative(noise_multiplier=noise_multiplier),
        checks.rate(sample_rate=sample_rate),
        checks.count(steps=steps),
    )


register_accountant(NAME, ReticentAccountant, force=True)
