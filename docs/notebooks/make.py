"""Run the notebooks and keep their outputs: ``make notebooks``. A test says when they are out of date."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_SECONDS = 240


def executed(path: Path) -> Any:
    """The notebook at ``path`` with the outputs that it has now, each cell run in an empty folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(notebook, timeout=_SECONDS, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
    return notebook


def texts(notebook: Any) -> list[str]:
    """What its cells print and show as text, in order; pictures are left out."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("text", output.get("data", {}).get("text/plain", ""))
            found.append("" if "image/png" in output.get("data", {}) else str(shown).strip())
    return found


def main() -> None:
    """Run every notebook and write it anew."""
    import nbformat

    for path in sorted(HERE.glob("*.ipynb")):
        nbformat.write(executed(path), path)


if __name__ == "__main__":
    main()
