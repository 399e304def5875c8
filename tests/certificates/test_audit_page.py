"""The report of an audit: the verdict first, what it could have found, and nothing private unless asked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from reticent.auditing import AuditReport, Design, Scores, audit, audit_claim, save_scores
from reticent.certificates.page.audit_page import headline, render_audit, write_audit_page
from reticent.certificates.page.audit_power import detectable
from reticent.certificates.page.figures import audit_figure, svg
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError
from tests.cli.calling import run

CLAIMS = {"claim": GaussianTradeOff(1.0)}
HOSTILE = "<script>alert(1)</script>$\\frac{1}{0}$\u202e"


def scores(mu: float, count: int, design: Design = Design.INDEPENDENT) -> Scores:
    rng = np.random.default_rng(4)
    return Scores(rng.normal(mu, 1, count), rng.normal(0, 1, count), {"attack": HOSTILE, "seed": 4}, design)


@cache
def judged() -> AuditReport:
    """The audit of a small attack, for tests of where its page lies and how it is drawn."""
    return audit(scores(1.0, 60), CLAIMS)


@cache
def written() -> dict[str, bytes]:
    """The page of that audit and its pictures, by the ends of their names; drawing them takes half a second."""
    with TemporaryDirectory() as folder:
        write_audit_page(Path(folder) / "report.html", judged(), CLAIMS)
        return {path.suffix: path.read_bytes() for path in Path(folder).iterdir()}


@cache
def private() -> str:
    """The page of that audit for whoever may see single records."""
    return render_audit(judged(), svg(audit_figure(judged(), CLAIMS)), private=True)


@pytest.mark.parametrize(
    ("mu", "claimed", "says"),
    [
        (2.0, 0.5, "refuted"),
        pytest.param(1.0, 3.0, "no better than claimed", marks=pytest.mark.slow),
        pytest.param(0.0, 1.0, "does not test", marks=pytest.mark.slow),
    ],
)
def test_the_verdict_comes_first(mu: float, claimed: float, says: str) -> None:
    claims = {HOSTILE: GaussianTradeOff(claimed)}
    report = audit(scores(mu, 200), claims)
    assert says in headline(report)
    page = render_audit(report, svg(audit_figure(report, claims)))
    assert page.index(headline(report)) < page.index("<svg") < page.index("What was tried")
    assert "<script" not in page
    assert "\u202e" not in page
    assert "This audit could have found an attacker of advantage" in page


def test_a_condition_of_one_bound_names_it() -> None:
    lines = re.findall("<li>(.*?)</li>", written()[".html"].decode())
    (line,) = (one for one in lines if one.endswith("Holds only if the trade-off curve of the release is Gaussian."))
    assert line.startswith("epsilon at delta 1e-05, if the curve is Gaussian: ")


def test_a_blind_audit_says_in_its_headline_that_it_does_not_test() -> None:
    assert "does not test" in headline(audit(scores(0.0, 400), {"claim": GaussianTradeOff(1.0)}))


def test_the_power_is_that_of_simulated_audits() -> None:
    sizes = scores(0.0, 150)
    found = detectable(sizes, 0.95)
    assert found is not None
    assert 0.8 <= found.power < 0.81
    rng, noticed = np.random.default_rng(8), 0
    for _ in range(60):
        drawn = Scores(rng.normal(found.mu, 1, 150), rng.normal(0, 1, 150), design=Design.INDEPENDENT)
        noticed += audit_claim(drawn, GaussianTradeOff(0.0)).p_value <= 0.05
    # Several levels are looked at, so the power is at least that of the best one: 5 standard errors below 0.8.
    assert noticed / 60 > 0.8 - 5 * (0.8 * 0.2 / 60) ** 0.5


def test_more_scores_find_weaker_attackers_and_few_find_none() -> None:
    many, few = detectable(scores(0.0, 2000), 0.95), detectable(scores(0.0, 100), 0.95)
    assert many is not None
    assert few is not None
    assert many.advantage < few.advantage
    assert detectable(scores(1.0, 2), 0.95) is None
    assert detectable(scores(0.0, 100, Design.ONE_RUN), 0.95) is None


def test_single_records_are_shown_only_on_request() -> None:
    assert "Scores of the records" not in written()[".html"].decode()
    assert "Scores of the records" in private()
    assert "Do not publish" in private()


def test_pictures_on_the_page_follow_light_and_dark_and_files_do_not() -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", private(), re.S))
    assert not re.findall(r'style="[^"]*#[0-9a-f]{6}', drawn)
    assert {"var(--ink)", "var(--paper)", "var(--s1)"} <= set(re.findall(r"var\(--\w+\)", drawn))
    assert "var(" not in written()[".svg"].decode()


def test_page_and_pictures_lie_side_by_side_from_the_command_line(tmp_path: Path, capsys) -> None:
    save_scores(tmp_path / "scores.npz", scores(1.0, 60))
    page = tmp_path / "report.html"
    code, _, err = run(capsys, "audit", tmp_path / "scores.npz", "--against-mu", "1.0", "--html", page)
    assert code == 0
    assert str(page) in err
    assert page.read_text().startswith("<!doctype html>")
    assert page.with_suffix(".svg").read_text().startswith("<svg")
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "mathdefault" not in re.sub(r"<!--.*?-->", "", page.with_suffix(".svg").read_text())
    code, _, err = run(capsys, "audit", tmp_path / "scores.npz", "--private")
    assert code == 2
    assert "--private" in err


class TestOverwriting:
    """The pages and pictures of an audit replace older ones of their own, and nothing else."""

    def write(self, page: Path) -> None:
        write_audit_page(page, judged(), CLAIMS)

    @pytest.mark.parametrize("name", ["report.html", "report.svg", "report.png"])
    def test_a_foreign_file_stays(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"a key")
        with pytest.raises(ArtifactError, match="nothing is overwritten"):
            self.write(tmp_path / "report.html")
        assert [p.name for p in tmp_path.iterdir()] == [name]
        assert (tmp_path / name).read_bytes() == b"a key"

    def test_an_older_report_is_replaced(self, tmp_path: Path) -> None:
        for end, content in written().items():
            (tmp_path / f"report{end}").write_bytes(content)
        (tmp_path / "report.svg").write_text("old")
        self.write(tmp_path / "report.html")
        assert (tmp_path / "report.svg").read_text().startswith("<svg")

    @pytest.mark.parametrize("name", ["report.svg", "report.png"])
    def test_a_page_is_no_picture(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ArtifactError, match=r"name it \.html"):
            self.write(tmp_path / name)

    @pytest.mark.parametrize("option", ["--html", "--save-scores"])
    def test_it_is_said_before_the_work(self, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
        victim = tmp_path / ("key.csv" if option == "--save-scores" else "key")
        victim.write_bytes(b"a key")
        code, _, err = run(capsys, "audit", tmp_path / "no such scores.npz", "--format", "scores", option, victim)
        assert code == 2
        assert "nothing is overwritten" in err
        assert victim.read_bytes() == b"a key"
