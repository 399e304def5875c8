"""The notebooks run from the first cell to the last, and what is stored in them is what they show now."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.docs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_made_again(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    make = runpy.run_path(str(FOLDER / "make.py"))
    made, saved = make["executed"](path), nbformat.read(path, as_version=4)
    pictures = [o for cell in made.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert pictures
    shown = make["texts"](made)
    assert shown[-1] == "True"  # the certificate verifies
    assert "all but certain" not in "".join(shown)  # the first loop that people see is no mistake
    assert shown == make["texts"](saved), "out of date: python docs/notebooks/make.py"
    assert all(cell.get("execution_count") for cell in saved.cells if cell.cell_type == "code"), "keep its outputs"
