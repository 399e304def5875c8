"""Which kind of gradients a model has: what is recognised, and everything that must not be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from reticent.data import ColumnGroup, ColumnKind
from reticent.data.own import load_table
from reticent.kernel.errors import ParameterError
from reticent.mechanisms.gradients import Gradients, Obstacle
from reticent.training import train
from reticent.training.features import normalised
from reticent.training.model_form import Head, gradients_record, head_of, least_squared_norm


def frozen(*layers: nn.Module) -> list[nn.Module]:
    for layer in layers:
        for p in layer.parameters():
            p.requires_grad_(False)
    return list(layers)


def plain_head(outputs: int = 3) -> nn.Linear:
    return nn.Linear(4, outputs, bias=False)


class Elsewhere(nn.Module):
    """A model whose forward pass nobody can read off its layers."""

    def __init__(self, *_: object) -> None:
        super().__init__()
        self.head = plain_head()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x * self.head.weight.detach().sum())


class Twice(nn.Module):
    def __init__(self, *_: object) -> None:
        super().__init__()
        self.head = nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.head(x)))


class TestLayers:
    @pytest.mark.parametrize(
        ("model", "obstacle"),
        [
            (nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), Obstacle.NETWORK),
            (nn.Conv2d(1, 2, 3), Obstacle.NETWORK),
            (nn.Sequential(nn.LayerNorm(4), plain_head()), Obstacle.NETWORK),
            (nn.Sequential(*frozen(plain_head())), Obstacle.NETWORK),
            (weight_norm(plain_head()), Obstacle.NETWORK),
            (nn.Sequential(nn.Dropout(0.1), plain_head()), Obstacle.RANDOM_FEATURES),
            (nn.Sequential(*frozen(nn.BatchNorm1d(4)), plain_head()), Obstacle.RANDOM_FEATURES),
            (nn.Sequential(nn.RReLU(), plain_head()), Obstacle.RANDOM_FEATURES),
            (nn.Sequential(nn.FractionalMaxPool2d(2, 3), nn.Flatten(), plain_head()), Obstacle.RANDOM_FEATURES),
        ],
    )
    def test_what_is_in_the_way(self, model: nn.Module, obstacle: Obstacle) -> None:
        assert head_of(model) is obstacle

    def test_dropout_and_batch_statistics_that_are_off_are_not_in_the_way(self) -> None:
        for layer in (nn.Dropout(0.1), *frozen(nn.BatchNorm1d(4))):
            model = nn.Sequential(layer.eval(), plain_head())
            form = head_of(model)
            assert isinstance(form, Head)
            assert not form.known  # not of the kinds whose modes cannot change
        assert isinstance(head_of(nn.Sequential(nn.Dropout(0.0), plain_head())), Head)

    def test_a_head_on_frozen_features(self) -> None:
        backbone = frozen(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2))
        form = head_of(nn.Sequential(nn.Sequential(*backbone, nn.ReLU()), nn.Flatten(), plain_head()))
        assert isinstance(form, Head)
        assert (form.known, form.last, form.first, form.bias) == (True, True, False, False)

    def test_what_is_written_by_somebody_else_is_not_known(self) -> None:
        exchanged = nn.Sequential(nn.Flatten(), plain_head())
        exchanged[0].forward = lambda x: x + torch.rand_like(x)  # type: ignore[method-assign]
        hooked = nn.Sequential(nn.Flatten(), plain_head())
        hooked[0].register_forward_hook(lambda layer, given, out: out + torch.rand_like(out))
        shared = nn.Linear(4, 4, bias=False)
        inner = nn.Sequential(nn.Linear(4, 4, bias=False))
        twice = nn.Sequential(shared, nn.Tanh(), shared), nn.Sequential(inner, nn.Tanh(), inner)
        for model in (exchanged, hooked, Elsewhere(), *twice):
            form = head_of(model)
            assert isinstance(form, Head)
            assert not form.known
            record = gradients_record(form, same_features=True, hard_labels=True)
            assert record.features == "not-seen"
            assert record.kind is Gradients.LINEAR_HEAD  # though the labels are hard

    def test_a_frozen_bias_is_no_bias(self) -> None:
        layer = nn.Linear(4, 3)
        layer.bias.requires_grad_(False)
        form = head_of(layer)
        assert isinstance(form, Head)
        assert not form.bias


LONG, NORMAL = {"least_squared_norm": 9.0}, {"normalised": True}
HARD = {"same_features": True, "hard_labels": True}
OF_A_HEAD = {
    # (head, what is known, kind): a bias of unknown weight has none, and one of known weight is never fixed.
    "bias": (nn.Linear(4, 2), HARD, Gradients.ANY),
    "bias behind a backbone": (nn.Sequential(*frozen(nn.Linear(4, 4)), nn.Linear(4, 2)), HARD | LONG, Gradients.ANY),
    "bias of features of a length": (nn.Linear(4, 2), HARD | LONG, Gradients.ONE_DIRECTION),
    "normalised bias": (nn.Linear(4, 2), HARD | LONG | NORMAL, Gradients.ONE_DIRECTION),
    # A squared error pushes either way; only a likelihood with a hard label has one sign.
    "any loss": (plain_head(2), {"same_features": True}, Gradients.LINEAR_HEAD),
    "what the loss gets is behind": (nn.Sequential(plain_head(2), nn.Tanh()), HARD, Gradients.LINEAR_HEAD),
    "several labels": (plain_head(3), HARD | NORMAL, Gradients.HARD_LABEL_HEAD),
    "several labels and a bias": (nn.Linear(4, 3), HARD | LONG, Gradients.HARD_LABEL_HEAD),
    "several labels, any loss": (plain_head(3), {"same_features": True}, Gradients.LINEAR_HEAD),
    "two labels": (plain_head(2), HARD | NORMAL, Gradients.FIXED),
}


@pytest.mark.parametrize("name", OF_A_HEAD)
def test_the_kind_follows_from_the_head(name: str) -> None:
    model, known, kind = OF_A_HEAD[name]
    record = gradients_record(head_of(model), **known)
    assert record.kind is kind
    assert (record.obstacle is Obstacle.BIAS) == (kind is Gradients.ANY)
    assert (record.dimension is None) == (kind is Gradients.ANY)
    assert record.normalised is ("normalised" in known)
    if "bias" in name and kind is not Gradients.ANY:
        assert 0.1 < record.known_share < 0.1001


def trained(make_config, tmp_path, dataset=None, **changes):
    settings = {"steps": 1, "model": {"kind": "logistic", "bias": False}} | changes
    return train(make_config(**settings), tmp_path / "run", dataset=dataset).ledger


JOB = ColumnGroup("job", ColumnKind.ONE_HOT, (0, 1), ("a", "b"), np.eye(2, dtype=np.float32))
THREE_LONG = {"name": "breast-cancer", "normalise_features": 3.0}
SAME = {"one-direction", "same-features", "start-weights"}
KINDS = {
    "no bias": ({}, Gradients.ONE_DIRECTION, None, SAME),
    "normalised": ({"clipping": "normalise"}, Gradients.FIXED, None, {"fixed-length"}),
    "digits": ({"data": {"name": "digits"}}, Gradients.HARD_LABEL_HEAD, None, {"hard-label-head", "linear-head"}),
    "mlp": ({"model": {"kind": "mlp", "widths": [3]}}, Gradients.ANY, Obstacle.NETWORK, set()),
    "bias": ({"model": {"kind": "logistic"}}, Gradients.ANY, Obstacle.BIAS, set()),
    "one length": ({"model": {"kind": "logistic"}, "data": THREE_LONG}, Gradients.ONE_DIRECTION, None, set()),
}
SHARES = {"one length": 0.1}
"""Of a bias beside features of a length: it is bounded, rounded up."""


class TestRuns:
    @pytest.mark.parametrize("name", KINDS)
    def test_the_kind_follows_from_the_model(self, make_config, tmp_path, name) -> None:
        changes, kind, obstacle, vouched = KINDS[name]
        ledger = trained(make_config, tmp_path, **changes)
        form, known = ledger.gradients, set(ledger.vouches())
        assert (form.kind, form.obstacle) == (kind, obstacle)
        share = SHARES.get(name, 0.0)
        assert share <= form.known_share <= share * (1.0 + 1e-4)
        assert vouched <= known
        assert ("fixed-length" in known) == form.normalised == (name == "normalised")
        if name == "no bias":
            assert (form.features, form.dimension) == ("same", 30)

    def test_categories_bound_the_share_of_the_bias(self, make_config, tmp_path, dataset) -> None:
        """Each category is a 1 in one column, so the features of a person have a least length."""
        mine = replace(dataset, groups=(JOB, replace(JOB, name="town", columns=(2, 3))))
        config = make_config(model={"kind": "logistic"})
        assert least_squared_norm(mine, config, encoded_here=True) == 2.0
        assert least_squared_norm(mine, config, encoded_here=False) == 0.0
        features = make_config(data={"name": "adult", "features": {"kind": "random", "width": 4}})
        assert least_squared_norm(mine, features, encoded_here=True) == 0.0

    def test_records_that_were_handed_over_are_not_vouched_for(self, make_config, tmp_path, dataset) -> None:
        """Standardised by their own means, whether the configuration names a table all the same or not."""
        table = {"file": "a.csv", "file_sha256": "0" * 64, "schema_sha256": "0" * 64}
        rows = (dataset.features - dataset.features.mean(axis=0)).astype(np.float32)
        mine = replace(dataset, features=rows, groups=(JOB,))
        for name, data in (("a", {"name": "own"}), ("b", {"name": "own", "table": table})):
            ledger = trained(make_config, tmp_path / name, dataset=mine, data=data)
            assert (ledger.gradients.kind, ledger.gradients.features) == (Gradients.ONE_DIRECTION, "not-seen")
            assert "same-features" not in ledger.vouches()
            model = {"kind": "logistic"}
            biased = trained(make_config, tmp_path / f"{name}-biased", dataset=mine, model=model, data=data)
            assert biased.gradients.obstacle is Obstacle.BIAS

    def test_a_table_that_was_read_vouches_for_its_own_records(self, make_config, tmp_path) -> None:
        lines = [f"{x},{'no' if x < 20 else 'yes'}" for x in range(40)]
        (tmp_path / "t.csv").write_text("\n".join(["age,answer", *lines]) + "\n")
        table = load_table(tmp_path / "t.csv", "answer", {"age": {"low": 0, "high": 99}, "answer": ["no", "yes"]})
        told = {"file": table.file, "file_sha256": table.file_sha256, "schema_sha256": table.schema_sha256}
        moved = replace(table.dataset, features=table.dataset.features * np.float32(0.5))

        def config(said):
            data = {"name": "own", "table": said}
            return make_config(model={"kind": "logistic", "bias": False}, steps=1, batch_size=8, data=data)

        for name, records, seen in (("a", {"table": table}, "same"), ("b", {"dataset": moved}, "not-seen")):
            ledger = train(config(told), tmp_path / name, **records).ledger
            assert ledger.gradients.features == seen, name
        with pytest.raises(ParameterError, match=r"data\.table"):
            train(config(told | {"schema_sha256": "0" * 64}), tmp_path / "c", table=table)
        with pytest.raises(ParameterError, match=r"data\.table"):
            train(config(told), tmp_path / "c", dataset=moved, table=table)

    def test_views_have_no_kind(self, make_config, tmp_path, dataset) -> None:
        pictures = np.random.default_rng(0).normal(size=(80, 1, 4, 4)).astype(np.float32)
        mine = replace(dataset, features=pictures)
        views = {"augmentation": {"times": 2, "flips": True}, "data": {"name": "own"}}
        form = trained(make_config, tmp_path, dataset=mine, **views).gradients
        assert (form.kind, form.obstacle) == (Gradients.ANY, Obstacle.VIEWS)

    def test_a_model_of_ones_own(self, make_config, tmp_path, dataset) -> None:
        mine = replace(dataset, features=dataset.features[:, :4].copy())
        for model, kind, obstacle in (
            ("Twice", Gradients.ANY, Obstacle.SHARED_FORM),
            ("Elsewhere", Gradients.LINEAR_HEAD, None),
        ):
            name = f"{__name__}:{model}"
            ledger = trained(make_config, tmp_path / model, dataset=mine, data={"name": "own"}, model=name)
            assert (ledger.gradients.kind, ledger.gradients.obstacle) == (kind, obstacle)
            assert not {"start-weights", "same-features", "one-direction"} & set(ledger.vouches())


class TestOneLength:
    def test_every_record_gets_it(self, dataset) -> None:
        rows = dataset.features.copy()
        rows[0] = 0.0
        rows[1] *= 1e-38
        rows[2] *= 1e30
        found = normalised(replace(dataset, features=rows), 2.5)
        lengths = np.linalg.norm(found.features.astype(float), axis=1)
        assert lengths == pytest.approx(np.full(80, 2.5), rel=1e-6, abs=0)
        assert found.features[0].tolist() == [2.5, 0.0, 0.0, 0.0, 0.0]
        assert found.content_hash != dataset.content_hash
        assert normalised(found, 2.5) is found

    def test_records_that_do_not_have_it_are_refused(self, make_config, tmp_path, dataset) -> None:
        config = {"data": {"name": "own", "normalise_features": True}}
        forged = replace(dataset, notes=normalised(dataset, 1.0).notes, features=dataset.features * np.float32(0.01))
        for mine in (dataset, forged):
            with pytest.raises(ParameterError, match="one length"):
                trained(make_config, tmp_path, dataset=mine, **config)

    @pytest.mark.parametrize(("said", "meant"), [(True, 1.0), (False, None), (2, 2.0)])
    def test_true_is_one(self, make_config, said, meant) -> None:
        data = {"name": "breast-cancer", "normalise_features": said}
        assert make_config(data=data).data.normalise_features == meant
