"""The Trainer and Lightning end at a risk, and show the risk with the loss."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import reticent as rt
from reticent.watching import loggers
from tests.watching.loops import BATCH, NOISE, RATE, network, records

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
TARGET = "advantage=0.3"


def made_private(model, loader, **options):
    from opacus import PrivacyEngine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            **options,
        )


def is_the_most_that_fits(found) -> bool:
    within = rt.assess(found)[0].measure(rt.advantage).value
    beyond = rt.assess(rt.DPSGD(NOISE, RATE, found.steps + 1))[0].measure(rt.advantage).value
    return within <= 0.3 < beyond


class Rows(Dataset):
    def __init__(self):
        self.rows = records()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        features, label = self.rows[index]
        return {"features": features, "labels": label}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, features, labels=None):
        logits = self.net(features)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def test_the_trainer_ends_at_a_risk_and_prints_it_with_the_loss(tmp_path):
    transformers = pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    model = Net().train()
    _, optimizer, loader = made_private(model, DataLoader(Rows(), batch_size=BATCH, shuffle=True), wrap_model=False)
    printed: list[dict] = []

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return loader

    class Last(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            optimizer.zero_grad()

        def on_log(self, args, state, control, logs=None, **kwargs):
            printed.append(dict(logs))

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=100, report_to=[], save_strategy="no", use_cpu=True, logging_steps=5
    )
    seen = WatchCallback(stop_at=TARGET)
    parts = {"model": model, "args": arguments, "train_dataset": Rows(), "optimizers": (optimizer, None)}
    trainer = Trainer(**parts, callbacks=[seen, Last()])
    torch.seed()  # the Trainer seeds with 42, and then nothing is hidden
    trainer.train()
    assert is_the_most_that_fits(seen.ledger)
    with_loss = [line for line in printed if "loss" in line]
    assert with_loss
    assert all(0.0 < line["privacy_advantage"] <= 0.3 for line in with_loss)


def test_lightning_ends_at_a_risk_and_logs_it(tmp_path):
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            loader = DataLoader(records(), batch_size=BATCH, shuffle=True)
            self.net, self.private, self.loader = made_private(network(), loader)

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return self.private

        def train_dataloader(self):
            return self.loader

    lines: list[str] = []
    seen = WatchCallback(stop_at=TARGET, log=loggers.printed(write=lines.append), log_every=5)
    trainer = lightning.Trainer(
        max_epochs=100,
        callbacks=[seen],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        log_every_n_steps=5,
    )
    trainer.fit(Classifier())
    assert is_the_most_that_fits(seen.ledger)
    assert 0.0 < float(trainer.callback_metrics["privacy_advantage"]) <= 0.3
    assert lines[-1].startswith(f"step {seen.ledger.steps}: ")


def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    with rt.watch(network(), sampler="poisson", log=loggers.tensorboard(writer), log_every=4) as seen:
        for _ in range(10):
            seen.step(noise_multiplier=1.1, sample_rate=0.1)
    writer.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    events = found.Scalars("privacy/advantage")
    assert [event.step for event in events] == [4, 8, 10]
    assert events[-1].value == pytest.approx(seen.risk().advantage, rel=1e-6, abs=0)


def test_wandb_takes_the_metrics_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = wandb.init(dir=str(tmp_path), project="reticent-test")
    with rt.watch(network(), sampler="poisson", log=loggers.wandb(run), log_every=4) as seen:
        for _ in range(8):
            seen.step(noise_multiplier=1.1, sample_rate=0.1)
            run.log({"loss": 1.0})
    assert run.summary["privacy/steps"] in (4.0, 8.0)
    run.finish()


def test_mlflow_keeps_the_metrics(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    with mlflow.start_run() as run, rt.watch(network(), sampler="poisson", log=loggers.mlflow(), log_every=4) as seen:
        for _ in range(8):
            seen.step(noise_multiplier=1.1, sample_rate=0.1)
    kept = mlflow.get_run(run.info.run_id).data.metrics
    assert kept["privacy/steps"] == 8.0
    assert kept["privacy/advantage"] == pytest.approx(seen.risk().advantage, rel=1e-6, abs=0)
