"""The callback inside the real Trainer of Hugging Face."""

from __future__ import annotations

import warnings

import pytest
import torch
from opacus import PrivacyEngine

import reticent as rt
from reticent import facts
from reticent.facts.steps import Drawn
from reticent.kernel.errors import ArtifactError, ParameterError
from tests.watching.loops import most_that_fits
from tests.watching.programs import NOISE, RATE, RECORDS, network, reading, records

transformers = pytest.importorskip("transformers")
TOKENS, NORM = 5, 0.5
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the library takes a quarter of a minute


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
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    config = transformers.DistilBertConfig(
        vocab_size=30, dim=8, hidden_dim=16, n_layers=1, n_heads=2, max_position_embeddings=8, num_labels=2
    )
    lora = peft.LoraConfig(r=2, target_modules=["q_lin", "v_lin"], modules_to_save=[])
    model = peft.get_peft_model(transformers.DistilBertForSequenceClassification(config), lora)
    torch.seed()
    return model


class Rows(torch.utils.data.Dataset):
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


def trained(folder, callback, model=None, data=None, *, epochs=2, reseed=True, poisson=True, prepared=True, **options):
    """A Trainer with a private optimizer that is seeded from the operating system, unless told otherwise."""
    model, data = (model or tiny_transformer()).train(), data or Sentences()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9),
            data_loader=reading(data),
            noise_multiplier=NOISE,
            max_grad_norm=NORM,
            poisson_sampling=poisson,
            wrap_model=False,
        )

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loader) if prepared else loader

    class Forget(transformers.TrainerCallback):
        """The Trainer clears the model's gradients, Opacus's optimizer must clear those of single records."""

        def on_step_end(self, args, state, control, **kwargs):
            optimizer.zero_grad()

    settings = {"save_strategy": "no", "report_to": [], "use_cpu": True, "disable_tqdm": True} | options
    trainer = Trainer(
        model=model,
        args=transformers.TrainingArguments(output_dir=str(folder), num_train_epochs=epochs, **settings),
        train_dataset=data,
        eval_dataset=data,
        optimizers=(optimizer, None),
        callbacks=[Forget(), callback],
    )
    if reseed:
        torch.seed()  # the Trainer seeds with 42
    return trainer


def seeing(**options):
    from reticent.watching.huggingface import WatchCallback

    return WatchCallback(**options)


@pytest.mark.parametrize("poisson", [True, False])
def test_a_transformer_with_lora_ends_in_a_certificate(tmp_path, poisson):
    seen = seeing()
    trainer = trained(tmp_path, seen, poisson=poisson)
    trainer.train()
    found = seen.ledger
    assert found.num_parameters == sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    assert (found.steps, found.clipping.largest) == (12, NORM)
    assert found.sampler.drawn is (Drawn.POISSON if poisson else Drawn.SHUFFLED)
    assert not any(fault.voids for fault in found.faults), found.faults
    assert facts.OTHER_BATCHES not in found.faults
    assert found.mechanism().noise_multiplier == NOISE
    assert found.mechanism().sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen, subject="a tiny transformer").verify().accepted


def test_a_trainer_that_resumes_needs_the_ledger_of_before(tmp_path):
    """12 of 24 steps were in no ledger."""
    first = seeing()
    trained(tmp_path, first, save_strategy="epoch").train()
    first.ledger.save(tmp_path / "ledger.json")
    (tmp_path / "checkpoint-12" / "rng_state.pth").unlink()  # else the batches after it are drawn from a known state
    unseen, known = seeing(), seeing(continues=tmp_path / "ledger.json")
    for callback in (unseen, known):
        trainer = trained(tmp_path, callback, save_strategy="epoch", epochs=4)
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-12"))
    assert facts.STEPS_BEFORE in unseen.ledger.faults
    assert unseen.ledger.start.trainer_step == 12
    assert unseen.ledger.mechanism().noise_multiplier == 0.0
    assert known.ledger.mechanism().steps == 24
    assert known.ledger.mechanism().noise_multiplier == NOISE


def test_one_callback_for_two_trainings_counts_both(tmp_path):
    seen = seeing()
    trainer = trained(tmp_path, seen)
    trainer.train()
    trainer.train()
    assert seen.ledger.mechanism().steps == 24
    assert seen.ledger.mechanism().noise_multiplier == NOISE


def test_a_training_that_was_broken_off_is_left(tmp_path):
    """The Trainer tells its callbacks nothing; the next training counts the steps of both."""

    class Breaks(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 5:
                raise KeyboardInterrupt

    seen = seeing()
    trainer = trained(tmp_path, seen)
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


def test_the_best_epoch_that_a_trainer_puts_back(tmp_path):
    """It saves and loads by ``state_dict``; all steps count."""
    seen, scores = seeing(), iter((1.0, 0.5))
    how = dict.fromkeys(("save_strategy", "eval_strategy"), "epoch")
    best = {"load_best_model_at_end": True, "metric_for_best_model": "score", "greater_is_better": True}
    trainer = trained(tmp_path, seen, **how, **best)
    trainer.compute_metrics = lambda _: {"score": next(scores)}
    trainer.train()
    assert facts.PUT_BACK in seen.ledger.faults
    assert not any(fault.voids for fault in seen.ledger.faults)
    assert seen.ledger.mechanism().steps == 12
    seen.save(tmp_path / "ledger.json")
    with pytest.raises(ArtifactError, match="already exists"):
        seen.save(tmp_path / "ledger.json")


def test_the_seed_of_the_trainer_is_public(tmp_path):
    seen = seeing()
    trained(tmp_path, seen, reseed=False).train()
    assert {facts.PUBLIC_SEED, facts.PUBLIC_DRAWS} <= set(seen.ledger.faults)


def test_the_trainer_ends_at_a_risk_and_prints_it_with_the_loss(tmp_path):
    printed: list[dict] = []

    class Prints(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            printed.append(dict(logs))

    seen = seeing(stop_at="advantage=0.3")
    trainer = trained(tmp_path, seen, Net(), Rows(), epochs=100, prepared=False, logging_steps=5)
    trainer.add_callback(Prints())
    trainer.train()
    assert most_that_fits(seen.ledger, 0.3)
    with_loss = [line for line in printed if "loss" in line]
    assert with_loss
    assert all(0.0 < line["privacy_advantage"] <= 0.3 for line in with_loss)
