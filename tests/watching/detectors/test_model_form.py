"""What a watched loop of Opacus says about the form of its gradients, and everything that must not be believed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, TensorDataset

from reticent.kernel.proofs import Status
from reticent.mechanisms.gradients import Gradients, GradientsRecord, Obstacle
from reticent.records.ledger import RunLedger
from reticent.watching.session import Watch
from tests.watching.loops import Loop, Toy
from tests.watching.programs import BATCH, RECORDS, Made, private, reading

Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def plain(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(features), labels)


def data(columns: int = 4, seed: int = 0) -> TensorDataset:
    draw = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(RECORDS, columns, generator=draw), torch.arange(RECORDS) % 3)


class Changing(Dataset[Any]):
    """A data set that augments."""

    def __init__(self) -> None:
        self.inner = data()

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> Any:
        features, label = self.inner[index]
        return features + 0.1 * torch.randn(4), label


def head(outputs: int = 3, *, bias: bool = False) -> nn.Linear:
    return nn.Linear(4, outputs, bias=bias)


def frozen(*layers: nn.Module) -> list[nn.Module]:
    for layer in layers:
        layer.requires_grad_(False)
    return list(layers)


def watched(model: nn.Module, loss: Loss = plain, *, records: Any = None, **options: Any) -> RunLedger:
    """What is said of a loop whose optimizer decays the weights."""

    def made() -> Made:
        loop = private(reading(records or data()), model=model, **options)
        loop[1].param_groups[0]["weight_decay"] = 0.01
        return loop

    def backward(toy: Toy) -> None:
        if options.get("mode") == "ghost":
            toy.criterion(toy.model(toy.features), toy.labels).backward()
        else:
            loss(toy.model, toy.features, toy.labels).backward()

    torch.seed()  # noise that has a known seed is none
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen, _ = Loop(made=made, backward=backward).watched()
    return seen.ledger


def form(*args: Any, **options: Any) -> GradientsRecord:
    found = watched(*args, **options).gradients
    assert found is not None
    return found


class TestRecognised:
    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_a_linear_model_on_tensors(self, mode: str) -> None:
        ledger = watched(head(), mode=mode)
        assert ledger.gradients == GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=4, features="same")
        assert ledger.vouches()["linear-head"] is Status.CHECKED
        assert ledger.vouches()["same-features"] is Status.DECLARED  # what was done to them before, nobody saw
        assert RunLedger.model_validate(ledger.public()).gradients == ledger.gradients

    def test_a_head_on_frozen_features(self) -> None:
        backbone = frozen(nn.Linear(4, 6), nn.LayerNorm(6))
        found = form(nn.Sequential(*backbone, nn.ReLU(), nn.Linear(6, 3, bias=False)))
        assert (found.kind, found.dimension, found.features) == (Gradients.LINEAR_HEAD, 6, "same")


class TestNotBelieved:
    @pytest.mark.parametrize(
        ("model", "obstacle"),
        [
            (nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), Obstacle.NETWORK),
            (head(bias=True), Obstacle.BIAS),
            (nn.Sequential(nn.Dropout(0.2), head()), Obstacle.RANDOM_FEATURES),
        ],
    )
    def test_what_is_in_the_way(self, model: nn.Module, obstacle: Obstacle) -> None:
        found = form(model)
        assert (found.kind, found.obstacle) == (Gradients.ANY, obstacle)

    @pytest.mark.parametrize(("mode", "clipping"), [("ghost", "flat"), ("hooks", "per_layer"), ("ew", "flat")])
    def test_gradients_that_are_taken_another_way(self, mode: str, clipping: str) -> None:
        found = form(head(), mode=mode, clipping=clipping)
        assert (found.kind, found.obstacle) == (Gradients.ANY, Obstacle.CLIPPING)

    def test_dropout_that_is_switched_on_later(self) -> None:
        dropout = nn.Dropout(0.2).eval()

        def later(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            loss = plain(model, features, labels)
            dropout.train()
            return loss

        model = nn.Sequential(dropout, head())
        model.train = lambda mode=True: model  # type: ignore[method-assign]
        assert form(model, later).obstacle is Obstacle.RANDOM_FEATURES

    def test_a_layer_that_is_used_twice(self) -> None:
        def twice(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return cross_entropy(model(features) + model(features.flip(1)), labels)

        assert form(head(), twice).obstacle is Obstacle.SHARED_FORM

    def test_several_vectors_of_a_record(self) -> None:
        draw = torch.Generator().manual_seed(0)
        records = TensorDataset(torch.randn(RECORDS, 2, 4, generator=draw), torch.arange(RECORDS) % 3)

        def pooled(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return cross_entropy(model(features).tanh().sum(dim=1), labels)

        assert form(head(), pooled, records=records).obstacle is Obstacle.SHARED_FORM

    def test_features_that_the_loop_changes(self) -> None:
        """Augmentation, or an adversary that follows the weights, between the loader and the model."""

        def moved(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return plain(model, features + 1e-6, labels)

        found = form(head(), moved)
        assert (found.kind, found.features) == (Gradients.LINEAR_HEAD, "not-seen")

    def test_a_data_set_that_may_augment(self) -> None:
        ledger = watched(head(), records=Changing())
        assert ledger.gradients is not None
        assert ledger.gradients.features == "not-seen"
        assert "same-features" not in ledger.vouches()

    def test_records_that_were_changed_along_the_way(self) -> None:
        records = data()

        def moving(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            loss = plain(model, features, labels)
            records.tensors[0].mul_(1.01)
            return loss

        assert form(head(), moving, records=records).features == "not-seen"


def test_other_loops_were_not_looked_at() -> None:
    model = head()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, DataLoader(data(), batch_size=BATCH)) as watch:
        optimizer.step()
        watch.step(noise_multiplier=1.0)
    assert watch.ledger.gradients is None
