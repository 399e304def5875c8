"""The certified advantage alone: threshold 0 on the line c = 1/2, every term of the certificate in few array calls.

Same terms as ``contour`` (docs/theory/composition.md), for one kind of step: the decay bound is asked at the last
frequency only, and one strip is planned. It gives up, with NumericalError, where one of these is not enough;
other routes then answer.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.kernel.curves.sums import roundings, weighted
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.pairs.loss_cells import LossCells
from reticent.pairs.sampled_gaussian import RealMoments, SampledGaussian
from reticent.pairs.strips import argument_reach, nowhere_turned, strips
from reticent.pairs.transforms import Decay, turned

_EPS = 2.0**-52
_SHARES = np.linspace(0.0, 1.0, 161)  # ends of the cells of the decay bound
_FURTHER = np.array([1.0]), np.array([1.06, 1.12, 1.2, 1.3, 1.45, 1.7, 2.0])
"""What is tried of the frequencies that were planned; of a long composition the first suffices."""
_UNTURNED = 4.5  # reach of a strip without oscillation
_NORMAL = 2.0  # how much further out than the exponents rare large losses count, where they do not matter
_LEAST_NOISE = 0.05
_LOUDEST = 60.0  # standard deviation of the composed loss
DIGITS, _NODE_DIGITS = 23.0, 28.0  # aliases and truncation each aim at e^-23, the quadrature rule at e^-28
DEVIATIONS = 6.8  # standard deviations that the composed loss and the nodes of its variance reach: e^-23
MOST_FREQUENCIES, _MOST_WORK = 2048, 1_000_000  # of the transform; nodes times frequencies
MANY_SINES, NEGLIGIBLE = 1500, 1e-20  # from how many on nodes are left out, and their tilted weight
_ROOMS = 1.0, 2.0  # factors on what nodes are planned for: the second is slower, and right where the first is too tight
_WIDE = 1e-7


def certified(pair: GaussianMixture, steps: int) -> tuple[float, float]:
    """``enclose_advantage`` with the least room that is enough, mostly within 1e-8.

    Raises:
        NumericalError: none is.
    """
    refused = []
    for room in _ROOMS:
        try:
            lower, upper = enclose_advantage(pair, steps, room)
        except NumericalError as error:
            refused.append(str(error))
            continue
        if upper - lower < _WIDE:
            return lower, upper
        refused.append(f"certified advantage: known within {upper - lower:.1g} only")
    raise NumericalError("; ".join(dict.fromkeys(refused)))


@np.errstate(all="ignore")  # what overflows is refused, or loses to a bound that does not
def enclose_advantage(pair: GaussianMixture, steps: int, room: float = 1.0) -> tuple[float, float]:
    """(lower, upper) around delta(0) of equal Poisson-sampled Gaussian steps, composed.

    Args:
        pair: of one step, with one shift of 1 and a rate in (0, 1).
        steps: how often.
        room: factor on what nodes are planned for.

    Raises:
        NumericalError: where this lean certificate does not apply.
    """
    noise, rate, antipodal = pair.noise_multiplier, float(pair.weights[0]), pair.antipodal
    if noise < _LEAST_NOISE:
        raise NumericalError("certified advantage: too little noise")
    cells = _cells(pair)
    variance = steps * cells.variance()
    spread = math.sqrt(variance)
    if not 0.0 < spread < _LOUDEST:
        raise NumericalError("certified advantage: the losses are too small or too large")
    linear = 0.5 / noise**2 - math.log(rate)
    bump = noise**2 * (linear + math.sqrt(linear**2 + 2.0 / noise**2 * max(30.0 - math.log(steps), 1.0)))
    furthest = min(9.0 / spread, bump)
    # 0.8 is best for losses that are nearly normal; 0.45 may be for rare large ones.
    shares = (0.8,) if bump > _NORMAL * furthest else (0.45, 0.8)
    right = [max(0.5 + share * furthest, 1.1) for share in shares]
    exponents = [0.5, *right] if antipodal else [0.5, *right, 0.5 - 0.75 * max(9.0 / spread, 1.2)]
    angles, reach = _strips(noise, rate, steps, antipodal, variance)
    law = SampledGaussian(noise, rate, antipodal, steps, reach * room, right[-1], _NODE_DIGITS * room, angles)
    if max(exponents) * float(law.nodes.loss[-1]) > 600.0 or min(exponents) * float(law.nodes.loss[0]) > 600.0:
        raise NumericalError("certified advantage: e^(cL) overflows")
    real = law.real(np.array(exponents))
    bounds = (real.excess + real.error).tolist()
    if not (all(-1.0 < bound < math.inf for bound in bounds) and real.excess[0] > -1.0):
        raise NumericalError("certified advantage: the moments cannot be computed")
    logs = [steps * math.log1p(bound) for bound in bounds[1:]]
    log_scale = steps * math.log1p(real.excess[0])
    gaps = [abs(exponent - 0.5) for exponent in exponents[1:]]
    ahead = len(right)
    # To the right the best of the exponents, to the left the last; the antipodal pair is its own mirror image.
    needed = [(log - log_scale + DIGITS) / gap for log, gap in zip(logs, gaps, strict=True)]
    window = max([min(needed[:ahead]), *needed[ahead:]])
    if not 0.0 < window < 1e6:
        raise NumericalError("certified advantage: no Chernoff bound")
    images = [_image(log, gap * window) for log, gap in zip(logs, gaps, strict=True)]
    alias = min(images[:ahead]) + (min(images[:ahead]) if antipodal else images[ahead])
    decay = cells.decay(0.5, math.log1p(bounds[0]))
    total, error = _sum(law, real, decay, 2.0 * math.pi / window, DEVIATIONS / spread)
    known = 2.0 / math.expm1(0.5 * window) if window < 1000.0 else 0.0
    scale = math.exp(log_scale)
    value, slack = 1.0 + known + scale * total, scale * error + 16 * _EPS * (1.0 + known)
    if not math.isfinite(value + slack + alias):
        raise NumericalError("certified advantage: overflow")
    return max(value - slack - alias, 0.0), min(value + slack, 1.0)


def _image(log_moment: float, decay: float) -> float:
    """Sum of e^(log_moment - m decay) over m >= 1, and more than what these logarithms are rounded by."""
    return math.exp(min(log_moment - decay, 700.0) + 1e-9) / -math.expm1(-decay)


def _cells(pair: GaussianMixture) -> LossCells:
    """Cells for the decay bound: the variance of the losses comes from around the observation 2."""
    noise = pair.noise_multiplier
    high = min(2.0 + 4.5 * noise, 1.0 + 8.0 * noise)
    low = -high if pair.antipodal else -4.5 * noise
    return LossCells.of(pair, low + (high - low) * _SHARES)


def _strips(
    noise: float, rate: float, steps: int, antipodal: bool, variance: float
) -> tuple[tuple[float, float], float]:
    """The strip that allows the widest spacing of nodes, as wide ones see more oscillation, and the narrowest; reach.

    Where the likelihood ratio hardly turns, the widest strip is taken at once.
    """
    digits = _NODE_DIGITS + math.log(steps)
    angles = strips(noise, digits)
    narrowest, *_, widest = angles.tolist()
    if nowhere_turned(noise, rate, antipodal, variance, widest):
        return (widest, narrowest), _UNTURNED
    reaches = argument_reach(noise, rate, antipodal, variance, angles[:, None])
    spacings = angles / (digits + reaches + 0.5 * (angles * noise) ** 2)
    best = int(spacings.argmax())
    return (float(angles[best]), narrowest), float(reaches[best])


def _last(decay: Decay, steps: int, nodes: int, spacing: float, last: float) -> tuple[int, float]:
    """(number of frequencies, log of the bound on the transform past them), from about ``last`` on."""
    count = int(last / spacing) + 2
    while count <= MOST_FREQUENCIES and count * nodes <= _MOST_WORK:
        for further in _FURTHER:
            counts = (count * further).astype(int)
            beyond = steps * decay.log_bound((counts - 0.5) * spacing)
            enough = beyond < -DIGITS
            if enough[-1]:
                found = int(enough.argmax())
                return int(counts[found]), float(beyond[found])
        count = 2 * count + 1
    raise NumericalError("certified advantage: the loss law is too close to atomic")


def _sum(law: SampledGaussian, real: RealMoments, decay: Decay, spacing: float, last: float) -> tuple[float, float]:
    """The trapezoid sum over frequencies in units of M(1/2)^steps, and a bound on its error."""
    steps, grid = law.count, law.nodes
    count, beyond = _last(decay, steps, len(grid.x), spacing, last)
    t = spacing * np.arange(count)
    tilted = grid.tilted(0.5)
    first, end, left_out = 0, len(tilted), 0.0
    if count * end > MANY_SINES:
        near = np.flatnonzero(tilted > NEGLIGIBLE)
        first, end = int(near[0]), int(near[-1]) + 1  # |e^(itL) - 1| is at most 2 at the others
        left_out = 2.0 * float(tilted[:first].sum() + tilted[end:].sum())
    turn, imaginary = turned(spacing, 0, count, grid.loss[first:end], tilted[first:end])
    excess = real.excess[0] + turn
    if grid.mirrored is not None:
        imaginary = np.zeros(count)
    size, phase = excess * (2.0 + excess) + imaginary * imaginary, np.arctan2(imaginary, 1.0 + excess)
    modulus = 0.5 * np.log1p(size)
    if not np.minimum.reduce(size) > -0.5:
        modulus = np.where(size < -0.5, np.log(np.hypot(1.0 + excess, imaginary)), modulus)
    off = law.rule(0.5, t, real) + real.rest[0] + law.turning(tilted) * t + left_out
    # |prod (z + e) - prod z| <= prod |z| (exp(sum log(1 + e/|z|)) - 1); log and power cost 8 eps each.
    relative = steps * (np.log1p(off * np.exp(-modulus)) + 8 * _EPS * (np.abs(modulus) + np.abs(phase)))
    absolute = np.exp(steps * (modulus - modulus[0]))
    kernel = spacing / math.pi / (t * t + 0.25)
    kernel[0] *= 0.5
    errors = absolute * (np.expm1(relative + relative[0]) + (72.0 + 0.5 * roundings(count)) * _EPS)
    if not np.maximum.reduce(errors) < 1e-11:
        # Where the rule does not resolve the oscillation, the decay bounds the truth.
        drowned = ~(errors < 1e-11)
        ceiling = np.exp(steps * decay.log_bound(t[drowned]))
        errors[drowned] = np.fmin(ceiling + absolute[drowned], errors[drowned])
    error = 1.000001 * float(kernel @ errors) + 1.000001 * math.exp(beyond) / (math.pi * spacing * (count - 1))
    return -float(weighted(np.cos(steps * phase)[None], kernel * absolute)[0]), error
