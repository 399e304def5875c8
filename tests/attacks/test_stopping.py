"""An audit of a loop stops at the first test that failed, and accuses no more often for it.

Theorem: RETICENT:audit-stops.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from benchmarks import planted_bugs
from reticent.attacks.experiments import experiments
from reticent.attacks.mechanics import Judging, audit_mechanics, judge
from reticent.kernel.mechanisms import DPSGD

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.25, steps=8, max_grad_norm=1.0, batch_size=12, dataset_size=48)


class TooLittleNoise(planted_bugs.Loop):
    def noise(self, step, like):
        return [0.7 * n for n in super().noise(step, like)]


class NoNoiseInOneStep(planted_bugs.Loop):
    def noise(self, step, like):
        return [n * (step != 5) for n in super().noise(step, like)]


FAULTS = {
    "too little noise": TooLittleNoise,
    "no noise in one step": NoNoiseInOneStep,
    "no clipping": planted_bugs.FAULTS["no clipping"],
}


def test_three_faults_show_within_a_third_of_the_runs_and_the_report_says_when():
    reports = {name: audit_mechanics(make(), CLAIM) for name, make in FAULTS.items()}
    assert all(report.accused for report in reports.values())
    assert median(report.runs / report.planned for report in reports.values()) < 1.0 / 3.0
    first = reports["too little noise"]
    assert (first.runs, first.planned) == (1, len(experiments(CLAIM)))
    assert "noise scale" in {check.name for check in first.failed}
    assert f"Stopped after 1 of {first.planned} runs" in str(first)
    whole = audit_mechanics(TooLittleNoise(), CLAIM, whole=True)
    assert (whole.runs, len(whole.checks)) == (whole.planned, whole.tests)
    assert "Stopped" not in str(whole)


def stopped(setup, runs, significance, order):
    judging = Judging(setup, significance=significance)
    for number in order:
        judging.see(number, runs[number])
        if judging.report.accused:
            break
    return judging.report


def test_who_stops_accuses_exactly_who_all_runs_accuse_in_whatever_order_they_end():
    """At a significance at which about half of the correct loops are accused."""
    rng, accused = np.random.default_rng(1), 0
    for _ in range(12):
        setup, runs = planted_bugs.simulate_correct(rng, CLAIM)
        whole, order = judge(setup, runs, significance=0.6), rng.permutation(len(setup))
        for way in (range(len(setup)), order):
            report = stopped(setup, runs, 0.6, way)
            assert report.accused is whole.accused
            assert set(report.failed) <= set(whole.failed)
        accused += whole.accused
    assert 2 <= accused <= 10
