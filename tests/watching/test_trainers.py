"""The callbacks inside the real Trainer of Hugging Face and the real Trainer of Lightning."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ArtifactError, ParameterError
from reticent.facts.steps import Drawn
from tests.watching.loops import BATCH, NOISE, RATE, RECORDS, network, private, records

TOKENS = 5

pytestmark = pytest.mark.slow  # the two libraries alone take half a minute to import


def private_engine():
    from opacus import PrivacyEngine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivacyEngine()


class Sentences(torch.utils.data.Dataset):
    """Token numbers without a tokenizer."""

    def __init__(self):
        draw = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(5, 30, (RECORDS, TOKENS), generator=draw)
        self.labels = torch.randint(0, 2, (RECORDS,), generator=draw)

    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.labels[index]}


def tiny_transformer():
    """Two heads, one layer, built from a configuration: nothing is downloaded; LoRA on the attention."""
    from peft import LoraConfig, get_peft_model
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=30, dim=8, hidden_dim=16, n_layers=1, n_heads=2, max_position_embeddings=8, num_labels=2
    )
    lora = LoraConfig(r=2, target_modules=["q_lin", "v_lin"], modules_to_save=[])
    model = get_peft_model(DistilBertForSequenceClassification(config), lora)
    torch.seed()
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("poisson", [True, False])
def test_a_transformer_with_lora_ends_in_a_certificate(tmp_path, poisson):
    pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    model = tiny_transformer().train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    loader = DataLoader(Sentences(), batch_size=BATCH, shuffle=True)
    _, optimizer, loader = private_engine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=NOISE,
        max_grad_norm=0.5,
        poisson_sampling=poisson,
        wrap_model=False,
    )

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loader)

    class Forget(transformers.TrainerCallback):
        """The Trainer clears the model's gradients, Opacus's optimizer must clear those of single records."""

        def on_step_end(self, args, state, control, **kwargs):
            optimizer.zero_grad()

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True
    )
    seen = WatchCallback()
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Sentences(), optimizers=(optimizer, None), callbacks=[Forget(), seen]
    )
    torch.seed()  # the Trainer seeds with 42
    trainer.train()
    found = seen.ledger
    assert found.num_parameters == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert (found.steps, found.clipping.largest) == (12, 0.5)
    assert found.sampler.drawn is (Drawn.POISSON if poisson else Drawn.SHUFFLED)
    assert not any(fault.voids for fault in found.faults), found.faults
    assert facts.OTHER_BATCHES not in found.faults
    run = found.mechanism()
    assert run.noise_multiplier == NOISE
    assert run.sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen, subject="a tiny transformer").verify().accepted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("poisson", [True, False])
def test_lightning_ends_in_a_certificate(tmp_path, poisson):
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, optimizer = network(), None
            optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            self.net, self.private, self.loader = private_engine().make_private(
                module=self.net,
                optimizer=optimizer,
                data_loader=DataLoader(records(), batch_size=BATCH, shuffle=True),
                noise_multiplier=NOISE,
                max_grad_norm=2.0,
                poisson_sampling=poisson,
            )

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return self.private

        def train_dataloader(self):
            return self.loader

    seen = WatchCallback()
    trainer = lightning.Trainer(
        max_epochs=2,
        callbacks=[seen],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(Classifier())
    found = seen.ledger
    assert (found.steps, found.clipping.largest, found.num_parameters) == (12, 2.0, 44)
    assert found.sampler.drawn is (Drawn.POISSON if poisson else Drawn.SHUFFLED)
    assert not any(fault.voids for fault in found.faults), found.faults
    assert facts.OTHER_BATCHES not in found.faults
    assert found.mechanism().sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen).verify().accepted


def hugging_face(folder, callback, epochs=2, reseed=True, **options):
    """A Trainer with a private optimizer that is seeded from the operating system, unless told otherwise."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("peft")
    model = tiny_transformer().train()
    _, optimizer, loader = private_engine().make_private(
        module=model,
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9),
        data_loader=DataLoader(Sentences(), batch_size=BATCH, shuffle=True),
        noise_multiplier=NOISE,
        max_grad_norm=0.5,
        wrap_model=False,
    )

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loader)

    class Private(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            optimizer.zero_grad()

    settings = {"save_strategy": "no", "report_to": [], "use_cpu": True, "disable_tqdm": True} | options
    arguments = transformers.TrainingArguments(output_dir=str(folder), num_train_epochs=epochs, **settings)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Sentences(),
        eval_dataset=Sentences(),
        optimizers=(optimizer, None),
        callbacks=[Private(), callback],
    )
    if reseed:
        torch.seed()
    return trainer


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_that_resumes_needs_the_ledger_of_before(tmp_path):
    """12 of 24 steps were in no ledger."""
    pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    first = WatchCallback()
    trainer = hugging_face(tmp_path, first, save_strategy="epoch")
    trainer.train()
    first.ledger.save(tmp_path / "ledger.json")
    (tmp_path / "checkpoint-12" / "rng_state.pth").unlink()  # else the batches after it are drawn from a known state
    resumed = {"save_strategy": "epoch", "epochs": 4}

    unseen = WatchCallback()
    trainer = hugging_face(tmp_path, unseen, **resumed)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-12"))
    assert facts.STEPS_BEFORE in unseen.ledger.faults
    assert unseen.ledger.start.trainer_step == 12
    assert unseen.ledger.mechanism().noise_multiplier == 0.0

    known = WatchCallback(continues=tmp_path / "ledger.json")
    trainer = hugging_face(tmp_path, known, **resumed)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-12"))
    assert known.ledger.mechanism().steps == 24
    assert known.ledger.mechanism().noise_multiplier == NOISE


