"""Attacks on the relaxed attacker's model whose gradients react to the weights, with exact rates or exact ratios.

Nothing here uses the code under test. ``frozen_rates`` is exact up to quadrature. ``learning_power`` has an exact false
positive rate and a simulated power. ``reaction`` gives exact likelihood ratios, for finitely many directions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta, binom

React = Callable[[np.ndarray | float, np.ndarray], np.ndarray]
"""From the sum of what was released and the log ratios of ``count`` records (runs, count) to effects (.., count, d)."""


def frozen_rates(
    noise: float, rate: float, steps: int, dimension: int, z: np.ndarray, *, records: int = 1, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(fpr, power) of thresholds on the sum of <y_t, e>: the record pushes where <u, e> > 0, or always, with its sign.

    With several records all have one direction. ``signed``: a whole user u_t = u sgn<u, w_t>, a head with one output,
    or a squared loss.
    """
    counts = np.arange(records * steps + 1)
    mass = binom.pmf(counts, records * steps, rate)
    kept = mass > 1e-15
    nodes, weights = _overlap_nodes(dimension)
    shift = np.multiply.outer(nodes, counts[kept]) / (noise * np.sqrt(steps))
    weight = np.multiply.outer(weights, mass[kept]) * (1.0 if signed else 0.5)
    fpr = ndtr(-z)
    gained = np.array([np.sum(weight * (ndtr(shift - t) - ndtr(-t))) for t in z])
    return fpr, fpr + gained


def frozen_advantage(noise: float, rate: float, steps: int, dimension: int, **how: object) -> float:
    """The largest power less false positive rate of these thresholds."""
    best, z = 0.0, np.linspace(-1.0, 6.0, 36)
    for _ in range(2):
        fpr, power = frozen_rates(noise, rate, steps, dimension, z, **how)
        top = int(np.argmax(power - fpr))
        best, z = max(best, float(power[top] - fpr[top])), np.linspace(z[max(top - 1, 0)], z[min(top + 1, 35)], 12)
    return best


def many_outputs_advantage(
    noise: float, rate: float, steps: int, dimension: int, outputs: int, *, signs_kept: bool = False
) -> float:
    """A head with ``outputs`` <= d outputs and v = M'u / |M'u|: the sum of <y_t, M> / |M| moves by |M'u| / |M|.

    ``signs_kept``: with (M'u)_+ for M'u, and as many outputs as dimensions.
    """
    counts = np.arange(steps + 1)
    mass = binom.pmf(counts, steps, rate)
    levels = (np.arange(500) + 0.5) / 500
    if signs_kept:
        u = np.random.default_rng(2).normal(size=(500, dimension))
        length = np.linalg.norm(np.maximum(u, 0.0), axis=1) / np.linalg.norm(u, axis=1) / np.sqrt(dimension)
    elif outputs < dimension:
        length = np.sqrt(beta.ppf(levels, outputs / 2, (dimension - outputs) / 2) / outputs)
    else:
        length = np.full(500, dimension**-0.5)
    shift = np.multiply.outer(length, counts[mass > 1e-12]) / (noise * np.sqrt(steps))
    weight = mass[mass > 1e-12] / len(levels)
    return max(float(np.sum((ndtr(shift - t) - ndtr(-t)) @ weight)) for t in np.linspace(0.0, 3.0, 30))


@cache
def _overlap_nodes(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of |<u, e>|: Gauss-Legendre in the angle, whose density is sin^(d - 2)."""
    if dimension == 1:
        return np.ones(1), np.ones(1)
    x, w = np.polynomial.legendre.leggauss(120)
    top = min(np.pi / 2, 12.0 / np.sqrt(dimension))
    angle = 0.5 * top * (x + 1.0)  # from the equator
    density = np.exp((dimension - 2.0) * np.log(np.cos(angle))) * w
    return np.sin(angle), density / density.sum()


def learning_power(
    noise: float, rate: float, steps: int, dimension: int, runs: int, z: np.ndarray, rng: np.random.Generator,
    start: float = 0.0, *, signed: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(fpr, power, standard error): the record is active while it agrees with w_t = start e + y_1 + ... + y_(t-1).

    The attacker thresholds the sum of <y_t, w_t / |w_t|>: under "absent" exactly normal, as w_t is known before y_t.
    """
    u = rng.normal(size=(runs, dimension))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    w = np.zeros((runs, dimension))
    w[:, 0] = start if start else 1e-9
    total = np.zeros(runs)
    for _ in range(steps):
        length = np.linalg.norm(w, axis=1)
        agrees = np.einsum("ij,ij->i", u, w) / length
        push = np.sign(agrees) if signed else (agrees > 0.0)
        y = noise * rng.normal(size=(runs, dimension)) + ((rng.random(runs) < rate) * push)[:, None] * u
        total += np.einsum("ij,ij->i", y, w) / length
        w += y
    score = total / (noise * np.sqrt(steps))
    power = np.mean(score[:, None] > z, axis=0)
    return ndtr(-z), power, np.sqrt(power * (1.0 - power) / runs)


def directions(dimension: int, count: int) -> np.ndarray:
    """``count`` directions that are spread evenly over the circle or the sphere; both signs of e_1 in one dimension."""
    if dimension == 1:
        return np.array([[1.0], [-1.0]])
    if dimension == 2:
        angle = 2.0 * np.pi * (np.arange(count) + 0.5) / count
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height = 1.0 - 2.0 * (np.arange(count) + 0.5) / count  # Fibonacci's lattice
    angle = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(count)
    ring = np.sqrt(1.0 - height**2)
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)


