"""Every number in the tables of the two notes follows from the library."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import pytest

import reticent as rt
from reticent.adversaries.relaxed.norm_only import norm_only
from tests.docs.follow import ROOT

REPLACEMENT, SAMPLING = ROOT / "docs/theory/replace-dominance.md", ROOT / "docs/theory/relaxed/sampling.md"
FIGURE_7 = rt.DPSGD(noise_multiplier=6.0, sample_rate=0.2, steps=100)

pytestmark = pytest.mark.docs


def rows(page, columns: int) -> Iterator[list[str]]:
    """Cells of the rows with so many columns, without the head."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == columns and re.match(r"[\d.]", cells[-1]):
            yield cells


def run(noise: str, rate: str, steps: str) -> rt.DPSGD:
    return rt.DPSGD(noise_multiplier=float(noise), sample_rate=float(Fraction(rate)), steps=int(steps))


def shows(cell: str, value: float) -> bool:
    """Whether ``cell`` is ``value`` rounded to the digits that it has."""
    return abs(float(cell) - value) <= 0.5000001 * 10.0 ** Decimal(cell).as_tuple().exponent


def epsilon(curve) -> float:
    return rt.epsilon_at_delta(curve, 1e-5)


@pytest.mark.parametrize("cells", list(rows(REPLACEMENT, 9)), ids=lambda cells: cells[0])
def test_replacement(cells: list[str]) -> None:
    mechanism = run(*cells[:3])
    halved = rt.DPSGD(mechanism.noise_multiplier / 2.0, mechanism.sample_rate, mechanism.steps)
    asked = [(mechanism, "add-remove"), (mechanism, "replace"), (halved, "add-remove")]
    found = [rt.WorstCase().assess(what, rt.Neighbouring(between)) for what, between in asked]
    numbers = [each.measure(measure) for measure in (rt.advantage, epsilon) for each in found]
    assert [shows(cell, number.value) for cell, number in zip(cells[3:], numbers, strict=True)] == [True] * 6
    assert all(number.upper - number.lower < 1e-5 * number.upper for number in numbers)


@pytest.mark.parametrize("cells", list(rows(SAMPLING, 8)), ids=lambda cells: f"{cells[0]}-{cells[3]}")
def test_advantage_in_dimensions(cells: list[str]) -> None:
    mechanism, dimension = run(*cells[:3]), int(cells[3])
    worst = rt.WorstCase().assess(mechanism).measure(rt.advantage)
    sign = rt.Relaxed().assess(mechanism).measure(rt.advantage)
    stated = rt.Relaxed(dimension=dimension).assess(mechanism).measure(rt.advantage)
    numbers = [worst.value, sign.value, stated.value, stated.lower]
    assert [shows(cell, number) for cell, number in zip(cells[4:], numbers, strict=True)] == [True] * 4, numbers


def test_delta_at_the_parameters_of_figure_7() -> None:
    def delta(curve) -> float:
        return rt.delta_at_epsilon(curve, 0.2)

    worst = rt.WorstCase().assess(FIGURE_7)
    floor = worst.measure(lambda curve: rt.delta_at_epsilon(curve, 0.2 + math.log(2.0)))
    numbers = [
        delta(norm_only(FIGURE_7).above),
        floor.value,
        rt.Relaxed().assess(FIGURE_7).measure(delta).value,
        worst.measure(delta).value,
    ]
    shown = [cells[1] for cells in rows(SAMPLING, 2)]
    assert [shows(cell, number) for cell, number in zip(shown, numbers, strict=True)] == [True] * 4, numbers
    assert numbers == sorted(numbers)


def test_the_tables_were_read() -> None:
    assert [len(list(rows(*of))) for of in ((REPLACEMENT, 9), (SAMPLING, 8), (SAMPLING, 2))] == [4, 6, 4]


def test_another_number_is_seen() -> None:
    assert shows("0.1403", 0.14032098)
    assert not shows("0.1403", 0.1404)
    assert not shows("1.35e-7", 1.36e-7)
