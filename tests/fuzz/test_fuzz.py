"""Hostile configurations, runs, score files, ledgers and certificates: one line or an answer, never anything else.

By name: ``pytest -m slow tests/fuzz``. ``RETICENT_FUZZ_MINUTES`` (20) is shared by the five kinds of file.
No traceback, no more than ten seconds of CPU (a minute by the clock), no growth beyond 1 GB, and no file touched
outside of the folder named.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.hostile import SCALARS, bitten, damaged, text_of

SECONDS, MEGABYTES = 10.0, 1024
ROOT = Path(__file__).parents[2]
MINUTES = float(os.environ.get("RETICENT_FUZZ_MINUTES", "20"))
Check = Callable[["Worker", Path, Any], None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(0),
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),
]

CONFIG = {
    "data": {"name": "digits", "train_size": 60, "train_fraction": None, "split_seed": 0, "path": None},
    "model": {"kind": "mlp", "widths": [4], "activation": "tanh"},
    "noise_multiplier": 4.0,
    "max_grad_norm": 1.0,
    "batch_size": 10,
    "steps": 2,
    "learning_rate": 0.1,
    "momentum": 0.0,
    "optimiser": "sgd",
    "sampler": "poisson",
    "divisor": 10.0,
    "seed": 1,
    "randomness": "fresh",
    "device": "cpu",
    "physical_batch_size": 64,
    "trace": {"every": 1, "masks": True},
    "sensitive": {"group": "pixel-3", "scope": "audit-set", "records": 3, "budget": 5.0},
}


class Worker:
    """The process that does the work; a new one after each that had to be killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, folder: Path, verb: str, *arguments: object) -> dict[str, object]:
        """Have one request answered.

        Raises:
            AssertionError: it hung, died, grew, printed a traceback, or touched what is not its own.
        """
        process = self.start()
        request = {"folder": str(folder), "verb": verb, "arguments": [str(a) for a in arguments]}
        line = self._line(process, json.dumps(request), 6.0 * SECONDS)
        used = f"{verb} {arguments[:2]}"
        assert line is not None, f"{used}: no answer within {6 * SECONDS:g} s"
        found = json.loads(line)
        assert found["trace"] is None, f"{used}: {found['trace']}"
        assert found["seconds"] <= SECONDS, f"{used}: {found['seconds']:.1f} s"
        assert found["grown"] <= MEGABYTES, f"{used}: grew by {found['grown']} MB"
        assert not found["touched"], f"{used}: touched {found['touched'][:5]}"
        assert found["code"] in (0, 1, 2), f"{used}: code {found['code']}"
        if found["code"] == 2:
            assert found["err"].count("\n") == 1, f"{used}: {found['err']}"
        assert "\x1b" not in found["err"] + found["out"], f"{used}: an escape reaches the terminal"
        return found

    def start(self) -> subprocess.Popen[str]:
        """The process, ready."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == "ready\n"
        return self._process

    def _line(self, process: subprocess.Popen[str], request: str, limit: float) -> str | None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], limit)
        line = process.stdout.readline() if ready else ""
        if not line:
            self.close()
        return line or None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker()
    found.start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    """A small run with everything in it, its certificate, and the ledger."""
    from reticent.cli import main
    from reticent.training import parse_config, train

    folder = tmp_path_factory.mktemp("pristine")
    train(parse_config(CONFIG), folder / "run")
    with pytest.raises(SystemExit, match="0"):
        main(["certify", str(folder / "run"), "--out", str(folder / "certificate")])
    return folder


def fuzz(strategy: st.SearchStrategy, check: Callable[[object], None], share: float = 0.2) -> int:
    """Hundreds of examples after hundreds, until the time is up."""
    ends, count = time.monotonic() + 60.0 * MINUTES * share, 0

    def counted(example: object) -> None:
        nonlocal count
        if time.monotonic() < ends:
            count += 1
            check(example)

    for k in range(10**6):
        if time.monotonic() >= ends:
            break
        phases = (Phase.explicit, Phase.generate)
        quiet = settings(
            max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=phases
        )
        seed(k + int(os.environ.get("RETICENT_FUZZ_SEED", "0")))(quiet(given(strategy)(lambda x: counted(x))))()
    print(f"{count} examples in {60.0 * MINUTES * share:g} s")
    return count


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def as_yaml(document: object) -> bytes:
    text = json.dumps(document)  # most JSON is YAML
    if len(text) < 5_000 and "[[[[[[[[" not in text:
        text = yaml.safe_dump(document, allow_unicode=True)
    return text.encode("utf-8", "surrogatepass")


SEEDS = ("2024-13-45", "!!int abc", "!!bool abc", "0b_", "1", "!!python/name:os.system", "1:2:3", ".nan")
BROKEN = ("? [a]\n: b", "<<: *a", "&a a: *a", "- 1", "{", "}", "\t", "'", '"\\ud800": 1', "%YAML 9.9", "---", "...")
TAGGED = ("a: !!timestamp x", "a: !!binary x", "a: !!set {b}", "model: !!omap [a: 1]", "x: |\n  y", "steps: 3")
YAML_LINES = st.sampled_from([*(f"seed: {x}" for x in SEEDS), *BROKEN, *TAGGED])


@st.composite
def configurations(draw: st.DrawFn) -> bytes:
    text = as_yaml(draw(damaged(CONFIG)))
    for line in draw(st.lists(YAML_LINES, max_size=2)):
        text += line.encode("utf-8", "surrogatepass") + b"\n"
    return draw(bitten(text)) if draw(st.integers(0, 3)) == 0 else text


def patient(content: bytes) -> bool:
    """Whether a configuration asks for a run that may rightly take long."""
    from reticent.io.yaml import loads
    from reticent.kernel.errors import ReticentError
    from reticent.training.config import parse_config

    try:
        config = parse_config(loads(content.decode(), "c"), "c")
    except (ReticentError, UnicodeDecodeError):
        return False
    sizes = getattr(config.model, "widths", (1,))
    steps = config.steps or 0
    return steps > 50 or (config.epochs or 0) > 5 or max(sizes) > 500 or config.target is not None


def run_config(worker: Worker, folder: Path, content: bytes) -> None:
    if patient(content):
        return
    (folder / "c.yaml").write_bytes(content)
    if worker.ask(folder, "cli", "train", folder / "c.yaml", "--out", folder / "run")["code"] == 2:
        assert [p.name for p in folder.iterdir()] == ["c.yaml"]


def forged(folder: Path, name: str, content: bytes) -> None:
    """Write a file of a run and make the manifest agree, as whoever can compute checksums does."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@st.composite
