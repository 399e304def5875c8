"""The risk is told to TensorBoard, Weights & Biases, MLflow and the terminal now and then, and at the end."""

from __future__ import annotations

import pytest

import reticent as rt
from reticent.kernel.errors import UnsupportedError
from reticent.watching import loggers
from reticent.watching.session import Watch
from tests.watching.programs import network


def stated(steps, after=lambda: None, **options) -> Watch:
    """A loop of which nothing is seen."""
    with rt.watch(network(), sampler="poisson", log_every=4, **options) as seen:
        for _ in range(steps):
            seen.step(noise_multiplier=1.1, sample_rate=0.1)
            after()
    return seen


class Writer:
    """Stands for TensorBoard, Weights & Biases and MLflow."""

    def __init__(self):
        self.seen: list[tuple] = []

    def add_scalar(self, name, value, step):
        self.seen.append((name, value, step))

    def log(self, metrics, *, commit):
        assert commit is False
        self.seen += [(name, value, None) for name, value in metrics.items()]

    def log_metrics(self, metrics, *, step):
        self.seen += [(name, value, step) for name, value in metrics.items()]


@pytest.mark.parametrize("make", [loggers.tensorboard, loggers.wandb, loggers.mlflow])
def test_loggers_get_the_risk_now_and_then_and_at_the_end(make):
    writer = Writer()
    seen = stated(10, log=make(writer))
    steps = [value for name, value, _ in writer.seen if name == "privacy/steps"]
    assert steps == [4.0, 8.0, 10.0]
    last = [value for name, value, _ in writer.seen if name == "privacy/advantage"][-1]
    assert last == pytest.approx(rt.assess(seen)[0].measure(rt.advantage).value, rel=1e-3, abs=0)


@pytest.mark.parametrize("make", [loggers.tensorboard, loggers.wandb, loggers.mlflow])
def test_a_logger_that_cannot_log_is_named(make):
    with pytest.raises(UnsupportedError, match="has no"):
        make(object())


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_library_that_is_missing_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(UnsupportedError, match=f"pip install {name}"):
        getattr(loggers, name)()


def test_the_risk_is_printed_with_the_loss():
    lines: list[str] = []
    stated(1, log=loggers.printed(lambda: 0.25, lines.append))
    (line,) = lines
    assert line.startswith("step 1: advantage at most 0.0")
    assert line.endswith("; loss 0.25")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    seen = stated(10, log=loggers.tensorboard(writer))
    writer.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    events = found.Scalars("privacy/advantage")
    assert [event.step for event in events] == [4, 8, 10]
    assert events[-1].value == pytest.approx(seen.risk().advantage, rel=1e-6, abs=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_takes_the_metrics_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = wandb.init(dir=str(tmp_path), project="reticent-test")
    stated(8, lambda: run.log({"loss": 1.0}), log=loggers.wandb(run))
    assert run.summary["privacy/steps"] in (4.0, 8.0)
    run.finish()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_the_metrics(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    with mlflow.start_run() as run:
        seen = stated(8, log=loggers.mlflow())
    kept = mlflow.get_run(run.info.run_id).data.metrics
    assert kept["privacy/steps"] == 8.0
    assert kept["privacy/advantage"] == pytest.approx(seen.risk().advantage, rel=1e-6, abs=0)
