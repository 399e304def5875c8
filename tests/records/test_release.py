"""What a ledger amounts to: copies of a record, draws that are public; many releases as few, and never less risk."""

from __future__ import annotations

import random

from reticent import facts
from reticent.facts.steps import SamplerRecord, Segment, Source
from reticent.kernel.mechanisms import DPSGD
from reticent.records.release import coarse
from reticent.samplers import Shuffled
from tests.watching.loops import watched
from tests.watching.programs import private


def ledger(segment, **sampler):
    seen = watched(*private(), how={"epochs": 1})
    record = SamplerRecord(source=Source.SEEN, name="x", **sampler)
    return seen.ledger.model_copy(update={"segments": (segment,), "sampler": record})


def test_copies_multiply_what_is_protected_together_and_state_nothing_of_persons():
    segment = Segment(noise_multiplier=2.0, steps=5)
    run_ = ledger(segment, drawn="poisson", sample_rate=0.1, copies=3)
    assert (run_.mechanism().records, run_.mechanism().records_per_user) == (3, None)
    of_four = run_.model_copy(update={"records_per_user": 4}).mechanism()
    assert (of_four.records, of_four.records_per_user) == (12, 4)
    assert run_.mechanism().sample_rate == 0.1


def test_draws_that_are_public_amplify_nothing():
    segment = Segment(noise_multiplier=2.0, steps=5)
    run_ = ledger(segment, drawn="poisson", sample_rate=0.1)
    public = run_.model_copy(update={"facts": {facts.PUBLIC_DRAWS.key: "found"}})
    assert (run_.mechanism().sample_rate, public.mechanism().sample_rate) == (0.1, 1.0)


DRAW = random.Random(7)  # noqa: S311


def mu_squared(parts):
    return sum(part.steps / part.noise_multiplier**2 for part in parts)


def test_equal_releases_are_one_and_others_are_not():
    parts = [DPSGD(1.1, 0.01, 3), DPSGD(1.1, 0.02, 5), DPSGD(1.1, 0.01, 4), DPSGD(1.3, 0.01, 1)]
    assert coarse(parts) == [DPSGD(1.1, 0.01, 7), DPSGD(1.1, 0.02, 5), DPSGD(1.3, 0.01, 1)]
    passes = [DPSGD(1.1, 0.1, 10, sampler=Shuffled(10))] * 2
    assert coarse(passes) == passes  # each is so many epochs of its own


def test_noise_is_rounded_down_and_no_step_is_lost():
    parts = [DPSGD(DRAW.uniform(0.5, 4.0), rate, 1 + at % 3) for at in range(300) for rate in (0.01, 0.02)]
    few = coarse(parts)
    assert len(few) <= 32
    for rate in (0.01, 0.02):
        before, after = ([part for part in all_ if part.sample_rate == rate] for all_ in (parts, few))
        assert sum(part.steps for part in after) == sum(part.steps for part in before)
        assert mu_squared(before) <= mu_squared(after) <= 1.5 * mu_squared(before)
        ordered = sorted(part.noise_multiplier for part in before for _ in range(part.steps))
        rounded = sorted(part.noise_multiplier for part in after for _ in range(part.steps))
        assert all(low <= noise for low, noise in zip(rounded, ordered, strict=True))
    assert coarse([*parts, DPSGD(0.0, 1.0, 2)])[-1] == DPSGD(0.0, 1.0, 2)