def reaction(
    react: React, noise: float, rate: float, steps: int, count: int, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """(means, standard errors) of what exact likelihood ratios of a reaction show: ``count`` records are as likely.

    Of the divergence, of chi-square, and of the advantage in both directions.
    """
    rng, last = np.random.default_rng(5), []
    for present in (False, True):
        record, logs, total = rng.integers(count, size=runs), np.zeros((runs, count)), 0.0
        for _ in range(steps):
            effects = react(total, logs)
            effects = np.broadcast_to(effects, (runs, *effects.shape[-2:]))
            drawn = (rng.random(runs) < rate) * present
            y = drawn[:, None] * effects[np.arange(runs), record] + noise * rng.normal(size=(runs, effects.shape[2]))
            inner = np.einsum("rcd,rd->rc", effects, y) - 0.5 * np.sum(effects**2, axis=2)
            logs, total = logs + np.log1p(rate * np.expm1(inner / noise**2)), total + y
        last.append(np.log(np.mean(np.exp(logs), axis=1)))

    absent, present = last
    samples = np.array(
        [present, np.expm1(absent) ** 2, np.maximum(np.expm1(absent), 0.0), np.maximum(-np.expm1(-present), 0.0)]
    )
    return samples.mean(axis=1), samples.std(axis=1) / np.sqrt(runs)


def random_reaction(rng: np.random.Generator, u: np.ndarray, *, signed: bool = False) -> React:
    """Active on a cap around a random linear function of the past and a fixed vector; or with smooth lengths."""
    pull, level, soft = rng.normal() * 2.0, rng.normal() * 0.3, rng.random() < 0.4
    start = rng.normal(size=3)[: u.shape[1]]

    def react(total: np.ndarray | float, logs: np.ndarray) -> np.ndarray:
        w = start + pull * total
        agrees = (w / np.linalg.norm(w, axis=-1, keepdims=True)) @ u.T
        if signed:
            length = np.tanh(8.0 * (agrees - level)) if soft else np.sign(agrees - level)
        else:
            length = 1.0 / (1.0 + np.exp(-9.0 * (agrees - level))) if soft else (agrees > level).astype(float)
        return length[..., None] * u

    return react


def greedy_reaction(u: np.ndarray) -> React:
    """Active on the half around what the posterior favours: weights that follow the hidden direction."""

    def react(total: np.ndarray | float, logs: np.ndarray) -> np.ndarray:
        middle = np.exp(logs - logs.max(axis=1, keepdims=True)) @ u + 1e-9
        return (middle @ u.T > 0.0)[:, :, None] * u

    return react


def head_reaction(rng: np.random.Generator, u: np.ndarray, *, signs_kept: bool = False) -> React:
    """u (x) v with two outputs: v turns with a random linear function of the past and of u; or its part >= 0 alone."""
    dimension = u.shape[1]
    start, turn = rng.normal(size=(2, dimension)), rng.normal(size=(2, 2 * dimension)) * 0.5

    def react(total: np.ndarray | float, logs: np.ndarray) -> np.ndarray:
        known = np.broadcast_to(total, (len(logs), 2 * dimension)) @ turn.T
        v = u @ start.T + known[:, None, :]
        v = np.maximum(v, 0.0) if signs_kept else v
        v /= np.maximum(np.linalg.norm(v, axis=2, keepdims=True), 1e-12)
        return np.einsum("mi,rmo->rmio", u, v).reshape(*v.shape[:2], -1)

    return react


def divergence(excess: Callable[[np.ndarray], np.ndarray]) -> float:
    """KL(present || absent) of one step by the trapezoid rule; ``excess`` is the ratio less 1 at y over the noise."""
    z = np.linspace(-40.0, 60.0, 20_001)
    x = excess(z)
    small = np.clip(x, -1e-4, 1e-4)
    nats = np.where(x == small, small**2 * (0.5 - small / 6.0), (1.0 + x) * np.log1p(x) - x)
    return float(np.trapezoid(nats * np.exp(-0.5 * z * z), z) / np.sqrt(2.0 * np.pi))
