"""What is recovered about one person: the bound against attackers whose success is computed without it, at each door.

Theorems: RETICENT:recovery.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom, norm

import reticent as rt
from reticent.auditing import Design, Finding, Scores
from reticent.dashboard import catalogue as dashboard
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import recovered
from reticent.training.config import TargetConfig
from tests.cli.calling import run

RUN = rt.dpsgd(noise_multiplier=1.1, sample_rate=0.01, steps=1000)


def test_any_mechanism_and_whatever_counts_as_recovered() -> None:
    """Random mechanisms with seven outputs, any values of a record, any answers, each of which recovers some values.

    The best answer to each output, against the power of the curve at the baseline: the best mix of tests over all
    values, by a linear programme.
    """
    rng = np.random.default_rng(3)
    for _ in range(40):
        values, answers = int(rng.integers(2, 7)), int(rng.integers(1, 9))
        weights = rng.dirichlet(np.full(values, 2.0))
        recovers = rng.random((answers, values)) < 0.4
        absent, present = rng.dirichlet(np.ones(7)), rng.dirichlet(np.full(7, 0.7), size=values)
        success = float((recovers @ (weights[:, None] * present)).max(axis=0).sum())
        baseline = float((recovers @ weights).max())
        assert success <= most_recovered([(absent, one) for one in present], baseline) + 1e-9


def most_recovered(tested: list[tuple[np.ndarray, np.ndarray]], alarms: float) -> float:
    """The power of the best mix of tests, each of a pair of laws (without the target, with it), at these alarms."""
    outputs = len(tested[0][0])
    each, size = outputs * len(tested), len(tested)
    # Test z is used with weight s_z, and rejects output y with weight r_zy <= s_z.
    gain = np.concatenate([-np.concatenate([present for _, present in tested]), np.zeros(size)])
    below = np.hstack([np.eye(each), -np.repeat(np.eye(size), outputs, axis=0)])
    rate = np.concatenate([*(absent for absent, _ in tested), np.zeros(size)])
    total = np.concatenate([np.zeros(each), np.ones(size)])
    rows, most = np.vstack([below, rate]), np.append(np.zeros(each), alarms)
    return float(-linprog(gain, A_ub=rows, b_ub=most, A_eq=total[None], b_eq=[1.0]).fun)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_one_record_of_ten_is_found_in_a_real_run_by_likelihood(rate: float) -> None:
    """Logistic regression by DP-SGD: whoever knows all other records and their draws compares ten likelihoods.

    The attacker stays below the bound, comes near it, and without the run finds one in ten.
    """
    rng = np.random.default_rng(7)
    runs, steps, noise, others, dimension = 4000, 20, 4.0 * rate**0.5, 12, 10
    candidates = 4.0 * np.eye(dimension)
    known, labels = rng.normal(size=(others, dimension)), rng.integers(0, 2, others)
    truth = rng.integers(0, 10, runs)
    weights, likelihoods = np.zeros((runs, dimension)), np.zeros((runs, 10))

    def clipped(records: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Gradients of each run at each record: [runs, records, dimension]; norm 1 at most."""
        error = expit(weights @ records.T) - label
        gradients = error[:, :, None] * records
        return gradients / np.maximum(np.linalg.norm(gradients, axis=2, keepdims=True), 1.0)

    for _ in range(steps):
        moves = clipped(candidates, np.ones(10))
        drawn = rng.random((runs, others)) < rate
        rest = (clipped(known, labels) * drawn[:, :, None]).sum(axis=1)
        seen = rest + rng.normal(scale=noise, size=(runs, dimension))
        seen += moves[np.arange(runs), truth] * (rng.random(runs) < rate)[:, None]
        beyond = seen - rest
        ratio = (moves @ beyond[:, :, None])[:, :, 0] / noise**2 - (moves**2).sum(axis=2) / (2 * noise**2)
        likelihoods += np.log1p(rate * np.expm1(ratio))
        weights -= 0.002 * seen
    found = int((likelihoods.argmax(axis=1) == truth).sum())
    bound = rt.recovered(DPSGD(noise, rate, steps), baseline=0.1)
    assert binom.sf(found - 1, runs, bound) > 1e-6
    assert found / runs > 0.8 * bound > 0.2


def test_a_mean_of_baselines_bounds_the_mean() -> None:
    baselines = np.array([0.001, 0.05, 0.3])
    curve = GaussianTradeOff(1.0)
    assert np.mean([recovered(curve, x) for x in baselines]) <= recovered(curve, float(baselines.mean()))


def test_the_rate_on_a_control_set_is_a_baseline() -> None:
    """Random trainings on two records, all sums written out: trained targets against control ones of the same law.

    Controls of another law are no baseline: there the rate on trained targets exceeds the bound.
    """
    rng = np.random.default_rng(5)
    values, exceeded = 3, 0
    for _ in range(20):
        law = rng.dirichlet(np.full(values, 2.0))
        training = 0.7 * rng.dirichlet(np.ones(5)) + 0.3 * rng.dirichlet(np.full(5, 0.5), size=(values, values))
        succeeds = rng.random((5, values)) < 0.4
        trained = np.einsum("a,b,aby,ya->", law, law, training, succeeds)
        alone = np.einsum("a,b,aby,yc->c", law, law, training, succeeds)
        pairs = [(training[c, b], training[a, b]) for a in range(values) for b in range(values) for c in range(values)]
        assert trained <= most_recovered(pairs, float(alone @ law)) + 1e-9
        exceeded += bool(trained > most_recovered(pairs, float(alone.min())) + 1e-3)
    assert exceeded


