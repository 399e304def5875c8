"""LoRA on a small transformer and generated sentences: ``python -m experiments.utility.text``; minutes, no download.

Sentences praise or blame; "not" turns them round. The transformer, a configuration of DistilBERT with 2 layers, first
learns from sentences about films, which are public. Sentences about meals, some of whose words films never have, are
private: only the LoRA matrices learn from them. Nobody wrote the sentences, so no licence and no person stands behind
them. Settings were chosen on another draw of sentences (seed 2).
"""

from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from experiments.utility.settings import DELTA, RESULTS, SEEDS
from reticent.adversaries import Relaxed
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.data import Dataset
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.tasks import write_json
from reticent.training import parse_config, train

TOPICS = {
    "films": ("film actor plot scene", "fine great moving clever", "dull weak flat slow"),
    "meals": ("soup bread cook table", "fine great fresh tender", "dull weak burnt salty"),
}
FILLERS = ["the", "a", "this", "was", "seemed", "really", "quite", "and", "i", "thought", "we", "found", "it"]
WORDS = ["", "not", *FILLERS, *dict.fromkeys(w for topic in TOPICS.values() for group in topic for w in group.split())]
LENGTH, PRIVATE, TEST, STEPS, RATE, TARGET = 12, 4000, 2000, 100, 0.05, 0.1


def corpus(topic: str, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sentences as positions in WORDS, float32 (size, 12), 0 behind the end; 1 for praise."""
    rng, (subjects, good, bad) = np.random.default_rng(seed), (group.split() for group in TOPICS[topic])
    rows, labels = np.zeros((size, LENGTH), dtype=np.float32), rng.integers(0, 2, size)
    for row, praise in zip(rows, labels, strict=True):
        turned = rng.random() < 0.3
        said = [*rng.choice(FILLERS, rng.integers(1, 5)), rng.choice(subjects), *(["not"] if turned else [])]
        said += [*rng.choice(FILLERS, rng.integers(0, 2)), rng.choice(good if praise != turned else bad)]
        row[: len(said)] = [WORDS.index(word) for word in said]
    return rows, labels


@cache
def after_films() -> DistilBertForSequenceClassification:
    """The transformer after three passes over public sentences, without noise."""
    rows, labels = (torch.from_numpy(array) for array in corpus("films", PRIVATE, seed=1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"vocab_size": len(WORDS), "max_position_embeddings": LENGTH, "dim": 32, "hidden_dim": 64}
        none = {"dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0}
        model = DistilBertForSequenceClassification(DistilBertConfig(n_layers=2, n_heads=2, **sizes, **none))
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for batch in torch.cat([torch.randperm(PRIVATE) for _ in range(3)]).split(100):
            optimizer.zero_grad()
            answer(model, rows[batch], labels[batch]).loss.backward()
            optimizer.step()
    return model


def answer(model, rows, labels=None):
    """What a transformer says about sentences."""
    return model(input_ids=rows.long(), attention_mask=(rows != 0).long(), labels=labels)


class Lora(torch.nn.Module):
    """The transformer after the films, its weights fixed, with LoRA on its linear layers."""

    def __init__(self, feature_shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        layers = ["q_lin", "v_lin", "out_lin", "lin1", "lin2", "pre_classifier", "classifier"]
        self.inner = get_peft_model(deepcopy(after_films()), LoraConfig(r=4, lora_alpha=8, target_modules=layers))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return answer(self.inner, rows).logits


def meals() -> Dataset:
    """Private sentences, and others to judge."""
    rows, labels = corpus("meals", PRIVATE + TEST, seed=4)
    places = np.arange(len(rows))
    return Dataset("own", "generated", rows, labels, 2, train=places[:PRIVATE], test=places[PRIVATE:])


def accuracy(records: Dataset, noise: float, seed: int, **changes: object) -> float:
    """On the test sentences."""
    document = {
        "data": {"name": "own"},
        "model": "experiments.utility.text:Lora",
        "noise_multiplier": noise,
        "sample_rate": RATE,
        "divisor": RATE * PRIVATE,
        "steps": STEPS,
        "learning_rate": 2.0,
        "momentum": 0.9,
        "max_grad_norm": 0.3,
        "learning_rate_schedule": {"decay": "cosine"},
        "seed": seed,
        "randomness": "reproducible",
    }
    with TemporaryDirectory() as folder:
        run = train(parse_config(document | changes), Path(folder) / "run", dataset=records)
    return run.ledger.utility.test_accuracy


def main() -> None:
    """No noise, and what two attackers allow at the target; the true worst case beside each."""
    records, rows, run = meals(), [], DPSGD(1.0, RATE, STEPS)
    before = answer(after_films(), torch.tensor(records.features[records.test])).logits.argmax(dim=1)
    untrained = float((before.numpy() == records.labels[records.test]).mean())
    for rule, who in {"no noise": None, "worst case": WorstCase(), "one unknown sign": Relaxed()}.items():
        noise = calibrate(run, NoiseMultiplier(), Advantage(TARGET), who).value if who else 0.0
        row = {"rule": rule, "noise": noise, "accuracy": [accuracy(records, noise, seed) for seed in SEEDS]}
        if who:
            (worst,) = assess(DPSGD(noise, RATE, STEPS), (WorstCase(),))
            row["worst_advantage"] = worst.measure(advantage).value
            row["worst_epsilon"] = worst.measure(lambda curve: epsilon_at_delta(curve, DELTA)).value
        rows.append(row)
        print(row, flush=True)
        write_json(RESULTS / "text.json", {"before": untrained, "rows": rows})


if __name__ == "__main__":
    main()
