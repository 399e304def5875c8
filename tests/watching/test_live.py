"""The risk while a loop runs, a loop that stops at a risk, and steps that were planned and did not run."""

from __future__ import annotations

import json
from itertools import product

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.facts.steps import SamplerRecord, Segment
from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs import Claim, Status
from reticent.records.ledger import RunLedger
from reticent.records.release import read
from reticent.samplers import FixedSize, RandomAllocation, Shuffled
from reticent.watching import loggers
from reticent.watching.live import LiveRisk, quick_advantage
from reticent.watching.models import fingerprint
from reticent.watching.session import Watch
from tests.conftest import some
from tests.watching.loops import Loop, epsilon, passes, watched
from tests.watching.programs import BATCH, NOISE, RATE, network, private, records, run, shuffled

pytestmark = [pytest.mark.usefixtures("quick_documents"), pytest.mark.filterwarnings("ignore:Full backward hook")]

TARGET = 0.3


def risk_of(mechanism) -> float:
    return rt.assess(mechanism)[0].measure(rt.advantage).value


def test_a_loop_stops_before_the_step_that_would_exceed():
    """Of 600 steps; what was logged ends with the certificate, and the weights are those of the last step."""
    lines: list[str] = []
    made, log = private(), loggers.printed(write=lines.append)
    with rt.watch(*made[:3], stop_at=f"advantage={TARGET}", log=log, log_every=5) as seen:
        run(*made, epochs=100)
        pytest.fail("the loop goes on")
    found, steps = seen.ledger, seen.ledger.steps
    assert risk_of(found) <= TARGET < risk_of(rt.DPSGD(NOISE, RATE, steps + 1))
    assert fingerprint(made[0]) == found.weights_sha256
    assert not {facts.ENDED_EARLY, facts.STOPPED_BEFORE_PLAN} & set(found.faults)
    assert seen.should_stop
    assert found.vouches()["planned-steps"] is Status.CHECKED
    assert lines[-1].startswith(f"step {steps}: advantage ")
    assert lines[-1].endswith(f"stop: advantage={TARGET}")
    assert [int(line.split()[1][:-1]) for line in lines] == [*range(5, steps, 5), *([steps])]
    assert rt.certify(seen).verify().accepted


def test_a_loop_that_asks_ends_by_itself():
    asked = []

    def until_told(toy):
        for batch in passes(50)(toy):
            yield batch
            asked.append(toy.seen.should_stop)
            if asked[-1]:
                return

    seen, _ = Loop(batches=until_told, options={"stop_at": f"advantage={TARGET}"}).watched()
    assert asked == [False] * (len(asked) - 1) + [True]
    assert seen.ledger.steps == len(asked)
    assert risk_of(seen) <= TARGET < risk_of(rt.DPSGD(NOISE, RATE, len(asked) + 1))


@pytest.mark.parametrize("with_optimizer", [True, False])
def test_a_loop_of_ones_own_stops_too(with_optimizer):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    taken = 0
    with rt.watch(
        model, optimizer if with_optimizer else None, sampler="poisson", stop_at=f"advantage={TARGET}"
    ) as seen:
        for _ in range(2000):
            if with_optimizer:
                for p in model.parameters():
                    p.grad = torch.randn_like(p)
                optimizer.step()
            seen.step(noise_multiplier=2.0, sample_rate=0.1)
            taken += 1
    assert risk_of(seen) <= TARGET < risk_of(rt.DPSGD(2.0, 0.1, seen.ledger.steps + 1))
    assert seen.ledger.steps == taken + (not with_optimizer)  # without an optimizer the last call itself ends it
    assert facts.UNRECORDED_STEPS not in seen.ledger.faults


def test_a_target_that_one_step_exceeds_is_refused():
    parts = private()
    seen = rt.watch(*parts[:3], stop_at="advantage=0.001")
    with pytest.raises(ParameterError, match="stop_at must be a risk that 1 step keeps to with this noise"), seen:
        run(*parts, epochs=1)


def test_less_noise_on_the_way_moves_the_stop():
    noises = [2.0] * 60 + [1.0] * 1000
    with rt.watch(network(), sampler="poisson", stop_at=f"advantage={TARGET}") as seen:
        for noise in noises:
            seen.step(noise_multiplier=noise, sample_rate=0.1)
    found = seen.ledger
    assert 60 < found.steps < 200
    longer = rt.Ledger((rt.DPSGD(2.0, 0.1, 60), rt.DPSGD(1.0, 0.1, found.steps - 59)))
    assert risk_of(found) <= TARGET < risk_of(longer)
    assert found.vouches()["planned-steps"] is Status.DECLARED  # who chose the noise may have looked


def told(steps: int, planned: int | None) -> Watch:
    """A loop of which nothing is seen."""
    with rt.watch(network(), sampler="poisson", planned_steps=planned) as seen:
        for _ in range(steps):
            seen.step(noise_multiplier=1.5, sample_rate=0.1)
    return seen


