"""Where a number comes from."""

from __future__ import annotations

import re

from reticent.adversaries import Relaxed
from reticent.dashboard.explaining import explanation, place_of_name
from reticent.dashboard.readings import assessed
from reticent.dashboard.sheet import as_html
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs.references import THEOREMS


def test_numbers_are_explained_from_the_list_of_theorems_each_once_and_without_marks_of_code() -> None:
    found = [assessed(who, DPSGD(1.1, 0.01, 1000), who.relation) for who in (WorstCase(), Relaxed())]
    text = as_html(explanation(found))
    for one in found:
        assert all(f"<strong>{key}</strong>" in text for key in one.theorems)
        assert all(str(needed.says)[:30] in text for needed in one.conditions)
    assert re.search(r"reticent/kernel/risk/measures\.py:\d+ advantage", text)
    assert "*" not in text.replace("**kw", "")
    assert "`" not in text
    shared = set(found[0].theorems) & set(found[1].theorems)
    assert shared
    assert all(text.count(THEOREMS[key].says[:40].replace("'", "&#x27;")) <= 1 for key in shared)
    assert "As above: " in text


def test_every_theorem_leads_to_a_line_of_code() -> None:
    named = [one for one in THEOREMS.values() if one.code]
    assert len(named) > 50
    for one in named:
        assert re.search(r"^reticent/\S+\.py(:\d+ \S+)?$", place_of_name(one.code)), one.key
