"""The notebooks run from the first cell to the last, and show what they are meant to show."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.docs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    shown = [output["data"]["text/plain"] for output in outputs if "text/plain" in output.get("data", {})]
    assert shown[-1] == "True"  # the certificate verifies
    saved = nbformat.read(path, as_version=4)
    assert all(cell.get("execution_count") for cell in saved.cells if cell.cell_type == "code"), "keep its outputs"
