"""Limits on the gradients of a public pool, in the trainer: by naive gradients, at the edge, certified and refused.

Theorems: RETICENT:spread-gradients.
"""

from __future__ import annotations

import json
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import dropout

from reticent.adversaries import Population
from reticent.adversaries.relaxed.population import Label
from reticent.certificates.build import certify_run, public
from reticent.certificates.document.schema import Certificate
from reticent.certificates.verify import verify
from reticent.kernel.adversaries.base import Method
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.training import Settings, train
from reticent.training.config import SpreadConfig
from reticent.training.spread import SpreadHook
from tests.sensitivity.cases import gradients_of
from tests.training.small import BASE, configured, records, stepped
from tests.watching.programs import Net

WIDE = {"mean_gradient": 1.0, "second_moment": 1.0, "pool": 20}
pytestmark = pytest.mark.usefixtures("quick_documents")

LIMITS = {"mean_gradient": 0.45, "second_moment": 0.5}
NETWORK = {"model": {"kind": "mlp", "widths": [4]}, "steps": 3, "noise_multiplier": 4.0, "learning_rate": 1e-3}


@pytest.fixture
def small():
    return records(np.random.default_rng(3).normal(size=(120, 5)), classes=2)


def network() -> nn.Module:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2))


def hooked(small, steps: int = 4, clip=0.5, model: nn.Module | None = None, **limits) -> tuple[SpreadHook, int]:
    """A hook after a run, and how many steps the run took."""
    hook = SpreadHook(SpreadConfig(**{**WIDE, **limits}), small)
    settings = Settings(2.0, clip, 0.5, 45.0, steps)
    features, labels = (torch.tensor(part[small.train]) for part in (small.features, small.labels))
    return hook, stepped(model or network(), settings, features, labels, hook, rate=1.0).steps


def naive(small, clip: float, pool: int) -> np.ndarray:
    """Clipped gradients of the first test records at the first weights, one backward pass each."""
    where = small.test[:pool]
    rows = gradients_of(network(), torch.tensor(small.features[where]), torch.tensor(small.labels[where])).numpy()
    return rows * np.minimum(1.0, clip / np.linalg.norm(rows, axis=1, keepdims=True)) / clip


@pytest.mark.parametrize("clip", [0.05, 0.5, 5.0])
def test_what_is_measured(small, clip: float) -> None:
    hook, _ = hooked(small, 1, clip)
    rows = naive(small, clip, 20)
    assert hook.spent[0] == pytest.approx(np.sum(rows.mean(axis=0) ** 2), rel=1e-3, abs=0)
    assert hook.largest == pytest.approx(np.linalg.svd(rows, compute_uv=False)[0] ** 2 / 20, rel=1e-3, abs=0)


def test_each_label_by_itself(small) -> None:
    hook, _ = hooked(small, 1, each_label=True)
    rows, labels = naive(small, 0.5, 20), small.labels[small.test[:20]]
    wanted = [np.sum(rows[labels == label].mean(axis=0) ** 2) for label in (0, 1)]
    assert hook.spent == pytest.approx(wanted, rel=1e-3, abs=0)


def test_a_run_ends_before_the_step_that_would_break_a_limit(small) -> None:
    free, steps = hooked(small)
    assert steps == 4
    assert free.spent[0] > 0.0
    mean = float(np.sqrt(free.spent[0] / 4))
    for limits in ({"mean_gradient": mean * 1.001}, {"second_moment": free.largest * 1.001}):
        assert hooked(small, **limits)[1] == 4
    assert hooked(small, mean_gradient=mean * 0.999)[1] == 3
    first, _ = hooked(small, 1)
    with pytest.raises(ParameterError, match="within the limits at the first step, got 'mean_gradient"):
        hooked(small, second_moment=first.largest * 0.99)


@pytest.fixture(scope="module")
def ledger(make_config, dataset, tmp_path_factory):
    """Of a run that held to the limits."""
    config, path = make_config(**NETWORK, spread={**WIDE, **LIMITS}), tmp_path_factory.mktemp("spread") / "run"
    return train(config, path, dataset=dataset).ledger


def test_the_run_is_the_same_with_and_without(make_config, dataset, tmp_path) -> None:
    asked = NETWORK | {"randomness": "reproducible"}
    plain = train(make_config(**asked), tmp_path / "plain", dataset=dataset).weights()
    watched = train(make_config(**asked, spread=WIDE), tmp_path / "watched", dataset=dataset).weights()
    assert all(torch.equal(plain[name], watched[name]) for name in plain)


def statuses(attacker: Population, ledger) -> dict[str, Status]:
    found = assess_seen(attacker, ledger.mechanism(), Neighbouring.ADD_REMOVE, Method.EXACT, ledger)
    return {one.key: one.status for one in found.proofs[0].conditions}


def test_what_a_run_establishes(ledger) -> None:
    assert ledger.steps == 3
    wide, label = {key: value + 0.01 for key, value in LIMITS.items()}, {"record_label": Label.KNOWN}
    declared = [label, *({key: value - 0.01} for key, value in LIMITS.items())]
    cases = ((LIMITS, Status.CHECKED), (wide, Status.CHECKED), *((one, Status.DECLARED) for one in declared))
    for stated, status in cases:
        assert statuses(Population(**LIMITS | stated), ledger)["spread-gradients"] is status
    assert statuses(Population(**LIMITS), ledger)["one-of-the-pool"] is Status.ASSUMED
    assert ledger.model_copy(update={"config": {**ledger.config, "spread": None}}).spread is None


def test_a_certificate_keeps_it(ledger) -> None:
    written = public(certify_run(ledger))
    assert verify(written).accepted
    (found,) = (one for one in written.assessments if one.adversary == "population")
    assert {one.key: one.status for one in found.conditions}["spread-gradients"] is Status.CHECKED
    document = json.loads(written.to_json())
    (stated,) = (one for one in document["assessments"] if one["adversary"] == "population")
    stated["parameters"]["mean_gradient"] *= 0.5
    assert not verify(Certificate.parse(document)).accepted


def test_refused(small, make_config, dataset, tmp_path) -> None:
    clashing = (
        {"clipping": "normalise"},
        {
            "final_model": True,
            "data": BASE["data"] | {"normalise_features": True},
            "sample_rate": 1.0,
            "batch_size": None,
        },
        {"schedule": [{"at": 1, "noise_multiplier": 3.0}]},
        {"augmentation": {"times": 2}},
        {"sampler": "random-allocation"},
        {"records_per_user": 2},
    )
    for other in clashing:
        with pytest.raises(ArtifactError, match="spread goes with"):
            configured(spread=WIDE, **other)
    for wrong in ({"pool": 31}, {"pool": 2, "each_label": True}):
        lonely = records(small.features, classes=4)
        with pytest.raises(ParameterError, match=r"spread\.pool"):
            SpreadHook(SpreadConfig(**{**WIDE, **wrong}), lonely)
    with pytest.raises(UnsupportedError, match="random"):
        hooked(small, model=nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.5)))
    calls = count()  # what looks at the model before it trains sees no draw
    later = Net(lambda net, x: dropout(net.only(x), 0.5 * (next(calls) > 4)), only=nn.Linear(5, 2))
    with pytest.raises(RuntimeError, match="randomness"):
        hooked(small, model=later)
    with pytest.raises(UnsupportedError, match="SpreadHook cannot be resumed"):
        train(make_config(**NETWORK, spread=WIDE), tmp_path / "r", dataset=dataset, checkpoint=tmp_path / "kept")
