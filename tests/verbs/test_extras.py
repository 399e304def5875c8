"""Without extras: what needs none works, and whatever else names the one that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path

import pytest

import reticent as rt
from reticent.kernel.errors import MissingError, UnsupportedError, WorkerError, needing

BARE = """
import importlib, json, pydoc, sys
from pathlib import Path

class Refuse:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS = sys.argv[1].split(",")
sys.meta_path.insert(0, Refuse())
import reticent as rt
from reticent.cli import main
from reticent.tasks import Local

folder, two = Path(sys.argv[2]), [rt.Gaussian(2.0), rt.Gaussian(3.0)]
asked = {
    "in this process": lambda: rt.assess_each(two).rows(),
    "one worker": lambda: rt.assess_each(two, engine=Local(1)).rows(),
    "two workers": lambda: rt.assess_each(two, engine=Local(2)),
    "a folder": lambda: rt.assess_each(two, work=folder / "work"),
    "a name": lambda: importlib.import_module("reticent.attacks").audit_loop,
    "to train": lambda: importlib.import_module("reticent.training").fit,
    "names": lambda: dir(importlib.import_module("reticent.attacks")),
    "pydoc attacks": lambda: pydoc.render_doc("reticent.attacks"),
    "pydoc training": lambda: pydoc.render_doc("reticent.training"),
    "csv": lambda: main(["train", "--data", str(folder / "people.csv"), "--label", "y"]),
    "scores": lambda: main(["audit", str(folder / "scores.parquet")]),
    **{name: lambda name=name: importlib.import_module(f"reticent.{name}") for name in sys.argv[3:]},
}
said = {}
for name, ask in asked.items():
    try:
        said[name] = [None, str(ask())]
    except BaseException as error:
        said[name] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""
EXTRAS = "torch,opacus,sklearn,safetensors,pyarrow,joblib,dash,flask,dp_accounting,transformers,lightning,distributed"
MODULES = {
    "sensitivity": "train",
    "interop.opacus": "train",
    "interop.pld": "interop",
    "interop.dp_events": "interop",
    "watching.huggingface": "hf",
    "watching.lightning": "lightning",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> tuple[dict[str, list[str]], str, Path]:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "people.csv").write_text("a,y\n1,0\n2,1\n")
    (folder / "scores.parquet").touch()
    call = [sys.executable, "-c", BARE, EXTRAS, str(folder), *MODULES]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr, folder


def test_what_needs_nothing_needs_nothing(bare) -> None:
    """``assess_each`` asked for safetensors, and pydoc ended where one name of a package needs torch."""
    said = bare[0]
    assert said["in this process"] == [None, str(rt.assess_each([rt.Gaussian(2.0), rt.Gaussian(3.0)]).rows())]
    assert said["one worker"] == said["in this process"]
    assert said["names"][0] is None
    assert "ATTACKS" in said["names"][1]
    assert "audit_loop" not in said["names"][1]
    assert said["pydoc attacks"][0] is said["pydoc training"][0] is None


def test_what_needs_an_extra_names_it(bare) -> None:
    """``train --data people.csv`` blamed the file: "not a table (No module named 'pyarrow')"."""
    said, err, folder = bare
    wanted = {
        **MODULES,
        "two workers": "distributed",
        "a folder": "distributed",
        "a name": "train",
        "to train": "train",
    }
    for name, extra in wanted.items():
        assert said[name][0] == "MissingError"
        assert f"pip install 'reticent[{extra}]'" in said[name][1]
    assert (said["csv"], said["scores"]) == (["SystemExit", "2"], ["SystemExit", "2"])
    assert err.count("\n") == err.count("pip install 'reticent[train]'") == 2
    assert "not a table" not in err
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "scores.parquet"], "nothing is begun"


def test_the_error_is_one_of_ours_and_one_of_imports() -> None:
    told = pytest.raises(MissingError, match=r"^it needs an extra: pip install 'reticent\[train\]'")
    with told as stop, needing("around it", "dev"), needing("it", "train"):
        raise ModuleNotFoundError("No module named 'torch'")
    assert isinstance(stop.value, UnsupportedError)
    assert isinstance(stop.value, ImportError)


class Dead(Executor):
    """Workers that are killed."""

    def submit(self, *_: object) -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(BrokenExecutor())
        return future


def test_after_a_killed_worker_nothing_is_promised_that_is_gone(tmp_path) -> None:
    """The line named a temporary folder, which was deleted by then, and ``--resume``, which Python has not."""
    with pytest.raises(WorkerError, match=r"a worker died.*; nothing is kept: work=FOLDER keeps what is done$"):
        rt.assess_each([rt.Gaussian(2.0)], engine=Dead())
    with pytest.raises(WorkerError, match=r"0 of 1 tasks are kept in .*/work: the same call goes on with them$"):
        rt.assess_each([rt.Gaussian(2.0)], engine=Dead(), work=tmp_path / "work")
