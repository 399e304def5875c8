"""Each planted bug is an edit that is possible at one place, and names a test that is there: a row left behind proves
nothing. The edits themselves do what they say.
"""

from __future__ import annotations

import ast
import fnmatch
import json
from pathlib import Path

import pytest

from tests.mutants.edits import Drop, Places, Put
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]
SOURCE = """\
class Law:
    rate: float = 0.5  # of a step

    def at(self, x, *, up=True):
        if x > 2.0 and up:
            return max(x, "ä" and up)
        elif x < 0.0:
            return -1.0
        parts = [x, up]
        total = x + 2.0 * x - parts[0]
        self.say(x, to=up)
        return total  # kept
"""


def test_each_mutant_has_one_place_and_its_edit_fits_once():
    places = Places(ROOT / "src" / "reticent")
    names = {mutant.place for mutant in MUTANTS}
    assert {name: len(places.find(name)) for name in names if len(places.find(name)) != 1} == {}
    fits = {mutant.name: len(places.find(mutant.place)[0].edits(mutant.edit)) for mutant in MUTANTS}
    assert {name: count for name, count in fits.items() if count != 1} == {}


def test_the_test_of_each_mutant_is_there():
    assert [test for test in sorted({mutant.test for mutant in MUTANTS}) if not _is_there(*test.split("::"))] == []


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (Put("max", "min"), "max(x", "min(x"),
        (Put(">", ">="), "x > 2.0", "x >= 2.0"),
        (Put("2.0 * x", "x + 1.0"), "2.0 * x", "(x + 1.0)"),
        (Put("to=up", "to=x"), "to=up", "to=x"),
        (Put("total = x + 2.0 * x - parts[0]", "total = x"), "x + 2.0 * x - parts[0]", "x"),
        (Put("self.say(x, to=up)", "raise"), "self.say(x, to=up)", "raise"),
        (Put("if x < 0.0:", "if False:"), "x < 0.0", "False"),
        (Put("True", "False"), "up=True", "up=False"),
        (Drop("+ 2.0 * x"), "x + 2.0 * x", "x"),
        (Drop("x +"), "x + 2.0 * x", "2.0 * x"),
        (Drop("- parts[0]"), " - parts[0]", ""),
        (Drop("and up"), "x > 2.0 and up:", "x > 2.0:"),
        (Drop("x > 2.0 and"), "x > 2.0 and up:", "up:"),
        (Drop("to=up"), ", to=up", ""),
        (Drop("self.say(x, to=up)"), "self.say(x, to=up)", "pass"),
        (Drop("if x < 0.0:"), "elif x < 0.0:\n            return -1.0", "else:\n            pass"),
    ],
)
def test_an_edit_changes_one_part_and_leaves_the_rest_of_the_file(tmp_path, edit, before, after):
    (tmp_path / "laws.py").write_text(SOURCE)
    (place,) = Places(tmp_path).find("Law.at")
    edits = place.edits(edit)
    texts = [one.applied(SOURCE) for one in edits]
    wanted = ast.dump(ast.parse(SOURCE.replace(before, after)))
    assert [ast.dump(ast.parse(text)) for text in texts].count(wanted) == 1
    assert all("# of a step" in text for text in texts)


def test_an_edit_that_fits_twice_or_nowhere_is_seen(tmp_path):
    (tmp_path / "laws.py").write_text(SOURCE)
    places = Places(tmp_path)
    (place,) = places.find("laws.Law.at")
    edits = (Put("parts", "x"), Put("up", "x"), Drop("- x"), Put("+", "-"))
    assert [len(place.edits(edit)) for edit in edits] == [1, 4, 0, 1]
    assert len(places.find("rate")) == len(places.find("Law")) == 1
    assert places.find("aw.at") == places.find("Law.to") == []


def _is_there(path, *names):
    if path == "tests/corpus":
        section, _, pattern = "::".join(names).partition("/")
        return bool(fnmatch.filter(json.loads((ROOT / f"tests/corpus/stored/{section}.json").read_text()), pattern))
    if (ROOT / path).is_dir():
        return True
    text = (ROOT / path).read_text() if (ROOT / path).is_file() else None
    words = [name.split("[")[0] for name in names]
    return text is not None and all(f"def {word}(" in text or f"class {word}" in text for word in words)
