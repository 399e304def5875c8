"""The callback inside the real Trainer of Lightning."""

from __future__ import annotations

import pytest
import torch

import reticent as rt
from reticent import facts
from reticent.facts.steps import Drawn
from reticent.watching import loggers
from tests.watching.loops import most_that_fits
from tests.watching.programs import NOISE, RATE, private

lightning = pytest.importorskip("lightning")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the library takes a quarter of a minute


class Classifier(lightning.LightningModule):
    def __init__(self, **options):
        super().__init__()
        self.net, self.private, self.loader, self.loss = private(norm=2.0, **options)

    def training_step(self, batch, index):
        return self.loss(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return self.private

    def train_dataloader(self):
        return self.loader


def seeing(**options):
    from reticent.watching.lightning import WatchCallback

    return WatchCallback(**options)


def fit(folder, epochs, seen, module=None, ckpt_path=None, callbacks=(), **options):
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[seen, *callbacks],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )
    trainer.fit(module or Classifier(), ckpt_path=ckpt_path)
    return trainer


@pytest.mark.parametrize("poisson", [True, False])
def test_lightning_ends_in_a_certificate(tmp_path, poisson):
    seen = seeing()
    fit(tmp_path, 2, seen, Classifier(poisson_sampling=poisson))
    found = seen.ledger
    assert (found.steps, found.clipping.largest, found.num_parameters) == (12, 2.0, 44)
    assert found.sampler.drawn is (Drawn.POISSON if poisson else Drawn.SHUFFLED)
    assert not any(fault.voids for fault in found.faults), found.faults
    assert facts.OTHER_BATCHES not in found.faults
    assert found.mechanism().sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen).verify().accepted


def test_lightning_that_resumes_needs_the_ledger_of_before(tmp_path):
    first = seeing()
    fit(tmp_path, 2, first).save_checkpoint(tmp_path / "half.ckpt")
    first.ledger.save(tmp_path / "ledger.json")
    unseen, known = seeing(), seeing(continues=tmp_path / "ledger.json")
    for callback in (unseen, known):
        fit(tmp_path, 4, callback, ckpt_path=tmp_path / "half.ckpt")
    assert facts.STEPS_BEFORE in unseen.ledger.faults
    assert unseen.ledger.start.trainer_step == 12
    assert known.ledger.mechanism().steps == 24
    assert known.ledger.mechanism().noise_multiplier == NOISE


def test_one_callback_for_two_fits_counts_both(tmp_path):
    seen, module = seeing(), Classifier()
    for _ in range(2):
        fit(tmp_path, 1, seen, module)
    assert seen.ledger.mechanism().steps == 12


def test_seed_everything_is_public(tmp_path):
    seen, module = seeing(), Classifier()
    lightning.seed_everything(42)
    fit(tmp_path, 1, seen, module)
    torch.seed()
    assert {facts.PUBLIC_SEED, facts.PUBLIC_DRAWS} <= set(seen.ledger.faults)


def test_lightning_ends_at_a_risk_and_logs_it(tmp_path):
    lines: list[str] = []
    seen = seeing(stop_at="advantage=0.3", log=loggers.printed(write=lines.append), log_every=5)
    trainer = fit(tmp_path, 100, seen, log_every_n_steps=5)
    assert most_that_fits(seen.ledger, 0.3)
    assert 0.0 < float(trainer.callback_metrics["privacy_advantage"]) <= 0.3
    assert lines[-1].startswith(f"step {seen.ledger.steps}: ")


def test_weight_averaging_of_lightning_fails_inside_opacus(tmp_path):
    """It copies the Trainer's optimizers, and Opacus's cannot be copied; docs/howto/lightning.md says so.

    It is the last: the copy that failed leaves the class of Opacus with a step that later optimizers cannot take.
    """
    averaging = lightning.pytorch.callbacks.StochasticWeightAveraging(swa_lrs=1e-2, swa_epoch_start=1)
    with pytest.raises(AttributeError, match="original_optimizer"):
        fit(tmp_path, 4, seeing(), callbacks=[averaging])
