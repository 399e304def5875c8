"""The recorder: same weights with and without, sums against a slow count, budget, approximate modes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from reticent.adversaries.attribute.adversary import Attribute
from reticent.kernel.adversaries.base import Claim, Method
from reticent.kernel.mechanisms import DPSGD
from reticent.mechanisms.mask_terms import mask_term, worst_mask_term
from reticent.mechanisms.sensitivity import Scope
from reticent.sensitivity import Diameter, GradientSensitivity, Precision, SensitiveAttribute, diameters
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.training.hooks import RunContext
from reticent.training.loop import fit
from reticent.training.randomness import SeededSource, Stream
from reticent.training.sensitive import AttributeHook
from reticent.training.settings import Settings
from tests.adversaries.attribute_simulation import PairTrace, simulate

NOISE, CLIP, RATE, STEPS = 1.3, 0.4, 0.2, 8
AGE = SensitiveAttribute.number(1, -1.0, 2.0, 5)


def _data():
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(30, 6)).astype(np.float32))
    return x, torch.from_numpy(rng.integers(0, 2, 30))


def _model() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def _train(hooks=(), steps: int = STEPS):
    model = _model()
    context = RunContext(Settings(NOISE, CLIP, RATE, divisor=6.0, steps=steps), model, *_data())
    sources = [SeededSource(5, stream) for stream in (Stream.SAMPLING, Stream.NOISE)]
    record = fit(context, lambda p: torch.optim.SGD(p, lr=0.5), *sources, hooks)
    return [p.detach().clone() for p in model.parameters()], record


def recorded(steps: int = STEPS, **how: object):
    """What is recorded of all training records in a run."""
    hook = AttributeHook(AGE, whole=True, **how)
    _train([hook], steps=steps)
    return hook.recorder.record()


def recorder_of(model: nn.Module, **how: object) -> AttributeRecorder:
    return AttributeRecorder(model, AGE, **{"noise_multiplier": NOISE, "max_grad_norm": CLIP, **how})


def test_weights_are_bit_identical_with_and_without():
    plain, _ = _train(steps=4)
    before = torch.get_rng_state()
    watched, _ = _train([AttributeHook(AGE, audit=np.arange(7))], steps=4)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


@pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:Full backward hook", "ignore:Optimal order")
def test_weights_are_bit_identical_in_an_opacus_loop_fed_by_the_global_generator():
    from opacus import PrivacyEngine

    def run(watch: bool) -> list[torch.Tensor]:
        torch.manual_seed(11)
        model = _model()
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*_data()), batch_size=6)
        model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=loader,
            noise_multiplier=NOISE,
            max_grad_norm=CLIP,
        )
        recorder = recorder_of(model)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            if watch:
                recorder.observe(x, y)
            optimizer.step()
        assert not watch or recorder.steps >= 4
        return [p.detach().clone() for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


class _SlowCount:
    """Keeps every step's distances of every training record, and sums at the end."""

    def start(self, context: RunContext) -> None:
        self.context, self.steps, self.drawn = context, [], []
        self.meter = GradientSensitivity(context.model, AGE, max_grad_norm=CLIP)

    def before_step(self, step) -> None:
        x, y = self.context.train_features, self.context.train_labels
        blocks = list(self.meter.blocks(x, y))
        self.steps.append((blocks[0].squared.numpy().copy(), blocks[0].norms.numpy().copy()))
        self.drawn.append(step.indices)

    def after_step(self, step, update) -> None: ...

    def finish(self) -> None:
        self.changes = np.array([s for s, _ in self.steps])
        self.masks = np.array([mask_term(a[:, :, None], a[:, None, :], np.sqrt(s), NOISE) for s, a in self.steps])


def test_sums_of_every_scope():
    slow, some = _SlowCount(), np.array([3, 9, 20])
    whole, chosen, drawn = (AttributeHook(AGE, **how) for how in ({"whole": True}, {"audit": some}, {}))
    _train([slow, whole, chosen, drawn])
    assert np.all(slow.masks <= worst_mask_term(np.sqrt(slow.changes), NOISE) * (1 + 1e-9) + 1e-15)
    everyone = whole.recorder.record()
    assert everyone.scope is Scope.WHOLE_DATA
    assert everyone.squared_change == pytest.approx(slow.changes.sum(0).max(), rel=1e-9, abs=0)
    assert everyone.mask_term == pytest.approx(slow.masks.sum(0).max(), rel=1e-9, abs=0)
    assert everyone.largest_mask_term == pytest.approx(slow.masks.max(), rel=1e-9, abs=0)
    some = chosen.recorder.record()
    assert some.scope is Scope.AUDIT_SET
    assert some.squared_change == pytest.approx(slow.changes.sum(0)[[3, 9, 20]].max(), rel=1e-9, abs=0)
    batch = drawn.recorder.record()
    largest = [s[d].max() if len(d) else 0.0 for s, d in zip(slow.changes, slow.drawn, strict=True)]
    assert batch.scope is Scope.SAMPLED_BATCH
    assert batch.published_squared_change == pytest.approx(sum(largest), rel=1e-9, abs=0)
    mine = np.zeros(30)
    for s, d in zip(slow.changes, slow.drawn, strict=True):
        mine[d] += s[d].max(axis=(1, 2))
    assert batch.squared_change == pytest.approx(mine.max(), rel=1e-9, abs=0)
    # CHERUBIN2024:B4: the record's own sum over all steps is not the published mixture.
    assert batch.squared_change < everyone.squared_change


