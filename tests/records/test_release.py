"""What a ledger amounts to: copies of a record, draws that are public."""

from __future__ import annotations

from reticent import facts
from reticent.facts.steps import SamplerRecord, Segment, Source
from tests.watching.loops import private, watched


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
