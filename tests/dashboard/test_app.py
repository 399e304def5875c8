"""The page shows what the library answers, and an error as a sentence."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dash = pytest.importorskip("dash")

from reticent.cli import main
from reticent.dashboard.app import answer, build_app, fields
from reticent.mechanism import DPSGD, MECHANISMS
from reticent.risk import advantage
from reticent.threat import WorstCase

GIVEN = {
    "mechanism": "dpsgd",
    "neighbouring": "add-remove",
    "dpsgd-noise_multiplier": 2.0,
    "dpsgd-sample_rate": 0.05,
    "dpsgd-steps": 50,
    "dpsgd-max_grad_norm": 1.0,
    "dpsgd-sampler": "poisson",
}


def test_the_numbers_are_those_of_the_library() -> None:
    message, sentences, table, linear, logarithmic = answer(GIVEN)
    expected = WorstCase().assess(DPSGD(2.0, 0.05, 50)).measure(advantage).value
    first = [cell.children for cell in table[1].children[0].children]
    assert first[0] == "worst-case"
    assert f"{expected:.4g}" in first
    assert "membership-game left out" in message
    assert len(sentences) == len(linear.data) == len(logarithmic.data) == 4


@pytest.mark.parametrize(
    ("word", "value"),
    [("noise_multiplier", -1), ("noise_multiplier", 1e-300), ("sample_rate", 2.0), ("steps", None)],
)
def test_bad_fields_are_named_and_nothing_else_is_shown(word: str, value: object) -> None:
    message, sentences, table, linear, _ = answer(GIVEN | {f"dpsgd-{word}": value})
    assert word in message
    assert (sentences, table, len(linear.data)) == ([], [], 0)


def test_the_page_is_served_with_its_own_assets() -> None:
    app = build_app()
    client = app.server.test_client()
    page = client.get("/").get_data(as_text=True)
    assert "https://" not in page
    assert "cdn" not in page


def test_a_privileged_port_is_refused(capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["dashboard", "--port", "80"])
    assert stopped.value.code == 2
    assert "--port" in capsys.readouterr().err


def test_every_mechanism_has_its_inputs_and_an_answer() -> None:
    known = {field.key: field.default for field in fields()}
    for name in MECHANISMS:
        message, sentences, *_ = answer({"mechanism": name, "neighbouring": "add-remove", **known})
        assert len(sentences) == 4, (name, message)