def run_changes(draw: st.DrawFn, run: Path) -> tuple[Path, str, bytes, bool, str]:
    names = sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())
    name = draw(st.sampled_from([*names, "ledger.json", "ledger.json"]))
    content = (run / name).read_bytes()
    structured = name.endswith(".json") and draw(st.integers(0, 4)) > 0
    changed = text_of(draw(damaged(json.loads(content)))) if structured else draw(bitten(content))
    return run, name, changed, draw(st.integers(0, 4)) > 0, draw(st.sampled_from(["read", "read", "read", "audit"]))


def read_changed_run(worker: Worker, folder: Path, example: tuple[Path, str, bytes, bool, str]) -> None:
    run, name, content, sealed, how = example
    shutil.copytree(run, folder / "run")
    if sealed and name != "manifest.json":
        forged(folder / "run", name, content)
    else:
        (folder / "run" / name).write_bytes(content)
    if how == "read":
        worker.ask(folder, "read_run", folder / "run")
    else:
        worker.ask(folder, "cli", "audit", folder / "run", "--attack", "loss", "--records", "20")


def npz_bytes(meta: object, member: np.ndarray, other: np.ndarray) -> bytes:
    stream = io.BytesIO()
    text = json.dumps(meta).encode("ascii", "backslashreplace").decode()
    np.savez(stream, member=member, non_member=other, meta=np.array(text))
    return stream.getvalue()


def parquet_bytes(meta: object, member: np.ndarray, other: np.ndarray) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    inside = np.arange(len(member) + len(other)) < len(member)
    table = pa.table({"score": np.concatenate([member, other]), "member": inside})
    pq.write_table(table.replace_schema_metadata({"reticent": json.dumps(meta)}), stream)
    return stream.getvalue()


def csv_bytes(meta: object, member: np.ndarray, other: np.ndarray) -> bytes:
    rows = [f"{x!r},1" for x in member.tolist()] + [f"{x!r},0" for x in other.tolist()]
    return "\n".join(["score,member", *rows, ""]).encode()


@st.composite
def score_files(draw: st.DrawFn) -> tuple[str, bytes, list[str]]:
    suffix, write = draw(st.sampled_from([(".npz", npz_bytes), (".parquet", parquet_bytes), (".csv", csv_bytes)]))
    meta = draw(damaged({"attack": "loss", "seed": 3, "design": "population"}, 2))
    kind = draw(st.sampled_from(["<f8", "<f4", "<i8", "|u1", "<f2"])) if suffix != ".csv" else "<f8"
    count = st.lists(st.floats(allow_nan=draw(st.booleans()), width=16), min_size=0, max_size=30)
    with np.errstate(all="ignore"):
        member, other = (np.array(draw(count)).astype(kind) for _ in range(2))
    content = write(meta, member, other)
    content = draw(bitten(content)) if draw(st.integers(0, 2)) == 0 else content
    options = draw(
        st.sampled_from([[], ["--json"], ["--design", "one-run"], ["--against-mu", "1"], ["--rule", "split:0.3"]])
    )
    return suffix, content, options


def audit_scores(worker: Worker, folder: Path, example: tuple[str, bytes, list[str]]) -> None:
    suffix, content, options = example
    (folder / f"s{suffix}").write_bytes(content)
    worker.ask(folder, "cli", "audit", folder / f"s{suffix}", *options)


def read_with(*verb: str) -> Check:
    """A file by itself, given to a verb."""

    def check(worker: Worker, folder: Path, content: bytes) -> None:
        (folder / "file.json").write_bytes(content)
        worker.ask(folder, *verb, folder / "file.json")

    return check


def documents(file: str) -> Callable[[Path], st.SearchStrategy[bytes]]:
    """A document of the pristine run, damaged; a few are no documents at all."""

    def strategy(pristine: Path) -> st.SearchStrategy[bytes]:
        plain = damaged(json.loads((pristine / file).read_text())).map(text_of)
        return st.one_of(plain, plain, plain.flatmap(bitten), SCALARS.map(text_of))

    return strategy


FILES: dict[str, tuple[Callable[[Path], st.SearchStrategy], Check]] = {
    "configurations": (lambda _: configurations(), run_config),
    "runs": (lambda pristine: run_changes(pristine / "run"), read_changed_run),
    "score files": (lambda _: score_files(), audit_scores),
    "ledgers": (documents("run/ledger.json"), read_with("read_ledger")),
    "certificates": (documents("certificate/certificate.json"), read_with("cli", "verify")),
}


@pytest.mark.parametrize("kind", FILES)
def test_hostile_files_end_in_one_line_or_an_answer(worker: Worker, pristine: Path, tmp_path: Path, kind: str) -> None:
    strategy, check = FILES[kind]
    assert fuzz(strategy(pristine), lambda example: check(worker, emptied(tmp_path / "here"), example)) > 10
