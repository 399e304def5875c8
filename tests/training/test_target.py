"""A target becomes noise, and the run that follows keeps to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from reticent.calibration import UnreachableError
from reticent.kernel import risk
from reticent.kernel.accountants import compose
from reticent.kernel.pairs import Neighbouring
from reticent.training import train
from reticent.training.setup import make_settings

TARGETS = [
    ({"advantage": 0.15}, lambda curve: risk.advantage(curve) <= 0.15),
    ({"bayes_security": 0.8}, lambda curve: risk.bayes_security(curve) >= 0.8),
    ({"success": 0.6, "prior": 0.5}, lambda curve: risk.success(curve, 0.5) <= 0.6),
    ({"tpr": 0.05, "fpr": 0.01}, lambda curve: risk.tpr_at_fpr(curve, 0.01) <= 0.05),
    ({"ppv": 0.3, "prior": 0.1, "fpr": 0.01}, lambda curve: risk.ppv(curve, 0.1, 0.01) <= 0.3),
    ({"epsilon": 2.0, "delta": 1e-5}, lambda curve: risk.epsilon_at_delta(curve, 1e-5) <= 2.0),
    (
        {"secret": 0.02, "secret_bits": 10.0, "guesses": 3},
        lambda curve: risk.secret_success(curve, 10.0, 3) <= 0.02,
    ),
    ({"recovered": 0.2, "baseline": 0.1}, lambda curve: risk.recovered(curve, 0.1) <= 0.2),
]


FIRST = {"advantage"}  # epsilon: test_epsilon_target_by_another_accountant


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        pytest.param(t, kept, id=(name := next(iter(t))), marks=() if name in FIRST else pytest.mark.slow)
        for t, kept in TARGETS
    ],
)
def test_the_run_keeps_to_its_target_and_wastes_little(make_config, dataset, tmp_path, target, kept):
    run = train(make_config(noise_multiplier=None, target=target), tmp_path / "run", dataset=dataset)
    mechanism = run.ledger.mechanism()
    assert kept(compose(mechanism, Neighbouring.ADD_REMOVE).pessimistic)
    less = replace(mechanism, noise_multiplier=0.98 * mechanism.noise_multiplier)
    assert not kept(compose(less, Neighbouring.ADD_REMOVE).optimistic)
    assert run.config.target is not None


def test_epsilon_target_by_another_accountant(make_config, dataset, tmp_path):
    config = make_config(noise_multiplier=None, target={"epsilon": 2.0, "delta": 1e-5})
    ledger = train(config, tmp_path / "run", dataset=dataset).ledger
    ran = ledger.first
    step = dp_event.PoissonSampledDpEvent(ran.sample_rate, dp_event.GaussianDpEvent(ran.noise_multiplier))
    accountant = PLDAccountant().compose(dp_event.SelfComposedDpEvent(step, ledger.steps))
    assert accountant.get_epsilon(1e-5) == pytest.approx(2.0, rel=2e-3, abs=0)


def test_sampler_relation_and_attacker_count(make_config):
    def noise(target=None, **changes):
        asked = {"advantage": 0.15} | (target or {})
        return make_settings(make_config(noise_multiplier=None, target=asked, **changes), 60).noise_multiplier

    assert noise(sampler="shuffled") > noise()
    assert noise({"neighbouring": "replace"}) > 1.5 * noise()
    assert noise({"adversary": "relaxed"}, batch_size=60) < noise(batch_size=60)  # both in closed form


def test_unreachable_target_says_so(make_config, dataset, tmp_path):
    config = make_config(noise_multiplier=None, target={"advantage": 1e-9}, sampler="shuffled")
    with pytest.raises(UnreachableError, match="out of reach"):
        train(config, tmp_path / "run", dataset=dataset)
    assert not (tmp_path / "run").exists()
