"""Closed forms against decimal goldens, mpmath, and the exact value on a grid.

Theorems: RETICENT:rho-form, RETICENT:clt, RETICENT:hellinger-bracket, CHERUBIN2024:Corollary 7.
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

from experiments.closed_forms import forms
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.accountants.affinity import minus_log_affinity
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs import Neighbouring

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "closed_forms.json").read_text())["vectors"]
GRID = json.loads((Path(__file__).parents[1] / "golden" / "closed_form_grid.json").read_text())["rows"]
"""Relation, noise, rate, steps, the exact advantage, its error."""
RELATIONS = {"sub": Neighbouring.REPLACE, "add": Neighbouring.ADD_REMOVE}


@pytest.mark.parametrize(
    "entry", [v for v in GOLDEN if v["id"].startswith(("exact_sub", "exact_add"))], ids=lambda v: v["id"]
)
def test_goldens_lie_inside_the_proven_bracket(entry: dict) -> None:
    params, relation = entry["params"], RELATIONS[entry["params"]["kind"]]
    arguments = float(params["sigma"]), float(params["p"]), params["T"], relation
    truth = 1 - float(entry["value"]["beta"])
    lower, upper = forms.proven_bracket(*arguments)
    assert lower <= truth + 1e-12
    assert truth - 1e-12 <= upper
    assert truth - 1e-12 <= forms.proven(*arguments)


@pytest.mark.parametrize("entry", [v for v in GOLDEN if "bc_form" in v["value"]], ids=lambda v: v["id"])
def test_rho_form_matches_the_goldens(entry: dict) -> None:
    params, relation = entry["params"], RELATIONS[entry["params"]["kind"]]
    arguments = float(params["sigma"]), float(params["p"]), params["T"], relation
    assert 1 - forms.rho_form(*arguments) == pytest.approx(float(entry["value"]["bc_form"]), rel=0, abs=1e-11)


def test_equation_4_is_reproduced_and_is_unsafe() -> None:
    """CHERUBIN2024:B3: the printed rate for Bayes security 0.98 after 5,000 steps does not give it."""
    golden = {v["id"]: float(v["value"]) if not isinstance(v["value"], dict) else v for v in GOLDEN}

    def security(noise: float, rate: float) -> float:
        return 1.0 - certified_advantage(noise, rate, 5000, Neighbouring.REPLACE)[1]

    slope = forms.mu_at(0.02) / forms.published_mu(1.0, 1.0, 5000, Neighbouring.REPLACE)  # mu grows as the rate
    assert slope == pytest.approx(golden["eq4_0.98_5000"], rel=1e-12, abs=0)
    for noise, really in ((1.0, 0.97861), (0.5, 0.95451)):  # the printed rate itself, which is rounded down
        assert security(noise, 0.00035 * noise) == pytest.approx(really, abs=1e-5)
    for noise, really in ((1.0, 0.97834), (0.7, 0.97301), (0.5, 0.95393), (2.0, 0.97990)):
        rate = float(slope) * noise
        assert security(noise, rate) == pytest.approx(really, abs=1e-5)
        assert really < 0.98
        safe = forms.mu_at(0.02) / forms.clt_mu(noise, 1.0, 5000, Neighbouring.REPLACE)
        assert security(noise, float(safe)) >= 0.98
    rate = forms.mu_at(0.1) / forms.clt_mu(1.0, 1.0, 2020, Neighbouring.REPLACE)
    assert rate == pytest.approx(golden["eq4_clt_0.9_2020_s1"], rel=1e-12, abs=0)


def _mp_minus_log_affinity(noise: float, rate: float, replace: bool) -> mpmath.mpf:
    n, p = mpmath.mpf(noise), mpmath.mpf(rate)

    def integrand(z: mpmath.mpf) -> mpmath.mpf:
        a = 1 - p + p * mpmath.exp(z / n - 1 / (2 * n * n))
        b = 1 - p + p * mpmath.exp(-z / n - 1 / (2 * n * n)) if replace else 1
        return mpmath.npdf(z) * (mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2 / 2

    end = 2 / n + 14
    start = -end if replace else mpmath.mpf(-14)
    return -mpmath.log1p(-mpmath.quad(integrand, mpmath.linspace(start, end, 13)))


CORNERS = [(0.1, 0.999), (1.0, 1e-3), (1000.0, 0.2)]
BETWEEN = [
    pytest.param(noise, rate, marks=pytest.mark.slow)
    for noise in (0.1, 0.4, 1.0, 10.0, 1000.0)
    for rate in (1e-8, 1e-3, 0.2, 0.6, 0.999)
    if (noise, rate) not in CORNERS
]


@pytest.mark.parametrize("relation", RELATIONS.values())
@pytest.mark.parametrize(("noise", "rate"), CORNERS + BETWEEN)
def test_affinity_is_enclosed(noise: float, rate: float, relation: Neighbouring) -> None:
    lower, upper = minus_log_affinity(np.array(noise), np.array(rate), relation)
    with mpmath.workdps(30):
        truth = _mp_minus_log_affinity(noise, rate, relation is Neighbouring.REPLACE)
        assert lower <= truth <= upper
        assert (upper - lower) / truth < 2e-10


def test_affinity_at_tiny_noise_is_enclosed_by_its_limits() -> None:
    for relation, power in ((Neighbouring.REPLACE, 1.0), (Neighbouring.ADD_REMOVE, 0.5)):
        lower, upper = minus_log_affinity(np.array([0.0, 1e-3, 0.0299]), np.array(0.3), relation)
        limit = -power * np.log(0.7)
        assert np.all(lower <= limit)
        assert upper == pytest.approx(limit, rel=1e-12, abs=0)
        assert upper - lower == pytest.approx(0.0, abs=1e-11)


def grid(relation: Neighbouring) -> list[np.ndarray]:
    """Noise, rate, steps, the exact advantage and its error."""
    return [np.array(column) for column in zip(*(row[1:] for row in GRID if row[0] == relation.value), strict=True)]


def test_published_form_is_unsafe_as_the_errata_say() -> None:
    """CHERUBIN2024:B1 and CHERUBIN2024:B2: optimistic for most points, by more than half."""
    for relation in RELATIONS.values():
        noise, rate, steps, exact, _ = grid(relation)
        below = exact - forms.published(noise, rate, steps, relation)
        predicted = (rate < 1 / (12 * noise**2)) & (steps >= 10_000) & (exact > 1e-6) & (exact < 0.999)
        assert np.max(below) > 0.55
        assert np.count_nonzero(predicted) >= 20
        assert np.all(below[predicted] > 0.0)


def test_directions_of_error_on_the_whole_grid() -> None:
    """576 points, down to 10 steps: who is safe, who is not, and by how much at most (docs/theory/closed-forms.md)."""
    assert len(GRID) == 576
    for relation in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE):
        noise, rate, steps, exact, error = grid(relation)
        slack = error + 6e-6 * exact  # the file has six digits
        lowest = {"clt": 0.0, "rho_form": 0.0, "proven": 0.0}
        if relation is Neighbouring.ADD_REMOVE:
            lowest |= {"rho_form": 1.6e-3}
        for name, allowed in lowest.items():
            value = getattr(forms, name)(noise, rate, steps, relation)
            assert np.all(value >= exact - slack - allowed), name
        lower, upper = forms.proven_bracket(noise, rate, steps, relation)
        assert np.all(lower <= exact + slack)
        assert np.all(exact - slack <= upper)
        for name, share in {"rho_form": 0.83, "clt": 0.7, "published": 0.54}.items():
            close = np.abs(getattr(forms, name)(noise, rate, steps, relation) - exact) <= 1e-3
            assert close.mean() > share, name


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.05, 1.0, 1e3])
@pytest.mark.parametrize("rate", [1e-8, 0.3, 1.0])
@pytest.mark.parametrize("steps", [1, 10**8])
def test_always_a_number_between_0_and_1(noise: float, rate: float, steps: int) -> None:
    for relation in Neighbouring:
        for form in (forms.published, forms.clt, forms.rho_form, forms.proven):
            assert 0.0 <= form(noise, rate, steps, relation) <= 1.0
        lower, upper = forms.proven_bracket(noise, rate, steps, relation)
        assert 0.0 <= lower <= upper <= 1.0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((-1.0, 0.1, 10), "noise_multiplier"), ((1.0, 0.0, 10), "sample_rate"), ((1.0, 0.1, 0), "steps")],
)
def test_arguments_are_checked(arguments: tuple, name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        forms.clt(*arguments, Neighbouring.ADD_REMOVE)
