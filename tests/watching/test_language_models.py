"""Causal language models with LoRA: what a watch says of loops of Opacus and of TRL's trainers; numbers of the page."""

from __future__ import annotations

import re

import pytest
import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from scipy.stats import binom
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.kernel.proofs import Status
from tests.docs.follow import ROOT

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the libraries take seconds
LETTERS, LENGTH, NOISE, DELTA = 40, 16, 1.1, 1e-5
PAGE = (ROOT / "docs/howto/language-models.md").read_text(encoding="utf-8")


def adapted(kind="llama", dtype=torch.float32, vocabulary=LETTERS, length=LENGTH):
    """A model of two layers with LoRA; nothing is downloaded."""
    ends = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    if kind == "gpt2":
        off = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        config = transformers.GPT2Config(n_positions=length, n_embd=16, n_layer=2, n_head=2, **off, **ends)
        model, layers = transformers.GPT2LMHeadModel(config), ["c_attn"]
    else:
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.LlamaConfig(max_position_embeddings=length, **sizes, **ends)
        model, layers = transformers.LlamaForCausalLM(config), ["q_proj", "v_proj"]
    lora = peft.LoraConfig(r=2, target_modules=layers, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model.to(dtype), lora).train()
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)


def spent(noise, rate, steps, records=1):
    """Epsilon by dp_accounting, of all records of one person: the number of their coins that come up is binomial."""
    if records == 1:
        step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    else:
        many = range(records + 1)
        shares = binom.pmf(many, records, rate)
        step = dp_event.MixtureOfGaussiansDpEvent(noise, [float(n) for n in many], [*(shares / shares.sum())])
    return PLDAccountant().compose(dp_event.SelfComposedDpEvent(step, steps)).get_epsilon(DELTA)


def claimed(what):
    (found,) = rt.assess(what, ["worst-case"])
    return found.measure(rt.epsilon_at_delta, DELTA).value


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_loop_with_lora_has_the_noise_that_was_set(kind, mode, dtype):
    model, optimizer = adapted(kind, dtype)
    rows = torch.randint(LETTERS, (120, LENGTH))
    ghost = {"grad_sample_mode": "ghost", "criterion": torch.nn.CrossEntropyLoss()} if mode == "ghost" else {}
    model, optimizer, *criterion, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(rows, batch_size=20),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        **ghost,
    )
    rt.secure_noise(optimizer)
    with (
        rt.watch(model, optimizer, loader, records_per_user=1) as seen,
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts,
    ):
        for batch in parts:
            optimizer.zero_grad()
            logits, targets = model(input_ids=batch).logits[:, :-1].float(), batch[:, 1:]
            if criterion:
                loss = criterion[0](logits.flatten(0, 1), targets.flatten(), shape=targets.shape)
            else:
                loss = cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(1).mean()
            loss.backward()
            optimizer.step()
    ledger = seen.ledger
    assert {*ledger.faults} == {facts.BASE_MODEL, facts.SIZE_PUBLIC}
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    assert claimed(ledger) == pytest.approx(spent(NOISE, 1 / 6, 6), rel=1e-3, abs=0)
    (found,) = rt.assess(ledger, ["worst-case"])
    assert {one.key: one.status for one in found.conditions}["base-model"] is Status.ASSUMED


