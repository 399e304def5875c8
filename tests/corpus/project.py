"""From what a door answers to what the corpus keeps of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from typing import Any

from reticent.kernel.messages import from_json
from tests.corpus.compare import claimed_end, masked

_STATED, _MESSAGE = {"key", "status"}, {"key", "values", "en"}
CLOSED = {"lower", "value", "upper"}
UNTOLD = {"version", "created", "salt", "salts", "signature", "seconds", "generator", "digest", "curve"}
"""Keys whose values change from run to run or with each release, and curves, whose numbers are there anyway."""


def projected(value: Any) -> Any:
    """Enclosures as their ends, conditions by key and status, messages in English, numbers of twelve digits, masked."""
    if isinstance(value, dict) and isinstance(value.get("key"), str) and {*value} <= _MESSAGE:
        english = str(from_json({name: inner for name, inner in value.items() if name != "en"}))
        assert value.get("en", english) == english
        return masked(english)
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            if key in UNTOLD:
                continue
            if isinstance(inner, dict) and inner.keys() >= {"lower", "upper"} and inner.keys() <= CLOSED:
                ends = [projected(inner["lower"]), projected(inner["upper"])]
                claimed = projected(inner.get("value", inner["upper"]))
                kept[f"{masked(key)}[]"] = ends if claimed == claimed_end(key, ends) else [*ends, claimed]
            elif (
                isinstance(inner, list) and inner and all(isinstance(one, dict) and {*one} == _STATED for one in inner)
            ):
                kept[key] = {one["key"]: one["status"] for one in sorted(inner, key=lambda one: one["key"])}
            else:
                kept[masked(key)] = "" if key == "lacks" and inner is None else projected(inner)
        return kept
    if isinstance(value, list | tuple):
        return [projected(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return masked(value) if isinstance(value, str) else value


def of_json(text: str) -> Any:
    """What a JSON document says, projected; texts that are none are kept as they are."""
    try:
        return projected(json.loads(text))
    except ValueError:
        return masked(text)


def called(*words: object, columns: int = 80) -> dict[str, Any]:
    """Exit code and both outputs of one call of the command line, as a person with a terminal of that width has it."""
    from reticent.cli import main

    out, err = io.StringIO(), io.StringIO()
    os.environ["COLUMNS"] = str(columns)
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as stopped:
            code = stopped.code or 0
    printed = out.getvalue()
    shown = of_json(printed) if "--json" in words else masked(printed)
    return {"exit": code, "out": shown, "err": masked(err.getvalue())}


def words_of_page(html: str) -> str:
    """The words that a page shows, a line for each element; the document inside it is no word."""
    html = re.sub(r"<(script|style|svg|template)\b.*?</\1>", " ", html, flags=re.DOTALL)
    html = re.sub(r"<[^>]+>", "\n", html)
    lines = (re.sub(r"\s+", " ", line).strip() for line in html.split("\n"))
    return masked("\n".join(line for line in lines if line))