def test_per_pair_is_at_most_per_record_and_memory_decides():
    x, y = _data()
    pairs, records = (recorder_of(_model(), audit=AuditSet(x, y, whole=True), memory=m) for m in (256 * 2**20, 5000))
    for recorder in (pairs, records):
        for _ in range(3):
            recorder.observe(x, y)
    assert pairs.record().squared_change <= records.record().squared_change * (1 + 1e-9)
    assert pairs.record().mask_term <= records.record().mask_term * (1 + 1e-9)


def test_a_budget_stops_before_it_is_exceeded_and_makes_a_bound():
    free = recorded()
    budget = 0.5 * free.mask_term
    hook = AttributeHook(AGE, whole=True, budget=budget)
    _, fitted = _train([hook])
    record = hook.recorder.record()
    assert 0 < fitted.steps == record.steps < STEPS
    assert record.mask_term <= budget < recorded(record.steps + 1).mask_term
    guaranteed = Attribute(record).assess(DPSGD(NOISE, RATE, record.steps, max_grad_norm=CLIP))
    assert guaranteed.claim is Claim.BOUND
    assert any("fixed in advance" in note for note in guaranteed.notes)
    unbudgeted = Attribute(free).assess(DPSGD(NOISE, RATE, STEPS, max_grad_norm=CLIP))
    assert unbudgeted.claim is Claim.ESTIMATE


def test_approximate_modes_are_never_on_the_unsafe_side():
    """CHERUBIN2024:B8, CHERUBIN2024:B9: the centroid bounds the diameter from above, so its security is lower."""
    exact = recorded()
    for how, most in (({"method": Diameter.CENTROID}, math.inf), ({"precision": Precision.SINGLE}, 1.001)):
        rough = recorded(**how)
        for name in ("squared_change", "mask_term", "largest_mask_term", "published_squared_change"):
            assert getattr(exact, name) <= getattr(rough, name) <= most * getattr(exact, name)
        mechanism = DPSGD(NOISE, RATE, STEPS, max_grad_norm=CLIP)
        risk = [Attribute(r).assess(mechanism, method=Method.PUBLISHED).curve.delta(0.0) for r in (exact, rough)]
        assert risk[1] >= risk[0]


def test_diameters_of_random_sets():
    rng = np.random.default_rng(0)
    lonely = np.array([[0.0]] * 9 + [[1.0]])
    for n, d in [(0, 0), *rng.integers((2, 1), (12, 6), (100, 2)).tolist()]:
        points = rng.normal(size=(n, d)) * rng.choice([1.0, 1e-3, 0.0, 5.0], size=(n, 1)) if n else lonely
        apart, off = ((points[:, None] - points) ** 2).sum(2), ((points - points.mean(0)) ** 2).sum(1)
        true, n = math.sqrt(float(apart.max())), len(points)
        assert float(diameters(torch.from_numpy(apart)[None], Diameter.EXACT)) == pytest.approx(true, rel=1e-12, abs=0)
        centroid = float(diameters(torch.from_numpy(off)[None], Diameter.CENTROID))
        assert true <= centroid <= true * 2 * (n - 1) / n * (1 + 1e-9)


def _of_slack(least: float) -> float:
    """By how much the mask term of two gradients grows at least where their square grows by ``least``."""
    return -2.0 * math.expm1(-0.5 * least / NOISE**2) * math.exp(-2.0 / NOISE**2)


