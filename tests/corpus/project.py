"""From what a door answers to what the corpus keeps of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from typing import Any

from reticent.messages import from_json
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
        value, kept = _under_the_names_of_before(value), {}
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


def _under_the_names_of_before(value: dict[str, Any]) -> dict[str, Any]:
    """A ledger as the corpus has it from when runs and loops had a format each; other data as they are.

    When the corpus is written again this goes.
    """
    if value.get("schema") != "reticent.ledger/2":
        return value
    from reticent.records.ledger import ledger_of

    run, same = ledger_of(value, "ledger"), ("data", "num_parameters", "records_per_user", "gradients", "selection")
    first, where, facts = run.first, value["environment"], value.get("facts", {})
    told = {name: value[name] for name in same if name in value}
    told |= {name: where[name] for name in ("device", "randomness", "versions")}
    if run.config is None:
        more = ("clipping", "divisor", "sampler", "unit", "start", "earlier", "weights_sha256")
        told |= {name: value[name] for name in more if name in value}
        told |= {"planned": facts["planned-steps"]} if "planned-steps" in facts else {}
        listed = ("batches", "mixed_passes", "noise_multiplier", "passes", "sample_rate", "steps")
        told["segments"] = [{name: getattr(part, name) for name in listed} for part in run.segments]
        told |= {"faults": [repr(fact) for fact in run.faults], "mixing_layers": facts.get("mixes-records", [])}
        return {"schema": "reticent.watch/1", "optimiser": where["optimiser"], **told}
    of_each = ("noise_multiplier", "max_grad_norm", "sample_rate", "divisor")
    told |= {name: getattr(first, name) for name in of_each}
    told |= {"config": value["config"], "parameters": value["parameters"], "seeds": where["seeds"]}
    told |= {"sampler": run.sampler.name, "steps": run.steps, "planned_steps": facts["planned-steps"]["steps"]}
    told |= {"utility": run.utility.model_dump(), "warnings": [repr(fact) for fact in run.faults]}
    told |= {"optimiser": where["optimiser"][0]}
    told["expected_batch_size"] = None if run.dataset_size is None else first.sample_rate * run.dataset_size
    if run.changes:
        told["stages"] = [{name: getattr(part, name) for name in (*of_each, "steps")} for part in run.every_segment]
    return {"schema": "reticent.ledger/1", "records_per_user": None, **told}


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
