"""Whatever a stranger sends: never HTTP 500, never a traceback, always a sentence."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from reticent.dashboard.state import DEFAULTS

HOST = {"Host": "127.0.0.1:8050"}
ASKED = ("state", "ask-calibrate", "ask-compare", "rest-calibrate")
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


@pytest.fixture(scope="module")
def known(client: Any) -> list[dict[str, Any]]:
    return client.get("/_dash-dependencies", headers=HOST).get_json()  # type: ignore[no-any-return]


def payload_of(dependency: dict[str, Any], value: Any) -> dict[str, Any]:
    """The request that a browser makes for this callback, with ``value`` everywhere."""
    outputs = [piece.rpartition(".") for piece in dependency["output"].strip(".").split("...")]
    described = [{"id": name, "property": prop} for name, _, prop in outputs]
    given = {
        kind: [{**place, "value": value(place["id"])} for place in dependency[kind]] for kind in ("inputs", "state")
    }
    changed = [f"{p['id']}.{p['property']}" for p in dependency["inputs"][:1]]
    many = dependency["output"].startswith("..")
    return {
        "output": dependency["output"],
        "outputs": described if many else described[0],
        "changedPropIds": changed,
        **given,
    }


def cheap(rng: random.Random, turn: int) -> dict[str, Any]:
    """Settings that are hostile in one to three places; nothing that computes for seconds is left in the others."""
    settings: dict[str, Any] = {**DEFAULTS, "mechanism": "gaussian", "attackers": "membership"}
    settings["panel"] = rng.choice(["explore", "calibrate", "compare"])
    if rng.random() < 0.2:
        settings.update(mechanism="ledger", ledger=rng.choice(FILES), attackers="")
    for name in rng.sample([n for n in DEFAULTS if n != "panel"], rng.randint(1, 3)):
        settings[name] = rng.choice(TEXTS if rng.random() < 0.8 else THINGS)
    return {"settings": settings, "session": "hostile", "turn": turn}


def explored(rng: random.Random, turn: int) -> Any:
    """What the panel that explores asks for, damaged now and then."""
    sent: dict[str, Any] = {**cheap(rng, turn), "stage": rng.choice(["first", "proof"]), "theme": "dark"}
    for _ in range(rng.choice([0, 0, 1, 2])):
        sent[rng.choice(list(sent))] = rng.choice(THINGS)
    return sent if rng.random() < 0.95 else rng.choice(THINGS)


def send(client: Any, payload: Any, place: str = "_dash-update-component") -> Any:
    answer = client.post(f"/{place}", data=json.dumps(payload), headers=HOST, content_type="application/json")
    text = answer.get_data(as_text=True)
    assert answer.status_code < 500, text[:300]
    assert "Traceback" not in text
    return answer


def hostile(client: Any, known: list[dict[str, Any]], count: int, seed: int) -> None:
    rng, answered = random.Random(seed), 0  # noqa: S311
    served = [d for d in known if not d["clientside_function"]]
    assert len(served) == 12
    for turn in range(count):
        if rng.random() < 0.3:
            answered += send(client, explored(rng, turn), "explore").status_code == 200
            continue
        dependency = rng.choice(served)
        if rng.random() < 0.6:
            payload = payload_of(dependency, dict.fromkeys(ASKED, cheap(rng, turn)).get)
        else:
            payload = payload_of(dependency, lambda name: rng.choice(THINGS))
            for _ in range(rng.randint(0, 3)):
                payload[rng.choice(["output", "outputs", "inputs", "state", "changedPropIds"])] = rng.choice(THINGS)
        answered += send(client, payload).status_code in (200, 204)
    assert answered > 0.6 * count, "most payloads reach a callback"


def test_hostile_payloads_end_in_sentences(client: Any, known: list[dict[str, Any]]) -> None:
    hostile(client, known, 150, 1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_payloads(client: Any, known: list[dict[str, Any]]) -> None:
    hostile(client, known, 10_000, 2)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"output": 1}', b"[" * 10_000])
def test_what_is_no_request_is_refused(client: Any, body: bytes) -> None:
    answer = client.post("/_dash-update-component", data=body, headers=HOST, content_type="application/json")
    assert answer.status_code in (400, 413, 415)
    assert answer.get_data(as_text=True).count("\n") == 1
    asked = client.post("/explore", data=body, headers=HOST, content_type="application/json")
    if asked.status_code == 200:
        assert asked.get_json()["parts"]["message"].startswith("Stage must be")
    else:
        assert (asked.status_code, asked.get_data(as_text=True).count("\n")) == (400, 1)


@pytest.mark.parametrize("text", ["1e-300", "", "abc", "nan"])
def test_the_first_panel_says_what_is_wrong_in_one_line(client: Any, text: str) -> None:
    settings = {**DEFAULTS, "noise_multiplier": text}
    sent = {"settings": settings, "session": "s", "turn": 1, "stage": "first"}
    parts = send(client, sent, "explore").get_json()["parts"]
    assert parts["message"].startswith("Noise multiplier must be")
    assert "\n" not in parts["message"]
    assert parts["cards"] == parts["python"] == "", "nothing of an older answer stays"


@pytest.mark.parametrize("panel", ["calibrate", "compare"])
@pytest.mark.parametrize("text", ["1e-300", "", "abc", "nan"])
def test_the_page_says_what_is_wrong_in_one_line(
    client: Any, known: list[dict[str, Any]], panel: str, text: str
) -> None:
    state = {"settings": {**DEFAULTS, "panel": panel, "noise_multiplier": text}, "session": "s", "turn": 1}
    state["settings"]["unknown"] = "steps"  # type: ignore[index]
    message = f"{panel}-message"
    mine = [d for d in known if f".{message}.children" in d["output"]]
    dependency = next(d for d in mine if d["inputs"][0]["id"] == f"ask-{panel}")
    answer = send(client, payload_of(dependency, lambda name: state if name.startswith("ask-") else "light"))
    line = answer.get_json()["response"][message]["children"]
    assert line.startswith("Noise multiplier must be")
    assert "\n" not in line


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\x93NUMPY", b"<html>", b'{"schema": "reticent.ledger/2"}', b"[" * 5000, b"\xff", b'{"schema": []}'],
)
@pytest.mark.parametrize("name", ["ledger.json", "x.npz", "x.csv", "page.html", "\u202egnp.json"])
def test_damaged_files_end_in_sentences(client: Any, known: list[dict[str, Any]], content: bytes, name: str) -> None:
    sent = {
        "upload": "data:;base64," + base64.b64encode(content).decode(),
        "state": {"settings": DEFAULTS, "session": "s", "turn": 1},
    }
    dependency = next(d for d in known if "open-message.children" in d["output"])
    payload = payload_of(dependency, lambda place: sent.get(place))
    payload["changedPropIds"] = ["upload.contents"]
    for place in payload["state"]:
        if place["property"] == "filename":
            place["value"] = name
    line = send(client, payload).get_json()["response"]["open-message"]["children"]
    assert 0 < len(line) < 700
    assert "\n" not in line
    assert "\u202e" not in line
