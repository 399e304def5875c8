"""The callbacks inside the real Trainer of Hugging Face and the real Trainer of Lightning."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent.mechanism.watch_faults import Fault
from reticent.mechanism.watched_run import Drawn
from tests.watch.loops import BATCH, NOISE, RATE, RECORDS, network, records

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
    return get_peft_model(DistilBertForSequenceClassification(config), lora)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("poisson", [True, False])
def test_a_transformer_with_lora_ends_in_a_certificate(tmp_path, poisson):
    pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    from reticent.watch.huggingface import WatchCallback

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
    trainer.train()
    found = seen.ledger
    assert found.num_parameters == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert (found.steps, found.clipping.largest) == (12, 0.5)
    assert found.sampler.drawn is (Drawn.POISSON if poisson else Drawn.SHUFFLED)
    assert not any(fault.voids for fault in found.faults), found.faults
    assert Fault.OTHER_BATCHES not in found.faults
    run = found.mechanism()
    assert run.noise_multiplier == NOISE
    assert run.sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen, subject="a tiny transformer").verify().accepted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("poisson", [True, False])
def test_lightning_ends_in_a_certificate(tmp_path, poisson):
    lightning = pytest.importorskip("lightning")
    from reticent.watch.lightning import WatchCallback

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
    assert Fault.OTHER_BATCHES not in found.faults
    assert found.mechanism().sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert rt.certify(seen).verify().accepted
