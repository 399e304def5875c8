"""The report of an audit: the verdict first, what it could have found, and nothing private unless asked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from reticent.auditing import AuditReport, Design, NormalScores, Ranks, Scores, audit, audit_claim, save_scores
from reticent.auditing.claims import TangentTable
from reticent.auditing.normal_scores import normal_scores_power
from reticent.auditing.planning import rank_power
from reticent.auditing.thresholds import ALL_RANKS
from reticent.auditing.verdict import Finding
from reticent.certificates.page import audit_page
from reticent.certificates.page.audit_page import headline, render_audit, write_audit_page
from reticent.certificates.page.audit_power import POWER, detectable
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError
from tests.cli.calling import run

HOSTILE = "<script>alert(1)</script>$\\frac{1}{0}$\u202e"
CLAIMS = {HOSTILE: GaussianTradeOff(0.5)}


def scores(mu: float, count: int, design: Design = Design.INDEPENDENT) -> Scores:
    rng = np.random.default_rng(4)
    return Scores(rng.normal(mu, 1, count), rng.normal(0, 1, count), {"attack": HOSTILE, "seed": 4}, design)


@cache
def judged() -> AuditReport:
    return audit(scores(2.0, 60), CLAIMS)


@cache
def written() -> dict[str, bytes]:
    """The page of that audit and its pictures, by the ends of their names; drawing them takes half a second."""
    with TemporaryDirectory() as folder:
        write_audit_page(Path(folder) / "report.html", judged(), CLAIMS)
        return {path.suffix: path.read_bytes() for path in Path(folder).iterdir()}


def test_the_verdict_comes_first_and_foreign_names_do_nothing() -> None:
    page = written()[".html"].decode()
    assert "refuted" in headline(judged())
    assert page.index(headline(judged())) < page.index("<svg") < page.index("What was tried")
    for forbidden in ("<script", "\u202e", "Scores of the records"):
        assert forbidden not in page
    assert "This audit could have found an attacker of advantage" in page
    (line,) = re.findall("<li>(epsilon at delta 1e-05, if the curve is Gaussian: [^<]*)</li>", page)
    assert line.endswith("Holds only if the trade-off curve of the release is Gaussian.")


def test_single_records_are_shown_on_request_and_pictures_follow_light_and_dark() -> None:
    private = render_audit(judged(), written()[".svg"].decode(), private=True)
    assert "Scores of the records" in private
    assert "Do not publish" in private
    drawn = "".join(re.findall(r"<svg.*?</svg>", private, re.S))
    assert not re.findall(r'style="[^"]*#[0-9a-f]{6}', drawn)
    assert {"var(--ink)", "var(--paper)", "var(--s1)"} <= set(re.findall(r"var\(--\w+\)", drawn))
    assert "var(" not in written()[".svg"].decode()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("r", "The claim is refuted: the attack does better than it would allow."),
        ("rc", "1 of 2 claims is refuted: the attack does better than it would allow."),
        ("crr", "2 of 3 claims are refuted: the attack does better than they would allow."),
        ("cn", "The attack works, and no better than claimed."),
        ("nn", "This audit does not test the claim."),
    ],
)
def test_an_audit_says_first_that_one_of_its_claims_is_refuted(found: str, said: str) -> None:
    meant = {"r": Finding.INCONSISTENT, "c": Finding.CONSISTENT, "n": Finding.NO_POWER}
    verdicts = {str(place): SimpleNamespace(finding=meant[one]) for place, one in enumerate(found)}
    assert headline(SimpleNamespace(verdicts=verdicts)).startswith(said)  # type: ignore[arg-type]


def test_the_page_of_an_audit_rounds_to_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(audit_page, "template", lambda _: SimpleNamespace(render=lambda **given: asked.update(given)))
    monkeypatch.setattr(audit_page, "detectable", lambda *_: None)
    interval = SimpleNamespace(value=0.2, lower=0.123456, upper=0.234561, method="exact")
    bound = SimpleNamespace(title="mu", rule="ranks", value=0.123456, ceiling=0.234561, notes=["of a bound"])
    verdict = SimpleNamespace(finding=Finding.CONSISTENT, notes=["of a verdict"])
    about = {"scores": SimpleNamespace(meta={}, design=Design.INDEPENDENT), "confidence": 0.95, "tpr": {}}
    report: Any = SimpleNamespace(**about, bounds=[bound], auc=interval, verdicts={"claim": verdict})
    render_audit(report, "")
    assert asked["bounds"] == [("mu", "0.1234", "0.2346", "ranks")]
    assert asked["rates"] == [("AUC", "0.2", "0.1234 to 0.2346", "exact")]
    assert asked["notes"] == ["of a bound", "of a verdict"]


def test_the_power_is_that_of_simulated_audits() -> None:
    found = detectable(scores(0.0, 150), 0.95)
    assert found is not None
    assert 0.8 <= found.power < 0.81
    rng, noticed = np.random.default_rng(8), 0
    for _ in range(40):
        drawn = Scores(rng.normal(found.mu, 1, 150), rng.normal(0, 1, 150), design=Design.INDEPENDENT)
        noticed += audit_claim(drawn, GaussianTradeOff(0.0)).p_value <= 0.05
    # Several levels are looked at, so the power is at least that of the best one: 5 standard errors below 0.8.
    assert noticed / 40 > 0.8 - 5 * (0.8 * 0.2 / 40) ** 0.5


def test_more_scores_find_weaker_attackers_and_few_find_none() -> None:
    many, few = (detectable(scores(0.0, count), 0.95) for count in (2000, 100))
    assert many.advantage < few.advantage  # type: ignore[union-attr]
    for none in (scores(1.0, 2), scores(0.0, 100, Design.ONE_RUN)):
        assert detectable(none, 0.95) is None


@pytest.mark.parametrize("rule", [NormalScores(), Ranks((0.01, 0.1))])
def test_the_power_of_an_audit_is_that_of_its_own_sizes(rule: NormalScores | Ranks) -> None:
    """Few members among many others are another audit than many among few."""
    few, many = np.linspace(0.0, 1.0, 60), np.linspace(0.0, 2.0, 600)
    guessing, level = TangentTable(GaussianTradeOff(0.0)), ALL_RANKS * 0.05
    for given, (members, others) in (((few, many), (60, 600)), ((many, few), (600, 60))):
        found = detectable(Scores(*given), 0.95, rule)
        assert found is not None
        truth = TangentTable(GaussianTradeOff(found.mu))
        if isinstance(rule, Ranks):
            power = max(rank_power(guessing, truth, members, others, fpr, 0.025) for fpr in rule.levels)
        else:
            power = normal_scores_power(guessing, truth, others, members, level)
        assert POWER <= found.power < 1.01 * POWER
        assert found.power == pytest.approx(power, rel=1e-9, abs=0)


def test_page_and_pictures_of_the_command_line_lie_where_those_of_an_older_report_lay(
    tmp_path: Path, capsys: Any
) -> None:
    save_scores(tmp_path / "scores.npz", scores(1.0, 60))
    page = tmp_path / "report.html"
    for end in (".html", ".svg", ".png"):
        page.with_suffix(end).write_bytes(written()[end] if end == ".html" else b"old")
    code, _, err = run(capsys, "audit", tmp_path / "scores.npz", "--against-mu", "1.0", "--html", page)
    assert code == 0
    assert str(page) in err
    assert page.read_text().startswith("<!doctype html>")
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    drawn = page.with_suffix(".svg").read_text()
    assert drawn.startswith("<svg")
    assert "mathdefault" not in re.sub(r"<!--.*?-->", "", drawn)
    code, _, err = run(capsys, "audit", tmp_path / "scores.npz", "--private")
    assert (code, "--private" in err) == (2, True)


@pytest.mark.parametrize("name", ["report.html", "report.svg", "report.png"])
def test_a_report_replaces_nothing_of_somebody_else(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a key")
    for page in {"report.html", name}:
        with pytest.raises(ArtifactError, match=r"nothing is overwritten|name it \.html"):
            write_audit_page(tmp_path / page, judged(), CLAIMS)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {name: b"a key"}


@pytest.mark.parametrize(("option", "name"), [("--html", "key"), ("--save-scores", "key.csv")])
def test_a_foreign_file_is_named_before_the_work(tmp_path: Path, option: str, name: str, capsys: Any) -> None:
    (tmp_path / name).write_bytes(b"a key")
    asked = ("audit", tmp_path / "no such scores.npz", "--format", "scores", option, tmp_path / name)
    code, _, err = run(capsys, *asked)
    assert (code, "nothing is overwritten" in err) == (2, True)
    assert (tmp_path / name).read_bytes() == b"a key"
