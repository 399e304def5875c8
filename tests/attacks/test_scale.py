"""A hundred thousand canaries in one white-box run."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

from reticent.attacks.canaries import CanaryAudit
from reticent.attacks.own_trainer import OwnTrainer
from reticent.auditing import audit_mu
from reticent.kernel.mechanisms import DPSGD


@pytest.mark.slow
def test_a_hundred_thousand_canaries_in_one_run():
    """Seconds of processor time and less than two gigabytes; and they are canaries: the bound is near the truth."""
    claim = DPSGD(noise_multiplier=1.0, sample_rate=0.002, steps=4, batch_size=200, dataset_size=100_000)
    steps = []
    start = time.process_time()
    trainer = OwnTrainer(lambda done, planned: steps.append((done, planned)))
    scores = CanaryAudit(100_000, seed=1).scores(trainer, claim)
    assert time.process_time() - start < 60.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4_000_000  # kilobytes, of the whole test process
    assert steps == [(n, 4) for n in range(1, 5)]
    assert len(scores) == 100_000
    assert np.isfinite(audit_mu(scores).value)
