"""Each verb's ``--json`` and words at two widths, and what is refused, with its exit code and its one line.

The calls are in ``calls.txt``; ``refused.txt`` has what people mistype.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from tests.corpus import example
from tests.corpus.case import Case
from tests.corpus.project import called

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def _lines(name: str) -> list[tuple[str, ...]]:
    return [tuple(shlex.split(line)) for line in (HERE / name).read_text().splitlines()]


def _folder(path: Path) -> None:
    """The files that calls name."""
    import numpy as np

    from reticent.auditing import Scores
    from reticent.auditing.files import save_scores

    part = {"kind": "dpsgd", "noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 500}
    (path / "parts.json").write_text(
        json.dumps({"kind": "ledger", "parts": [part, {"kind": "gaussian", "noise_multiplier": 5.0}]})
    )
    (path / "empty.json").write_text("")
    (path / "nonsense.json").write_text('{"schema": "x/1", "kind": 3}')
    (path / "wrong.yaml").write_text("batch_sise: 3\n")
    (path / "twice.yaml").write_text("steps: 3\nsteps: 4\n")
    (path / "policy.yaml").write_text("schema: reticent.policy/1\nlimits: [{measure: mu, at_most: 1}]\n")
    draw = np.random.default_rng(0)
    save_scores(path / "scores.npz", Scores(draw.normal(0.5, 1, 400), draw.normal(0, 1, 400)))
    rows = [f"{draw.integers(20, 80)},{draw.choice(['a', 'b'])},{draw.integers(2)}" for _ in range(120)]
    (path / "table.csv").write_text("age,group,ill\n" + "\n".join(rows) + "\n")
    (path / "schema.yaml").write_text(
        "age: {low: 0, high: 100}\ngroup: {categories: [a, b]}\nill: {categories: ['0', '1']}\n"
    )
    shutil.copy(ROOT / "configs/demo.yaml", path / "demo.yaml")


def _in_folder(words: tuple[str, ...], columns: int) -> Any:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        _folder(Path(folder))
        return called(*words, columns=columns)


def cases() -> Iterator[Case]:
    """Words at 80 and 200 columns, JSON where the verb has it, and refusals."""
    for words in _lines("calls.txt"):
        for columns in (80, 200):
            yield Case(f"{' '.join(words)} [{columns}]", lambda w=words, c=columns: _in_folder(w, c))
        if words[0] not in ("--version",):
            yield Case(f"{' '.join(words)} --json", lambda w=words: _in_folder((*w, "--json"), 80))
    for words in _lines("refused.txt"):
        yield Case(f"refused: {' '.join(words)[:150]}", lambda w=words: _in_folder(w, 80))
    yield Case("the example package", example.answer)