def test_a_control_set_needs_the_curve_of_a_replaced_record() -> None:
    """A noisy vector of one of 50 orthogonal records, whose name is accepted if no other lies higher by its length.

    Where the target was not used, another record was, and it hides the target: the attack succeeds less often than
    without any record. So the rate on trained targets exceeds the bound of an added record at the control rate.
    """
    kinds, mu = 50, 2.0

    def named(own: float, rival: float) -> float:
        """The probability that a coordinate with mean ``own`` lies so high beside one with ``rival`` and all others."""
        beaten = lambda x: norm.cdf(x + mu - rival) * norm.cdf(x + mu) ** (kinds - 2)  # noqa: E731
        return float(quad(lambda x: norm.pdf(x - own) * beaten(x), -9.0, 12.0, epsabs=1e-13)[0])

    trained = named(mu, 0.0)
    control = trained / kinds + (1.0 - 1.0 / kinds) * named(0.0, mu)
    assert recovered(GaussianTradeOff(mu), control) < trained <= recovered(GaussianTradeOff(mu * 2.0**0.5), control)


@pytest.mark.parametrize(
    ("noise", "same", "finding"),
    [(1.0, True, Finding.CONSISTENT), (0.2, True, Finding.INCONSISTENT), (1.0, False, Finding.INCONSISTENT)],
)
def test_an_attack_on_a_table_is_audited_with_its_control_set(noise: float, same: bool, finding: Finding) -> None:
    """Tables are drawn from a histogram with noise, 400 trainings with a target and a control each.

    What is claimed is noise 1. It holds, is refuted where noise is .2, and where controls are of another law.
    """
    rng = np.random.default_rng(2)
    runs, kinds, rows = 400, 30, 12
    records = rng.integers(0, kinds, (runs, 3))
    counts = (records[:, :, None] == np.arange(kinds)).sum(axis=1) + noise * rng.normal(size=(runs, kinds))
    shares = np.exp(4.0 * counts)
    tables = np.stack([rng.choice(kinds, rows, p=one / one.sum()) for one in shares])
    control = rng.integers(0, kinds, runs) if same else np.full(runs, kinds)  # a kind that no record has
    hits = [(tables == one[:, None]).any(axis=1) for one in (records[:, 0], control)]
    scores = Scores(*(hit.astype(float) for hit in hits), design=Design.INDEPENDENT)
    found = rt.audit(scores, claim=GaussianTradeOff(2.0**0.5))
    assert found.report.verdicts["claim"].finding is finding


def test_it_is_the_secret_of_as_many_bits() -> None:
    """Guesses of a secret are answers, each of which recovers the values that are guessed."""
    assert rt.recovered(RUN, baseline=0.125) == pytest.approx(rt.secret_success(RUN, secret_bits=3.0), rel=1e-12, abs=0)


def test_calibration_inverts_it_and_states_what_it_needs() -> None:
    found = rt.calibrate(DPSGD(1.0, 0.01, 300), recovered=0.02, baseline=0.01)
    assert 0.0199 < rt.recovered(found.mechanism, baseline=0.01) <= 0.02
    (answer,) = found
    assert answer.assessment().claim is Claim.CONDITIONAL
    assert "recovery-baseline" in {one.key for one in answer.assessment().conditions}


def test_only_who_bounds_every_test_answers() -> None:
    table = rt.assess(RUN, "relaxed", baseline=(0.01, 0.5))
    relaxed, worst = (row[-2:] for row in table.rows())
    assert relaxed == (None, None)
    assert worst == pytest.approx((rt.recovered(RUN, 0.01), rt.recovered(RUN, 0.5)), rel=1e-12, abs=0)
    records = {record.adversary: record for record in table.document.assessments}
    assert records["relaxed"].recovered_at_baseline == {} == records["relaxed"].also_needed
    assert "RETICENT:recovery" in records["worst-case"].theorems
    with pytest.raises(UnsupportedError, match="use worst-case or final-model"):
        rt.recovered(table["relaxed"], 0.01)
    with pytest.raises(UnsupportedError, match="worst-case or final-model"):
        rt.calibrate(RUN, "relaxed", recovered=0.1, baseline=0.01)


@pytest.mark.parametrize("baseline", [0.0, 1.0, -0.1, float("nan")])
def test_what_is_no_baseline_is_refused(baseline: float) -> None:
    with pytest.raises(ParameterError, match="baseline"):
        recovered(GaussianTradeOff(1.0), baseline)


def test_it_goes_through_every_door(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a question on the command line to a certificate, its page, a gate, and a run that keeps to a target."""
    setting = ("--noise-multiplier", "1.1", "--sample-rate", "0.01", "--steps", "1000")
    _, told, _ = run(capsys, "risk", "dpsgd", *setting, "--baseline", "0.01")
    assert "recovered where the best guess has 0.01: at most 0.02536" in told
    files = rt.certify(rt.Gaussian(2.0), subject="faces", created="2026-01-01", baseline=0.01).save(tmp_path)
    assert rt.verify(files.complete).accepted
    page = files.page.read_text("utf-8")
    for words in ("Could somebody rebuild a record, pick the right face, or guess a field?", "at most 3.4%"):
        assert words in page
    own, limit = ["clipped", "recovery-baseline"], {"measure": "recovered", "at": 0.01, "neighbouring": "add-remove"}
    for most, accepted, passed in ((0.034, own, True), (0.033, own, False), (0.034, own[:1], False)):
        policy = {"schema": "reticent.policy/1", "per": "record", "accept_conditions": accepted}
        limits = {"limits": [{**limit, "at_most": most}]}
        (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy | limits))
        assert bool(rt.gate(files.complete, tmp_path / "policy.yaml")) is passed
    assert TargetConfig.model_validate({"recovered": 0.02, "baseline": 0.01})
    assert "recovered" in dashboard.TARGETS
    assert "baseline" in dashboard.ASKED
