"""What ran, as kinds of noisy steps: each with its dominating pair and how often it ran."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from reticent.composition.pairs import AntipodalPair
from reticent.composition.sampling import accountable, attained_shift, shift
from reticent.errors import UnsupportedError
from reticent.mechanism import DPSGD, Gaussian, Laplace, Ledger, Mechanism, Neighbouring, Sampler
from reticent.tradeoff import GaussianTradeOff, LaplaceTradeOff, Subsampled, TradeOff, symmetrised


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of noisy step: its dominating pair and how many times it ran.

    Attributes:
        law: "gaussian" or "laplace" noise.
        noise_multiplier: standard deviation or Laplace scale, in units of one record's contribution, > 0.
        sample_rate: probability that the target takes part.
        shift: how far the target moves the sum when it does.
        antipodal: replacement under Poisson sampling: shifts -1 and +1 against each other.
        symmetric: sampling without replacement, unless records are added or removed: the symmetrised pair.
        count: number of such steps.
    """

    laplace: bool
    noise_multiplier: float
    sample_rate: float
    shift: float
    antipodal: bool = False
    symmetric: bool = False
    count: int = 1

    @property
    def anchor(self) -> float:
        """Distance between the two atoms of the losses; 0 where there are none."""
        if not self.laplace:
            return 0.0
        forward, back = self.largest_losses
        return forward + back

    @property
    def largest_losses(self) -> tuple[float, float]:
        """The largest log likelihood ratio, and the largest of its negative; infinite where there is none."""
        if self.antipodal or self.symmetric or (self.sample_rate == 1.0 and not self.laplace):
            return math.inf, math.inf
        absent = -math.log1p(-self.sample_rate) if self.sample_rate < 1.0 else math.inf
        if not self.laplace:
            return math.inf, absent
        reach = self.shift / self.noise_multiplier
        if self.sample_rate == 1.0:
            return reach, reach
        rate = self.sample_rate
        forward = math.log1p(rate * math.expm1(reach)) if reach < 700.0 else reach + math.log(rate)
        return forward, min(-math.log1p(self.sample_rate * math.expm1(-reach)), absent)

    def curve(self) -> TradeOff:
        """The pair as a curve, H0 = absent."""
        if self.antipodal:
            return AntipodalPair(self.noise_multiplier, self.sample_rate)
        mu = self.shift / self.noise_multiplier
        plain = LaplaceTradeOff(mu) if self.laplace else GaussianTradeOff(mu)
        if self.sample_rate == 1.0:
            return plain
        sampled = Subsampled(plain, self.sample_rate)
        return symmetrised(sampled) if self.symmetric else sampled


def steps_of(
    mechanism: Mechanism, neighbouring: Neighbouring, *, attained: bool = False
) -> tuple[tuple[Step, ...], float]:
    """The kinds of noisy steps, and the probability that a noiseless one showed the target.

    Plain Gaussian releases are merged into one: their parameters add in squares. Equal steps are counted
    together; the order of parts is dropped, as the curve does not depend on it. With ``attained``, steps that some
    data set has: what only dominates is weakened or left out.
    """
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    counts: Counter[Step] = Counter()
    squared, log_unseen = 0.0, 0.0
    for part in parts:
        step, count = _step(part, neighbouring, attained)
        if count == 0:
            continue
        if part.noise_multiplier == 0.0:
            log_unseen += count * math.log1p(-step.sample_rate) if step.sample_rate < 1.0 else -math.inf
        elif step.sample_rate == 1.0 and not step.laplace:
            squared += count * (step.shift / step.noise_multiplier) ** 2
        else:
            counts[step] += count
    steps = [
        Step(s.laplace, s.noise_multiplier, s.sample_rate, s.shift, s.antipodal, s.symmetric, n)
        for s, n in counts.items()
    ]
    if squared > 0.0:
        steps.append(Step(laplace=False, noise_multiplier=1.0, sample_rate=1.0, shift=math.sqrt(squared)))
    return tuple(sorted(steps, key=repr)), -math.expm1(log_unseen)


def _step(part: Gaussian | Laplace | DPSGD, neighbouring: Neighbouring, attained: bool) -> tuple[Step, int]:
    if isinstance(part, Laplace):
        if part.sample_rate < 1.0 and neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("no dominating pair is proven for sampled Laplace releases under replace")
        return Step(True, part.noise_multiplier, part.sample_rate, neighbouring.sensitivity), part.releases
    if isinstance(part, Gaussian):
        return Step(False, part.noise_multiplier, 1.0, neighbouring.sensitivity), part.releases
    run, far = accountable(part), attained_shift(part, neighbouring) if attained else shift(part, neighbouring)
    fixed = run.sampler is Sampler.FIXED_SIZE
    step = Step(
        laplace=False,
        noise_multiplier=run.noise_multiplier,
        sample_rate=run.sample_rate,
        shift=far,
        antipodal=neighbouring is Neighbouring.REPLACE and not fixed and run.sample_rate < 1.0,
        symmetric=fixed and neighbouring is not Neighbouring.ADD_REMOVE and not attained,
    )
    return step, run.steps if far > 0.0 else 0