@pytest.mark.parametrize("method", [Diameter.EXACT, Diameter.CENTROID])
def test_every_step_adds_its_slack(monkeypatch, method):
    """Squares known to 1e-3 of the squared clip norm only: each sum grows by that in each of the steps."""
    found, slack = [], 1e-3
    for by in (0.0, slack):
        monkeypatch.setattr("reticent.sensitivity.meter.slack", lambda *_, by=by: by)
        found.append(recorded(method=method))
    known, rough = found
    assert rough.squared_change >= known.squared_change + 0.999 * STEPS * slack
    assert rough.published_squared_change >= known.published_squared_change + 0.999 * STEPS * slack
    assert rough.mask_term >= known.mask_term + STEPS * _of_slack(slack)
    assert rough.largest_mask_term >= known.largest_mask_term + _of_slack(slack)


def test_a_budget_pays_the_slack_of_each_step_beforehand(monkeypatch):
    x, y = _data()
    spent = []
    for slack in (0.0, 1e-3):
        monkeypatch.setattr("reticent.sensitivity.meter.slack", lambda *_, by=slack: by)
        recorder = recorder_of(_model(), audit=AuditSet(x[:5], y[:5]), budget=10.0)
        assert recorder.observe(x, y)
        spent.append(recorder.record().mask_term)
        after = max(map(recorder._sums.after, recorder._meter.blocks(x[:5], y[:5])))
        assert after == pytest.approx(2.0 * spent[-1], rel=1e-9, abs=0)
    assert spent[1] >= spent[0] + _of_slack(1e-3)


def test_without_positions_the_sums_are_larger():
    x, y = _data()
    known, unknown = (recorder_of(_model()) for _ in range(2))
    for part in ([0, 1, 2], [2, 3], [], [0, 9]):
        known.observe(x[part], y[part], np.array(part, dtype=int))
        unknown.observe(x[part], y[part])
    assert known.steps == unknown.steps == 4
    first, second = known.record(), unknown.record()
    assert first.squared_change <= second.squared_change * (1.0 + 1e-9)
    assert first.published_squared_change == pytest.approx(second.published_squared_change, rel=1e-9, abs=0)
    assert known.largest_per_step[2] == 0.0


@pytest.mark.parametrize("audited", [False, True])
def test_steps_that_are_not_measured_count_with_the_most_that_clipping_allows(audited):
    """Steps 1 and 2 of each three; one of them is empty."""
    x, y = _data()
    some = recorder_of(_model(), every=3, audit=AuditSet(x[:4], y[:4]) if audited else None)
    one = recorder_of(_model(), audit=AuditSet(x[:4], y[:4]) if audited else None)
    one.observe(x[:4], y[:4], np.arange(4))
    for part in (range(4), range(2), []):
        assert some.observe(x[list(part)], y[list(part)], np.array(part, dtype=int))
    drawn = np.array([8.0] * 4 if audited else [4.0, 4.0, 0.0, 0.0])
    np.testing.assert_allclose(some.per_record(), one.per_record() + drawn, rtol=1e-9)
    assert some.record().largest_mask_term == worst_mask_term(2.0, NOISE)
    assert some.largest_per_step == [*one.largest_per_step, 2.0, 0.0]


def test_a_budget_is_kept_by_steps_that_are_not_measured():
    x, y = _data()
    recorder = recorder_of(_model(), every=2, audit=AuditSet(x[:4], y[:4]), budget=0.9 * worst_mask_term(2.0, NOISE))
    assert [recorder.observe(x, y), recorder.observe(x, y)] == [True, False]
    assert recorder.record().steps == 1


def test_attack_on_the_trace_of_a_real_run_stays_below_its_bound():
    """Likelihood ratio on noisy gradients of the recorded pair that moves most, sampling unknown."""
    steps = 40
    slow, hook = _SlowCount(), AttributeHook(AGE, whole=True)
    _train([slow, hook], steps=steps)
    z, i, j = np.unravel_index(slow.masks.sum(0).argmax(), slow.masks.shape[1:])
    norms = np.array([a for _, a in slow.steps])
    trace = PairTrace(norms[:, z, i], norms[:, z, j], np.sqrt(slow.changes[:, z, i, j]))
    attack, error = simulate(trace, NOISE, RATE, 4000, np.random.default_rng(0))
    record = hook.recorder.record()
    mechanism = DPSGD(NOISE, RATE, steps, max_grad_norm=CLIP)
    bound = float(Attribute(record).assess(mechanism).curve.delta(0.0))
    limit = float(Attribute(record).assess(mechanism, method=Method.CLT).curve.delta(0.0))
    assert attack <= bound + 3 * error
    assert attack == pytest.approx(limit, rel=0.15, abs=0)
    # Distances alone, the form of Corollary 10, miss what the shared component shows (CHERUBIN2024:B5).
    own = math.erf(RATE * math.sqrt(float(np.sum(trace.distance**2))) / (2 * math.sqrt(2) * NOISE))
    assert attack > own
