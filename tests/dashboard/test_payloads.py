"""Whatever a stranger sends: never HTTP 500, never a traceback, always a sentence."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from reticent.dashboard.answering import QUESTIONS
from reticent.dashboard.state import DEFAULTS
from tests.dashboard.conftest import uploaded

HOST = {"Host": "127.0.0.1:8050"}
TEXTS = [
    "",
    " ",
    "0",
    "-1",
    "1e-300",
    "1e300",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "abc",
    "\x00",
    "<script>",
    "１２",
    "0x10",
]
TEXTS += ["../../etc/passwd", "1_000", "١", "\u202e", "9" * 39, "1,5", "1e-31", "0.999999999999999999", "💥"]
PART = '{"kind":"gaussian","noise_multiplier":2}'
FILES = ["{}", "[]", "null", "{", PART, '{"kind":"gaussian","noise_multiplier":1e999}', '{"kind":"ledger","parts":[]}']
FILES += ['{"kind":"ledger","parts":[' + ",".join([PART] * n) + "]}" for n in (2, 64, 65)]
FILES += [
    '{"kind":"dpsgd","noise_multiplier":1,"sample_rate":0.1,"steps":1e300}',
    "[" * 3000,
    '{"kind":["x"]}',
    PART * 2,
]
FILES += ['{"kind":"gaussian","noise_multiplier":2,"releases":1e18}', '{"kind":"\\u202e"}', "x" * 6001, "NaN"]
THINGS: list[Any] = [None, True, [], {}, 1e308, -1, 2**70, "x" * 3000, ["worst-case"], {"a": {"b": []}}, *TEXTS]


def cheap(rng: random.Random, turn: int) -> dict[str, Any]:
    """Settings that are hostile in one to three places; nothing that computes for seconds is left in the others."""
    settings: dict[str, Any] = {**DEFAULTS, "mechanism": "gaussian", "attackers": "membership"}
    settings["panel"] = rng.choice(["explore", "calibrate", "compare"])
    if rng.random() < 0.2:
        settings.update(mechanism="ledger", ledger=rng.choice(FILES), attackers="")
    for name in rng.sample([n for n in DEFAULTS if n != "panel"], rng.randint(1, 3)):
        settings[name] = rng.choice(TEXTS if rng.random() < 0.8 else THINGS)
    return {"settings": settings, "session": "hostile", "turn": turn}


def hostile_question(rng: random.Random, turn: int) -> Any:
    """What the page asks, damaged now and then."""
    sent: dict[str, Any] = {**cheap(rng, turn), "stage": rng.choice(list(QUESTIONS)), "theme": "dark"}
    sent["files"] = [uploaded(rng.choice(FILES), rng.choice(TEXTS)) for _ in range(rng.choice([0, 1, 1, 2]))]
    for _ in range(rng.choice([0, 0, 1, 2])):
        sent[rng.choice(list(sent))] = rng.choice(THINGS)
    return sent if rng.random() < 0.95 else rng.choice(THINGS)


def send(client: Any, payload: Any) -> Any:
    answer = client.post("/answer", data=json.dumps(payload), headers=HOST, content_type="application/json")
    text = answer.get_data(as_text=True)
    assert answer.status_code < 500, text[:300]
    assert "Traceback" not in text
    return answer


def test_nothing_else_is_computed_for_a_browser(client: Any) -> None:
    known = client.get("/_dash-dependencies", headers=HOST).get_json()
    assert known
    assert all(one["clientside_function"] for one in known)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("count", "seed"), [(100, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)])
def test_hostile_payloads_end_in_sentences(client: Any, count: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    statuses = [send(client, hostile_question(rng, turn)).status_code for turn in range(count)]
    assert statuses.count(200) > 0.9 * count, "most questions are answered"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"output": 1}', b"[" * 10_000])
def test_what_is_no_request_is_refused(client: Any, body: bytes) -> None:
    answer = client.post("/_dash-update-component", data=body, headers=HOST, content_type="application/json")
    assert answer.status_code in (400, 413, 415)
    assert answer.get_data(as_text=True).count("\n") == 1
    asked = client.post("/answer", data=body, headers=HOST, content_type="application/json")
    if asked.status_code == 200:
        assert asked.get_json()["parts"]["message"].startswith("Stage must be")
    else:
        assert (asked.status_code, asked.get_data(as_text=True).count("\n")) == (400, 1)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"\x93NUMPY", b"<html>", b'{"kind": "x"}', b"[" * 9999, b"\xff", b'{"schema": ["reticent"]}'],
)
@pytest.mark.parametrize(
    ("stage", "place", "name"),
    [
        ("ledger", "ledger-said", "\u202ex.json"),
        *(("open", "message", name) for name in ("ledger.json", "x.npz", "x.csv", "page.html", "\u202egnp.json")),
    ],
)
def test_damaged_files_end_in_sentences(client: Any, stage: str, place: str, name: str, content: bytes) -> None:
    state = {"settings": DEFAULTS, "session": "s", "turn": 1}
    found = send(client, {**state, "stage": stage, "files": [uploaded(content, name)]}).get_json()
    line = found["parts"][place]
    assert found["address"] == ""
    assert 0 < len(line) < 700
    assert "\n" not in line
    assert "\u202e" not in line
