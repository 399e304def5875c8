"""What Python shows of an object fits into 80 columns, and a mechanism can be typed again from it."""

from __future__ import annotations

import pytest

import reticent as rt
from reticent.kernel.mechanisms import Mechanism
from reticent.samplers import Shuffled

FULL = rt.DPSGD(1.1, 0.01, 1000, batch_size=64, dataset_size=6400, sampler=Shuffled(100))


@pytest.mark.parametrize(
    "run",
    [
        rt.DPSGD(1.1, 0.01, 1000),
        FULL,
        rt.Gaussian(2.0, releases=3),
        rt.Laplace(2.0),
        rt.RandomisedResponse(0.3),
        rt.Ledger([rt.Gaussian(2.0), FULL, rt.Laplace(1.5)]),
    ],
    ids=lambda run: type(run).__name__,
)
def test_a_mechanism_is_shown_in_80_columns_and_can_be_typed_again(run: Mechanism) -> None:
    shown = repr(run)
    assert max(map(len, shown.splitlines())) <= 80
    assert "None" not in shown
    assert eval(shown, {name: getattr(rt, name) for name in rt.__all__} | {"Shuffled": Shuffled}) == run  # noqa: S307


def test_defaults_are_left_out() -> None:
    assert repr(rt.DPSGD(1.1, 0.01, 1000)) == "DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000)"
    assert "sampler=Shuffled(batches_per_epoch=100)" in repr(FULL)


@pytest.mark.parametrize("run", [rt.Gaussian(2.0), rt.DPSGD(1.1, 0.01, 100)], ids=lambda run: type(run).__name__)
def test_an_enclosure_is_shown_in_80_columns(run: Mechanism) -> None:
    shown = repr(rt.assess(run)[0].truth)
    assert max(map(len, shown.splitlines())) <= 80
    assert "notes" not in shown
