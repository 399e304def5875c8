"""Files that people open: read by the library's readers, refused in one line, shown with their verdicts."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from reticent.adversaries import Attribute
from reticent.auditing import Scores, audit, save_scores
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.page import render_html
from reticent.dashboard.asked import Asked, answer_to
from reticent.dashboard.opening import LARGEST, Source, opened, source_of
from reticent.dashboard.opening_audit import parsed
from reticent.dashboard.requests import assess_of
from reticent.dashboard.sheet import as_html, sheet
from reticent.dashboard.state import State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError, ReticentError
from reticent.kernel.mechanisms import Gaussian
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import shuffled
from tests.dashboard.conftest import asked, uploaded

STATE = State.of({"mechanism": "gaussian", "noise_multiplier": "2", "attackers": ""})
DECLARED = Declaration(subject="<b>demo</b>", created="2026-11-22")


class Page(NamedTuple):
    """What the page shows of a file: its pieces, their words, and the picture."""

    pieces: Any
    text: str
    figure: Any

    def explored(self) -> State:
        """The settings behind the button."""
        button = next(piece for piece in self.pieces if hasattr(piece, "data-settings"))
        return State.of_address(button.to_plotly_json()["props"]["data-settings"])


def shown(name: str, content: bytes | str) -> Page:
    found = opened(Source(name, content.encode() if isinstance(content, str) else content), STATE, "light")
    pieces = found.parts["opened"]
    return Page(pieces, unescape(as_html(pieces)), found.figures["open-figure"])


def scores_of(seed: int, count: int = 400) -> Scores:
    rng = np.random.default_rng(seed)
    return Scores(rng.normal(3, 1, count), rng.normal(0, 1, count), {"attack": "loss"})


def test_a_ledger_is_checked_and_can_be_explored() -> None:
    found = shown("ledger.json", make_ledger().to_json())
    assert "agree with each other" in found.text
    ran = assess_of(found.explored()).mechanism
    assert (ran.noise_multiplier, ran.sample_rate, ran.steps) == (3.0, 0.25, 12)
    assert len(found.figure["data"]) >= 2


def test_a_ledger_of_persons_speaks_of_them_and_is_explored_as_such() -> None:
    """Five records of a person: it spoke of one record, and *explore* showed the numbers of one."""
    ledger = make_ledger()
    changes = {"config": {**ledger.config, "records_per_user": 5}, "records_per_user": 5}
    found = shown("ledger.json", ledger.model_copy(update=changes).sealed().to_json())
    assert "whether this person's records were used" in found.text
    assert assess_of(found.explored()).mechanism.records_per_user == 5
    sent = unescape(sheet(found.explored(), answer_to(found.explored())))
    assert "whether a given person's records were used" in sent


def test_a_watched_loop_shows_its_faults_and_what_nobody_saw(tmp_path: Path) -> None:
    shuffled().save(tmp_path / "ledger.json")
    watched = shown("ledger.json", (tmp_path / "ledger.json").read_bytes()).text
    assert "agree with each other" in watched
    assert all(str(fault.text) in watched for fault in shuffled().faults)
    facts = ("watched loop: 18 noisy steps, batches shuffled (seen)", "60</dd>", "44</dd>")
    assert all(fact in watched for fact in facts)


def test_a_ledger_that_contradicts_itself_is_named_and_cannot_be_explored() -> None:
    text = make_ledger().model_copy(update={"divisor": 50.0}).to_json()
    found = shown("ledger.json", text).text
    assert "contradicts itself" in found
    assert "digest is not that of the other facts" in found
    refused = asked("ledger", files=[uploaded(text)])
    assert refused["address"] == ""
    assert "contradicts itself" in refused["parts"]["ledger-said"]


def test_a_ledger_of_another_format_says_which_is_read() -> None:
    with pytest.raises(ArtifactError, match=r"its schema is 'reticent\.watch/1', expected reticent\.ledger/2"):
        shown("ledger.json", json.dumps({"schema": "reticent.watch/1"}))


def test_a_certificate_shows_whole_sentences_and_what_its_policy_says() -> None:
    limits = [{"measure": "advantage", "at_most": 0.1}]
    policy = Policy.model_validate({"schema": "reticent.policy/1", "per": "record", "limits": limits, "ledger": True})
    made = certify(Gaussian(3.0), DECLARED, adversaries=(WorstCase(), Attribute(0.3)), policy=policy)
    page = shown("certificate.json", made.to_json())
    assert "can be derived agree" in page.text
    assert str(made.headline) in page.text
    assert "<b>demo" not in as_html(page.pieces)
    assert max(len(str(one.sentence)) for one in made.assessments) > 300, "longer than other texts may be"
    assert all(str(one.sentence) in page.text for one in made.assessments)
    assert made.requirements
    for check in made.requirements:
        assert f"met: </span>{check.name}" in page.text
        assert check.passed or str(check.detail) in page.text
    assert "A plan: nobody saw a run." in page.text
    names = ["worst-case (bound)", "worst-case, replace (bound)", "attribute, replace (conditional)"]
    assert [line["name"] for line in page.figure["data"][1:]] == names


def test_a_certificate_is_derived_again() -> None:
    """What was changed in the document is found, and what was changed in its page."""
    forged = json.loads(certify(Gaussian(3.0), DECLARED, adversaries=(WorstCase(),)).to_json())
    forged["assessments"][0]["advantage"]["value"] = 0.01
    page = render_html(Certificate.parse(forged)).replace("<h1", "<h1 ", 1)
    found = shown("certificate.html", page).text
    assert "This certificate is refused" in found
    assert "advantage.value: says 0.01, derived 0.13236767" in found
    assert "not what its document renders to" in found


def test_scores_and_audits_are_judged_against_the_settings(tmp_path: Path) -> None:
    save_scores(tmp_path / "scores.npz", scores_of(0))
    assert "inconsistent" in shown("scores.npz", (tmp_path / "scores.npz").read_bytes()).text
    document = audit(scores_of(0), {"mu 4": GaussianTradeOff(4.0)}).to_json()
    again = shown("audit.json", json.dumps(document))
    assert "mu 4: consistent" in again.text.lower()
    assert {"measured (empirical)", "worst-case (bound)"} <= {trace["name"] for trace in again.figure["data"]}
    curve = document["curve"]
    for broken in ({"curve": None}, {"curve": {**curve, "alpha": [2.0]}}, {"curve": {**curve, "alpha": [0.5]}}):  # type: ignore[dict-item]
        with pytest.raises(ArtifactError, match="audit"):
            parsed({**document, **broken})


def source(*files: tuple[str, str], path: str = "", local: bool = True) -> Source:
    return source_of(Asked(STATE, "page", 1, "open", files=files, path=path, local=local))


def test_only_this_machine_may_name_paths(tmp_path: Path) -> None:
    place = tmp_path / "ledger.json"
    place.write_text("{}")
    assert source(path=str(place)).name == "ledger.json"
    with pytest.raises(ArtifactError, match="upload the file"):
        source(path=str(place), local=False)
    with pytest.raises(ArtifactError, match="no file was chosen"):
        source()


@pytest.mark.parametrize("path", ["/dev/zero", "/no/such/file", "x\0y", "a" * 2000, "/proc/self/mem"])
def test_what_is_no_plain_file_is_refused(path: str) -> None:
    with pytest.raises((ReticentError, OSError)):
        source(path=path)


def test_large_files_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="8 MiB"):
        source(("data:," + "A" * (2 * LARGEST), "big.json"))
    big = tmp_path / "big.json"
    with big.open("wb") as stream:
        stream.truncate(LARGEST + 1)
    with pytest.raises(ArtifactError):
        source(path=str(big))
    content, _ = uploaded("{}")
    assert "\u202e" not in source((content, "\u202ex.json"), local=False).name