def test_the_numbers_of_the_page_are_those_of_another_library():
    """The second one counts all sequences of one person; it says little, and is above two by far."""
    people, sequences, steps = (
        int(one) for one in re.findall(r"(\d+) persons with (\d+) sequences, (\d+) steps", PAGE)[0]
    )
    noise, batch, most = 2.0, 30, int(re.findall(r"all (\d+) of one person are protected", PAGE)[0])
    one, all_, person = (float(one) for one in re.findall(r"^\| .* \| epsilon ([\d.]+) \|$", PAGE, re.MULTILINE))
    rate = 1 / -(-people // batch)
    assert person == pytest.approx(spent(noise, rate, steps), rel=1e-3, abs=0)
    assert one == pytest.approx(spent(noise, batch / sequences, steps), rel=1e-3, abs=0)
    assert all_ == pytest.approx(spent(noise, batch / sequences, steps, most), rel=5e-3, abs=0)


def each_record(outputs, labels, num_items_in_batch=None):
    """The mean over a record's tokens, then over records."""
    targets = labels[:, 1:]
    losses = cross_entropy(outputs.logits[:, :-1].transpose(1, 2), targets, ignore_index=-100, reduction="none")
    known = targets != -100
    return ((losses * known).sum(1) / known.sum(1).clamp(min=1)).mean()


class Private:
    """What a trainer of TRL needs beside its own loop: a private optimizer, and the private loader."""

    def get_train_dataloader(self):
        if getattr(self, "private", None) is None:
            plain = DataLoader(self.train_dataset, batch_size=8, collate_fn=self.data_collator, shuffle=True)
            moved = [p for p in self.model.parameters() if p.requires_grad]
            _, self.optimizer, self.private = PrivacyEngine().make_private(
                module=self.model,
                optimizer=torch.optim.SGD(moved, lr=0.1),
                data_loader=plain,
                noise_multiplier=NOISE,
                max_grad_norm=1.0,
                wrap_model=False,
            )
            rt.secure_noise(self.optimizer)
        return self.accelerator.prepare(self.private)


def by_trl(folder, kind, options, **more):
    """The ledger of a training."""
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    from reticent.watching.huggingface import WatchCallback

    class Forget(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            trainer.optimizer.zero_grad()

    tokenizer = transformers.ByT5Tokenizer()
    rows = [{"text": f"letter {n} of person {n // 4}" + "!" * (n % 5)} for n in range(80)]
    if kind == "DPO":
        rows = [{"prompt": f"question {n} ", "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(80)]
    base, configuration = getattr(trl, f"{kind}Trainer"), getattr(trl, f"{kind}Config")
    seen = WatchCallback()
    settings = {"report_to": [], "save_strategy": "no", "use_cpu": True, "num_train_epochs": 1, "disable_tqdm": True}
    settings |= {"per_device_train_batch_size": 8, "bf16": False, "gradient_checkpointing": False, "max_length": 64}
    trainer = type("Trained", (Private, base), {})(
        model=adapted(vocabulary=len(tokenizer), length=256)[0],
        args=configuration(output_dir=str(folder), **{**settings, **options}),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
        callbacks=[Forget(), seen],
        **more,
    )
    trainer.get_train_dataloader()
    torch.seed()  # the Trainer seeds with 42
    trainer.train()
    return seen.ledger


@pytest.mark.parametrize(
    ("kind", "options", "more", "causes"),
    [
        ("SFT", {}, {}, ("mean",)),
        ("SFT", {}, {"compute_loss_func": each_record}, None),
        ("SFT", {"packing": True}, {}, ("batch",)),
        ("SFT", {"packing": True, "packing_strategy": "wrapped"}, {"compute_loss_func": each_record}, ("batch",)),
        ("SFT", {"padding_free": True, "max_length": None}, {}, ("batch",)),
        ("DPO", {}, {}, ("loss",)),
    ],
)
def test_trainers_of_trl(tmp_path, kind, options, more, causes):
    """A batch in one row, behind a loader of accelerate, counted with all of its noise."""
    ledger = by_trl(tmp_path, kind, options, **more)
    assert ledger.facts.get("mixes-records") == causes
    assert facts.BASE_MODEL in ledger.faults
    assert (facts.LARGER_BATCH in ledger.faults) == (kind == "DPO")
    assert ledger.mechanism().noise_multiplier == (NOISE if causes is None else 0.0)
    if causes is None:
        assert {*ledger.faults} == {facts.BASE_MODEL, facts.SIZE_PUBLIC}
        assert ledger.mechanism().sample_rate == pytest.approx(0.1, rel=1e-12, abs=0)
