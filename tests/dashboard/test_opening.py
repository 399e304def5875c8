"""Files that people open: read by the library's readers, refused in one line, shown with their verdicts."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from reticent.adversaries import Relaxed
from reticent.auditing import Scores, audit, save_scores
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Declaration
from reticent.certificates.page.page import render_html
from reticent.dashboard.asked import Asked, answer_to
from reticent.dashboard.opening import LARGEST, Source, opened, source_of
from reticent.dashboard.opening_audit import parsed
from reticent.dashboard.requests import assess_of
from reticent.dashboard.sheet import sheet
from reticent.dashboard.state import State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError, ReticentError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.records.ledger import RunLedger
from tests.certificates.ledgers import shuffled
from tests.dashboard.conftest import uploaded

STATE = State.of({"mechanism": "gaussian", "noise_multiplier": "2", "attackers": ""})
LEDGER = {
    "schema": "reticent.ledger/2",
    "created": "2026-11-22T00:00:00+00:00",
    "config": {
        "divisor": 10.0,
        "sample_rate": 0.1,
        "noise_multiplier": 3.0,
        "steps": 2,
        "max_grad_norm": 1.0,
        "sampler": "poisson",
        "optimiser": "sgd",
        "randomness": "fresh",
    },
    "data": {
        "name": "demo",
        "source": "generated",
        "content_hash": "0" * 64,
        "salt": "1" * 64,
        "dataset_size": 100,
        "test_size": 10,
        "feature_shape": [3],
        "classes": 2,
    },
    "sampler": {"drawn": "poisson", "source": "seen", "name": "poisson", "sample_rate": 0.1},
    "clipping": {"kind": "flat", "source": "seen", "smallest": 1.0, "largest": 1.0},
    "segments": [{"noise_multiplier": 3.0, "steps": 2}],
    "divisor": 10.0,
    "facts": {"planned-steps": {"steps": 2, "stop_at": None}},
    "num_parameters": 4,
    "parameters": [{"name": "w", "shape": [4]}],
    "environment": {
        "optimiser": ["sgd"],
        "device": "cpu",
        "randomness": "fresh",
        "seeds": {"initialisation": 1, "split": 1, "sampling": None, "noise": None},
        "versions": {},
    },
    "diagnostics": {"batch_sizes": [9, 11], "clipped": [1, 2], "train_accuracy": 0.5, "seconds": 1.0},
}


def text_of(page: Any) -> str:
    """All words of a piece of the page."""
    if isinstance(page, str):
        return page
    if isinstance(page, list | tuple):
        return " ".join(text_of(piece) for piece in page)
    return text_of(getattr(page, "children", None) or "")


class Page(NamedTuple):
    """What the page shows of a file."""

    page: Any
    figure: Any


def shown(name: str, content: bytes | str) -> Page:
    raw = content.encode() if isinstance(content, str) else content
    found = opened(Source(name, raw), STATE, "light")
    return Page(found.parts["opened"], found.figures["open-figure"])


def test_a_ledger_is_checked_and_can_be_explored() -> None:
    found = shown("ledger.json", RunLedger.model_validate(LEDGER).sealed().to_json())
    assert "agree with each other" in text_of(found.page)
    button = next(piece for piece in found.page if getattr(piece, "data-settings", None))
    settings = State.of_address(getattr(button, "data-settings"))
    ran = assess_of(settings).mechanism
    assert (ran.noise_multiplier, ran.sample_rate, ran.steps) == (3.0, 0.1, 2)
    assert len(found.figure["data"]) >= 2


def test_a_ledger_of_persons_speaks_of_them_and_is_explored_as_such() -> None:
    """Five records of a person: it spoke of one record, and *explore* showed the numbers of one."""
    config = {**LEDGER["config"], "records_per_user": 5}
    ledger = RunLedger.model_validate({**LEDGER, "config": config, "records_per_user": 5}).sealed()
    found = shown("ledger.json", ledger.to_json())
    assert "whether this person's records were used" in text_of(found.page)
    button = next(piece for piece in found.page if getattr(piece, "data-settings", None))
    state = State.of_address(getattr(button, "data-settings"))
    assert assess_of(state).mechanism.records_per_user == 5
    assert "whether a given person's records were used" in unescape(sheet(state, answer_to(state)))


def test_a_watched_loop_shows_its_faults_and_what_nobody_saw() -> None:
    watched = text_of(shown("ledger.json", shuffled().to_json()).page)
    assert "agree with each other" in watched
    assert all(str(fault.text) in watched for fault in shuffled().faults)
    facts = ("watched loop: 18 noisy steps, batches shuffled (seen)", "records 60", "trained parameters 44")
    assert all(fact in watched for fact in facts)


def test_a_ledger_that_contradicts_itself_is_named() -> None:
    found = shown("ledger.json", json.dumps({**LEDGER, "divisor": 50.0}))
    assert "contradicts itself" in text_of(found.page)
    assert "divisor is not what the configuration makes" in text_of(found.page)


def test_a_certificate_is_derived_again() -> None:
    document = certify(
        Gaussian(3.0), Declaration(subject="<b>demo</b>", created="2026-11-22"), adversaries=(WorstCase(),)
    )
    good = shown("certificate.json", document.to_json())
    assert "can be derived agree" in text_of(good.page)
    assert document.headline in text_of(good.page)
    forged = json.loads(document.to_json())
    forged["assessments"][0]["advantage"]["value"] = 0.01
    bad = shown("certificate.json", json.dumps(forged))
    assert "refused" in text_of(bad.page)
    page = shown("certificate.html", render_html(document).replace("<h1", "<h1 ", 1))
    assert "not what its document renders to" in text_of(page.page)


def test_a_certificate_shows_whole_sentences_and_what_its_policy_says() -> None:
    policy = Policy.model_validate(
        {
            "schema": "reticent.policy/1",
            "per": "record",
            "limits": [{"measure": "advantage", "at_most": 0.1}],
            "ledger": True,
        }
    )
    who = (WorstCase(), Relaxed())
    made = certify(
        DPSGD(1.1, 0.01, 1000), Declaration(subject="demo", created="2026-11-22"), adversaries=who, policy=policy
    )
    page = shown("certificate.json", made.to_json())
    words = text_of(page.page)
    assert max(len(str(one.sentence)) for one in made.assessments) > 300
    for one in made.assessments:
        assert str(one.sentence) in words
    assert made.requirements
    for check in made.requirements:
        assert f"not met:  {check.name}: {check.detail}" in words or f"met:  {check.name}" in words
    assert "A plan: nobody saw a run." in words
    assert [line["name"] for line in page.figure["data"][1:]] == ["worst-case (bound)", "relaxed (conditional)"]


def test_scores_and_audits_are_judged_against_the_settings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = Scores(rng.normal(3, 1, 400), rng.normal(0, 1, 400), {"attack": "loss"})
    save_scores(tmp_path / "scores.npz", scores)
    found = shown("scores.npz", (tmp_path / "scores.npz").read_bytes())
    assert "inconsistent" in text_of(found.page)
    document = audit(scores, {"mu 4": GaussianTradeOff(4.0)}).to_json()
    again = shown("audit.json", json.dumps(document))
    assert "mu 4: consistent" in text_of(again.page).lower()
    names = [trace["name"] for trace in again.figure["data"]]
    assert "measured (empirical)" in names
    assert "worst-case (bound)" in names


def test_a_damaged_audit_names_its_first_fault() -> None:
    rng = np.random.default_rng(0)
    document = audit(Scores(rng.normal(1, 1, 50), rng.normal(0, 1, 50), {})).to_json()
    curve = document["curve"]
    for broken in ({"curve": None}, {"curve": {**curve, "alpha": [2.0]}}, {"curve": {**curve, "alpha": [0.5]}}):  # type: ignore[dict-item]
        with pytest.raises(ArtifactError, match="audit"):
            parsed({**document, **broken})


def source(*files: tuple[str, str], path: str = "", local: bool = True) -> Source:
    return source_of(Asked(STATE, "page", 1, "open", files=files, path=path, local=local))


def test_only_this_machine_may_name_paths(tmp_path: Path) -> None:
    place = tmp_path / "ledger.json"
    place.write_text(json.dumps(LEDGER))
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


def test_a_ledger_of_another_format_says_which_is_read() -> None:
    with pytest.raises(ArtifactError, match=r"its schema is 'reticent\.watch/1', expected reticent\.ledger/2"):
        shown("ledger.json", json.dumps({"schema": "reticent.watch/1"}))


def test_the_file_that_a_watch_saves_is_opened(tmp_path: Path) -> None:
    shuffled().save(tmp_path / "ledger.json")
    page = shown("ledger.json", (tmp_path / "ledger.json").read_bytes()).page
    assert "agree with each other" in text_of(page)