@pytest.mark.filterwarnings("ignore")
def test_one_callback_for_two_trainings_counts_both(tmp_path):
    pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    seen = WatchCallback()
    trainer = hugging_face(tmp_path, seen)
    trainer.train()
    trainer.train()
    assert seen.ledger.mechanism().steps == 24
    assert seen.ledger.mechanism().noise_multiplier == NOISE


@pytest.mark.filterwarnings("ignore")
def test_a_training_that_was_broken_off_is_left(tmp_path):
    """The Trainer tells its callbacks nothing; the next training counts the steps of both."""
    transformers = pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    class Breaks(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 5:
                raise KeyboardInterrupt

    seen = WatchCallback()
    trainer = hugging_face(tmp_path, seen)
    breaks = Breaks()
    trainer.add_callback(breaks)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    trainer.remove_callback(breaks)
    trainer.train()
    assert seen.ledger.mechanism().steps == 17
    seen.close()  # nothing is open
    trainer.add_callback(breaks)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    other = rt.watch(trainer.model, trainer.optimizer)
    with pytest.raises(ParameterError, match=r"callback\.close"):
        other.__enter__()
    seen.close()
    assert seen.ledger.mechanism().steps == 22
    with other:
        pass
    with pytest.raises(ParameterError, match="at least one step"):
        _ = other.ledger


@pytest.mark.filterwarnings("ignore")
def test_the_best_epoch_that_a_trainer_puts_back(tmp_path):
    """It saves and loads by ``state_dict``; all steps count."""
    pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    seen, scores = WatchCallback(), iter((1.0, 0.5))
    how = dict.fromkeys(("save_strategy", "eval_strategy"), "epoch")
    best = {"load_best_model_at_end": True, "metric_for_best_model": "score", "greater_is_better": True}
    trainer = hugging_face(tmp_path, seen, **how, **best)
    trainer.compute_metrics = lambda _: {"score": next(scores)}
    trainer.train()
    assert facts.PUT_BACK in seen.ledger.faults
    assert not any(fault.voids for fault in seen.ledger.faults)
    assert seen.ledger.mechanism().steps == 12
    seen.save(tmp_path / "ledger.json")
    with pytest.raises(ArtifactError, match="already exists"):
        seen.save(tmp_path / "ledger.json")


@pytest.mark.filterwarnings("ignore")
def test_the_seed_of_the_trainer_is_public(tmp_path):
    pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    seen = WatchCallback()
    trainer = hugging_face(tmp_path, seen, reseed=False)
    trainer.train()
    assert {facts.PUBLIC_SEED, facts.PUBLIC_DRAWS} <= set(seen.ledger.faults)


def classifier(lightning):
    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            net = network()
            self.net, self.private, self.loader = private_engine().make_private(
                module=net,
                optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
                data_loader=DataLoader(records(), batch_size=BATCH, shuffle=True),
                noise_multiplier=NOISE,
                max_grad_norm=2.0,
            )

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return self.private

        def train_dataloader(self):
            return self.loader

    return Classifier()


def fit(lightning, folder, epochs, seen, module, ckpt_path=None, callbacks=()):
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[seen, *callbacks],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(module, ckpt_path=ckpt_path)
    return trainer


@pytest.mark.filterwarnings("ignore")
def test_lightning_that_resumes_needs_the_ledger_of_before(tmp_path):
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    first = WatchCallback()
    fit(lightning, tmp_path, 2, first, classifier(lightning)).save_checkpoint(tmp_path / "half.ckpt")
    first.ledger.save(tmp_path / "ledger.json")

    unseen = WatchCallback()
    fit(lightning, tmp_path, 4, unseen, classifier(lightning), tmp_path / "half.ckpt")
    assert facts.STEPS_BEFORE in unseen.ledger.faults
    assert unseen.ledger.start.trainer_step == 12

    known = WatchCallback(continues=tmp_path / "ledger.json")
    fit(lightning, tmp_path, 4, known, classifier(lightning), tmp_path / "half.ckpt")
    assert known.ledger.mechanism().steps == 24
    assert known.ledger.mechanism().noise_multiplier == NOISE


@pytest.mark.filterwarnings("ignore")
def test_one_callback_for_two_fits_counts_both(tmp_path):
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    model, optimizer, loader, criterion = private()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model

        def training_step(self, batch, index):
            return criterion(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return optimizer

        def train_dataloader(self):
            return loader

    seen, module = WatchCallback(), Module()
    for _ in range(2):
        lightning.Trainer(
            max_epochs=1, callbacks=[seen], accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        ).fit(module)  # fmt: skip
    assert seen.ledger.mechanism().steps == 12


@pytest.mark.filterwarnings("ignore")
def test_seed_everything_is_public(tmp_path):
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    seen, module = WatchCallback(), classifier(lightning)
    lightning.seed_everything(42)
    fit(lightning, tmp_path, 1, seen, module)
    torch.seed()
    assert {facts.PUBLIC_SEED, facts.PUBLIC_DRAWS} <= set(seen.ledger.faults)


@pytest.mark.filterwarnings("ignore")
def test_weight_averaging_of_lightning_fails_inside_opacus(tmp_path):
    """It copies the Trainer's optimizers, and Opacus's cannot be copied; docs/howto/lightning.md says so."""
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    averaging = lightning.pytorch.callbacks.StochasticWeightAveraging(swa_lrs=1e-2, swa_epoch_start=1)
    with pytest.raises(AttributeError, match="original_optimizer"):
        fit(lightning, tmp_path, 4, WatchCallback(), classifier(lightning), callbacks=[averaging])