def stated(steps: int, planned: int | None) -> RunLedger:
    return told(steps, planned).ledger


PLANS = {
    "a stop is charged at the planned steps": (100, 100, {facts.STOPPED_BEFORE_PLAN}, Status.DECLARED),
    "as many as planned cost what they cost": (30, 30, set(), Status.DECLARED),
    "more than planned all count and nobody vouches": (20, 30, {facts.MORE_THAN_PLANNED}, None),
    "nothing planned": (None, 30, set(), None),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan(name):
    planned, counted, said, status = PLANS[name]
    found = stated(30, planned)
    assert (found.steps, found.mechanism().steps) == (30, counted)
    assert {facts.STOPPED_BEFORE_PLAN, facts.MORE_THAN_PLANNED} & set(found.faults) == said
    assert found.vouches().get("planned-steps") is status
    assert RunLedger.from_json(found.to_json()) == found


def test_a_certificate_is_about_the_planned_steps():
    certificate = rt.certify(stated(30, 100))
    assert certificate.certificate.mechanism["steps"] == 100
    assert certificate.verify().accepted


def test_a_forged_plan_is_refused():
    document = json.loads(stated(30, 100).to_json())
    document["facts"]["planned-steps"]["steps"] = 30
    forged = RunLedger.model_validate(document)
    assert {where for where, _ in forged.contradictions()} == {"digest"}


def draft(segments, planned, **sampler) -> RunLedger:
    bare = stated(1, None)
    record = SamplerRecord(**{"drawn": "poisson", "source": "seen", "name": "x", "sample_rate": 0.1, **sampler})
    fields = {"segments": tuple(Segment(**one) for one in segments), "sampler": record}
    fields["facts"] = {"planned-steps": {"steps": planned}}
    return RunLedger.model_validate({**bare.public(), **fields})


def test_what_did_not_run_counts_as_the_worst_of_what_ran():
    ran = [{"noise_multiplier": 3.0, "steps": 10}, {"noise_multiplier": 1.0, "steps": 10, "sample_rate": 0.2}]
    for order in (ran, ran[::-1]):
        *_, rest = read(draft(order, 50)).segments
        assert (rest.steps, rest.noise_multiplier, rest.sample_rate) == (30, 1.0, 0.2)


SHUFFLED = {"drawn": "shuffled", "sample_rate": None, "batches_per_epoch": 10, "times_per_epoch": 1}


@pytest.mark.parametrize(
    ("steps", "passes", "planned", "counted"),
    [(15, 2, 20, 2), (15, 2, 21, 3), (15, 2, 100, 10), (15, 3, 20, 4), (20, 2, 21, 3), (20, 2, 20, 2)],
)
def test_passes_that_were_planned_count_whole(steps, passes, planned, counted):
    ran = draft([{"noise_multiplier": 1.0, "steps": steps, "passes": passes}], planned, **SHUFFLED)
    full = rt.DPSGD(1.0, 1.0, counted)
    assert risk_of(ran) == pytest.approx(risk_of(full), rel=1e-9, abs=0)


NOISES, RATES, STEPS = (0.4, 1.1, 8.0), (0.001, 0.05, 1.0), (1, 7, 300)


LOOKS = list(product(NOISES, RATES, STEPS))


@pytest.mark.parametrize(("noise", "rate", "steps"), some(LOOKS, 0, 4, 8, 10, 14, 15, 19, 23, 24))
def test_a_look_agrees_with_the_proof(noise, rate, steps):
    one = rt.DPSGD(noise, rate, steps)
    for release in (one, rt.Ledger((one, rt.DPSGD(1.3 * noise, rate, steps + 1)))):
        value, claim = quick_advantage(release)
        found = rt.assess(release)[0].measure(rt.advantage)
        if claim is Claim.BOUND:
            assert value >= found.lower * (1.0 - 1e-12)
        elif release is one:
            assert value == pytest.approx(found.value, rel=1e-3, abs=1e-6)
        else:
            assert found.value <= value * 1.001 + 1e-6  # the riskier of the two, all along


@pytest.mark.parametrize("sampler", [FixedSize(), Shuffled(), RandomAllocation()])
def test_a_look_at_other_samplers(sampler):
    for steps in (4, 400):
        release = rt.DPSGD(2.0, 0.05, steps, sampler=sampler)
        value, claim = quick_advantage(release)
        exact = rt.assess(release)[0].measure(rt.advantage).value
        assert value >= exact * (1.0 - 1e-6)
        assert claim is Claim.BOUND
        assert value == pytest.approx(exact, rel=1e-3 if steps > 4 else 1.0, abs=1e-9)


def test_a_look_at_persons_and_at_many_parts_is_no_less_than_the_proof():
    person = rt.DPSGD(4.0, 0.05, 30, records_per_user=2)
    parts = tuple(rt.DPSGD(2.0 + 0.1 * i, 0.05, 30) for i in range(6))
    displacing = tuple(rt.DPSGD(8.0, 0.9, 1, sampler=FixedSize()) for _ in range(5))
    for release in (person, rt.Ledger(parts), rt.Ledger((rt.DPSGD(50.0, 0.9, 1), *displacing))):
        assert quick_advantage(release)[0] >= risk_of(release) - 1e-9


def test_a_look_says_what_it_knows():
    with rt.watch(network(), sampler="poisson", planned_steps=400) as seen:
        assert str(seen.risk()) == "step 0: advantage at most 0"
        for _ in range(100):
            seen.step(noise_multiplier=1.5, sample_rate=0.1)
        found = seen.risk()
    assert isinstance(found, LiveRisk)
    assert found.planned_advantage == pytest.approx(risk_of(seen), rel=1e-6, abs=0)
    assert str(found).startswith("step 100: advantage at most 0.")
    assert found.guess == pytest.approx(0.5 + found.advantage / 2, rel=1e-12, abs=0)


@pytest.mark.parametrize("steps", [29, 30, 60])
def test_a_look_beside_the_plan(steps):
    """It said "at the planned 30 steps" of the risk of 60."""
    found, within = told(steps, 30).risk(), steps <= 30
    said = ("privacy/advantage", "privacy/steps", "privacy/planned_advantage", "privacy/planned_steps")
    assert str(found).endswith("at the planned 30 steps" if within else "; more steps than the 30 that were planned")
    assert found.metrics().keys() == set(said[: 4 if within else 2])
    assert found.advantage == pytest.approx(risk_of(rt.DPSGD(1.5, 0.1, steps)), rel=1e-6, abs=0)
    whole = pytest.approx(risk_of(rt.DPSGD(1.5, 0.1, 30)), rel=1e-6, abs=0)
    assert found.planned_advantage == (whole if within else None)


def test_a_look_before_the_first_step_is_no_less_than_what_ran():
    made = private()
    watch = rt.watch(*made[:3])
    assert watch.risk().advantage == 1.0  # nobody looked yet
    with watch:
        assert watch.risk().advantage == 0.0
        run(*made, epochs=1)
    with rt.watch(*made[:3]) as second:
        assert second.risk().steps == 0
        assert second.risk().advantage == watch.risk().advantage >= risk_of(watch)
        run(*made, epochs=1)
    torch.nn.init.zeros_(made[0]._module[0].weight)
    with rt.watch(*made[:3]) as third:
        assert third.risk().advantage == 1.0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"stop_at": "advantge=0.1"}, "stop_at must be one of .*did you mean advantage=0.1"),
        ({"stop_at": "advantage=2"}, "stop_at"),
        ({"stop_at": "epsilon=1"}, "stop_at must be stated with its place"),
        ({"stop_at": ""}, "stop_at"),
        ({"planned_steps": 0}, "planned_steps"),
        ({"planned_steps": 2.5}, "planned_steps"),
        ({"planned_steps": 10**9}, "planned_steps must be at most"),
        ({"log": "wandb"}, "log must be a function of the risk"),
        ({"log": [print, 3]}, "log must be a function of the risk"),
        ({"log_every": 0}, "log_every"),
        ({"unit": "clinet"}, "unit must be one of record, client .did you mean client"),
        ({"unit": "client", "records_per_user": 3}, "left out with unit client"),
    ],
)
def test_mistakes_in_every_option(options, wanted):
    with pytest.raises(ParameterError, match=wanted):
        rt.watch(network(), **options)


