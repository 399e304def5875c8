"""Run the script of a figure or table again."""

from __future__ import annotations

import importlib.util
import io
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.gallery.entry import GROUPS, Entry, Measured, Result, result_of
from experiments.gallery.store import RESULTS, document, file_name, in_order, stored, stored_ids
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import did_you_mean
from reticent.tasks import write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
"""Of the checkout."""
PICTURES = ROOT / "docs" / "figures" / "gallery"
RESULTS_ANEW = "RETICENT_RESULTS"
"""Environment variable: folder in which scripts look for results, and write them."""

LARGEST_PICTURE = 150_000
"""Bytes; a picture above is refused, so that the documentation stays light."""

_ROUNDING = 1e-12
"""Relative difference of one number on two machines."""

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "reticent",
    "svg.fonttype": "none",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
    "font.size": 8.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.3,
}


def script_of(entry_id: str) -> Path:
    """The script of an id ."""
    paper, _, item = entry_id.partition("/")
    return ROOT / "experiments" / paper.replace("-", "_") / f"{item.replace('-', '_')}.py"


def scripted_ids() -> tuple[str, ...]:
    """Every id with a script in the checkout, in the order of ``stored_ids``."""
    found = []
    for paper in GROUPS:
        folder = ROOT / "experiments" / paper.replace("-", "_")
        names = [
            p.stem.replace("_", "-") for kind in ("figure", "table", "section") for p in folder.glob(f"{kind}_*.py")
        ]
        found += [f"{paper}/{name}" for name in names]
    return in_order(found)


def load_entry(entry_id: str) -> Entry:
    """The entry that the script of an id declares under the name ``ENTRY``.

    Raises:
        ParameterError: there is no such script, or it declares another id.
    """
    if entry_id not in scripted_ids():
        raise ParameterError(
            "id",
            entry_id,
            "an id that `python -m experiments.gallery` lists, or all" + did_you_mean(entry_id, scripted_ids()),
        )
    path = script_of(entry_id)
    spec = importlib.util.spec_from_file_location(f"reticent_gallery_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:  # for the type checker: a file that ends in .py has a loader
        raise ParameterError("id", entry_id, "the id of a Python script")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entry = module.ENTRY
    if entry.id != entry_id:
        raise ParameterError("id", entry.id, f"{entry_id}, the place of its script")
    return entry


def compute_again(entry: Entry, folder: Path, done: set[str]) -> None:
    """Run the commands behind a stored entry; their results go below ``folder``, see ``experiments/where.py``.

    Args:
        entry: with the commands.
        folder: of new results.
        done: commands that ran already; they are left out, and those that ran are added.

    Raises:
        ArtifactError: a command failed.
    """
    for command in (c for c in entry.stored if c not in done):
        call, env = [sys.executable, "-m", *command.split()], os.environ | {RESULTS_ANEW: str(folder)}
        if subprocess.run(call, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=False).returncode:
            raise ArtifactError(f"`python -m {command}` failed: {entry.id} cannot be computed again")
        done.add(command)


def run_entry(entry: Entry) -> tuple[Result, bytes]:
    """Run an entry: its result and its picture as SVG.

    Raises:
        ArtifactError: the picture is above ``LARGEST_PICTURE``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=entry.inches, layout="constrained")
        result = result_of(entry, entry.run(figure))
        picture = _svg(figure)
    if len(picture) > LARGEST_PICTURE:
        raise ArtifactError(f"the picture of {entry.id} has {len(picture)} bytes, above {LARGEST_PICTURE}")
    return result, picture


def keep(result: Result, picture: bytes) -> None:
    """Store the result, and the picture in the documentation."""
    target = picture_of(result.id)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(picture)
    write_json(RESULTS / file_name(result.id), document(_settled(result)))


def picture_of(entry_id: str) -> Path:
    """Where the checkout has the picture of an id."""
    return PICTURES / (entry_id.replace("/", "--") + ".svg")


def _settled(result: Result) -> Result:
    """The result with the stored digits where it differs from them by rounding alone."""
    known = stored(result.id).ours if result.id in stored_ids() else {}
    return replace(result, ours={name: _older(known.get(name), new) for name, new in result.ours.items()})


def _older(old: Measured | None, new: Measured) -> Measured:
    if old is None or (old.about, old.drift) != (new.about, new.drift):
        return new
    pairs = ((old.value, new.value), (old.low, new.low), (old.high, new.high))
    return old if all(math.isclose(a, b, rel_tol=_ROUNDING) for a, b in pairs) else new


def _svg(figure: Figure) -> bytes:
    """The same figure gives the same bytes: no date, fixed names of parts."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
