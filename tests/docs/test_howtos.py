"""Every how-to page is followed literally, from the first block to the last."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.docs.follow import ROOT, follow

SHORT = {
    "start/case.md": ["certificate/certificate.html", "final.json"],
    "start/first-certificate.md": ["runs/mine/certificate.html", "runs/signed/certificate.json"],
    "howto/an-epsilon.md": ["both/certificate.html"],
    "howto/audit-a-model.md": ["report.html"],
    "howto/checkpoints.md": ["runs/mine-certificate/certificate.html", "certificate/certificate.html"],
    "howto/federated.md": ["certificate/certificate.html"],
    "howto/gate.md": ["gate.md", "gate.xml"],
    "howto/events.md": ["certificate/certificate.html"],
    "howto/gpu.md": ["certificate/certificate.html"],
    "howto/many-models.md": ["certificate/certificate.html"],
    "howto/many-runs.md": ["certificates/0/certificate.html", "all.register"],
    "howto/noise-for-a-target.md": [],
    "howto/opacus.md": ["certificate/certificate.html", "ledger.json"],
    "howto/persons.md": ["certificate/certificate.html"],
    "howto/own-table.md": ["runs/people-certificate/certificate.html"],
    "howto/schedules.md": ["certificate/certificate.html", "ledger.json", "runs/plan-certificate/certificate.html"],
    "howto/secrets-in-text.md": ["certificate/certificate.html"],
    "howto/several-processes.md": ["certificate/certificate.html", "ledger.json"],
    "howto/shuffling-to-random-allocation.md": ["certificate/certificate.html", "ledger.json"],
    "howto/synthetic-tables.md": ["certificate/certificate.html", "synthetic.csv"],
    "howto/worth-of-an-accusation.md": ["release/certificate.html"],
    "howto/register.md": ["together/certificate.html", "clinic.register"],
    "howto/tune-settings.md": ["tuned/certificate.html", "best-certificate/certificate.html"],
}
"""Pages, and the files that must be there at their end."""

LONG = {
    "howto/audit-your-loop.md": [],
    "howto/cluster.md": [],
    "howto/federated.md": ["certificate/certificate.html", "flower/certificate.html"],
    "howto/huggingface.md": ["certificate/certificate.html"],
    "howto/language-models.md": ["certificate/certificate.html"],
    "howto/lightning.md": ["certificate/certificate.html"],
    "howto/nvflare.md": [],
    "howto/pfl.md": [],
    "howto/synthetic-tables.md": ["synthetic.csv", "attack.py"],
}

WATCHED = ("howto/opacus.md", "howto/huggingface.md", "howto/lightning.md", "howto/several-processes.md")
"""Pages whose certificates state the noise that was set, and Poisson sampling: nothing in them voids it."""


WITHOUT = {"howto/federated.md": "## 3. Flower", "howto/synthetic-tables.md": "## 4. Attack the table"}
"""Pages that are both, and where what needs other libraries begins."""


def pages() -> list:
    short = [
        pytest.param(page, files, WITHOUT.get(page), marks=pytest.mark.docs, id=page) for page, files in SHORT.items()
    ]
    return short + [pytest.param(page, files, None, marks=pytest.mark.slow, id=page) for page, files in LONG.items()]


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")  # pfl-research, where it adds noise
@pytest.mark.parametrize(("page", "files", "end"), pages())
def test_a_page_can_be_followed_literally(
    page: str, files: list[str], end: str | None, tmp_path: Path, monkeypatch
) -> None:
    if page in ("howto/cluster.md", "howto/many-runs.md"):
        monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=slurm_here()))
    logged = trackers_here(monkeypatch) if page == "howto/many-runs.md" else []
    if page == "howto/synthetic-tables.md" and not os.environ.get("RETICENT_DATA"):
        pytest.skip("RETICENT_DATA is not set")
    needed = {"huggingface": ["peft"], "language-models": ["peft"], "lightning": ["lightning"]}
    needed |= {"nvflare": ["nvflare"], "pfl": ["pfl"]}
    needed |= {} if end else {"federated": ["flwr"], "synthetic-tables": ["anonymeter"]}
    for module in needed.get(Path(page).stem, []):
        pytest.importorskip(module)
    assert follow(ROOT / "docs" / page, tmp_path, end=end)
    if page == "howto/many-runs.md":
        metrics, tags, tables = (
            [value for name, value in logged if name == kind] for kind in ("metrics", "tag", "table")
        )
        assert [set(one) for one in metrics] == [set(metrics[0])] * 3
        assert {"privacy/relaxed/advantage", "privacy/worst-case/epsilon"} <= set(metrics[0])
        assert len(tags) == 3
        assert len(tables[0]["data"]) == 9
    for name in files:
        assert (tmp_path / name).stat().st_size > 100, name
    if page in WATCHED:
        stated = json.loads((tmp_path / "certificate" / "certificate.json").read_text())["mechanism"]
        assert stated["noise_multiplier"] == 1.1
        assert stated["sample_rate"] < 1.0


def slurm_here() -> type:
    """Slurm's jobs as two processes of this machine, with the options of dask-jobqueue 0.9."""
    from distributed import LocalCluster

    class Here(LocalCluster):
        def __init__(self, *, cores: int, memory: str, walltime: str, job_script_prologue: list[str]) -> None:
            super().__init__(n_workers=0, threads_per_worker=cores, host="127.0.0.1", dashboard_address=":0")

        def scale(self, jobs: int) -> None:
            super().scale(min(jobs, 2))

    return Here


def trackers_here(monkeypatch) -> list:
    """MLflow and Weights & Biases with the calls of MLflow 3 and wandb 0.2x that pages use; what was logged."""
    logged: list = []
    mlflow = SimpleNamespace(
        start_run=lambda run_name: nullcontext(),
        log_metrics=lambda metrics: logged.append(("metrics", metrics)),
        set_tag=lambda key, value: logged.append(("tag", {key: value})),
    )
    run = nullcontext(SimpleNamespace(log=lambda data: logged.append(("log", data))))
    wandb = SimpleNamespace(init=lambda project: run, Table=lambda **table: logged.append(("table", table)))
    for name, module in {"mlflow": mlflow, "wandb": wandb}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return logged


@pytest.mark.docs
def test_every_how_to_is_followed() -> None:
    found = {f"howto/{path.name}" for path in (ROOT / "docs" / "howto").glob("*.md")} - {"howto/index.md"}
    assert found == {page for page in SHORT | LONG if page.startswith("howto/")}


@pytest.mark.docs
@pytest.mark.parametrize(
    "page",
    [
        "Save this as `a.py`:\n\n```python\nraise SystemExit(1)\n```\n\n```sh\npython a.py\n```\n",
        "```python\nraise KeyError\n```\n",
        "```python\nprint(1)\n```\n\nThis prints\n\n```text\n2\n```\n",
        "```sh\nreticent verify missing.html\n```\n",
    ],
)
def test_a_page_that_fails_is_seen(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    with pytest.raises((AssertionError, KeyError)):
        follow(tmp_path / "page.md", tmp_path)