def test_what_an_earlier_watch_saw_counts():
    made = private()
    first = watched(*made, how={"epochs": 1})
    second = watched(*made, how={"epochs": 100}, stop_at=f"advantage={TARGET}")
    both = len(first) + len(second)
    assert risk_of(second) <= TARGET < risk_of(rt.DPSGD(NOISE, RATE, both + 1))
    assert second.risk().advantage > 0.999 * risk_of(rt.DPSGD(NOISE, RATE, both))


def test_a_target_that_an_earlier_watch_exceeded():
    made = private()
    watched(*made, how={"epochs": 3})
    with pytest.raises(ParameterError, match="all that ran before"), rt.watch(*made[:3], stop_at="epsilon=2@1e-5"):
        run(*made)


def test_passes_that_are_broken_off():
    made = shuffled()
    with rt.watch(*made[:3], stop_at="epsilon=20@1e-5") as seen:
        run(*made, epochs=1)
        run(*made, epochs=50, most=2)
    assert 15.0 < epsilon(seen) <= 20.0
    assert len(seen) < 60


def test_batches_of_another_loader_later():
    made, other = private(), DataLoader(records(), batch_size=BATCH, shuffle=True)
    with rt.watch(*made[:3], stop_at=f"advantage={TARGET}") as seen:
        run(*made, epochs=1)
        with pytest.raises(ParameterError, match="these batches"):
            run(made[0], made[1], other, made[3], epochs=10)
    assert len(seen) == 7
