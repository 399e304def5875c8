"""What the weights were before a watch: random, left by another watch, or trained by steps that nobody saw."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.document.requirements import judged
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import Status
from reticent.records.ledger import RunLedger
from reticent.watching.starts import fresh
from tests.certificates.making import MOST, policy
from tests.watching.loops import BY_HAND, Loop, earlier, nothing, prepared, void, watched
from tests.watching.programs import NOISE, RATE, RECORDS, by_hand, network, private, run, shuffled

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

ONCE = {"how": {"epochs": 1}}
BEFORE = {facts.STEPS_BEFORE}


def state_of(model):
    return copy.deepcopy(model.state_dict())


def from_weights_of(made):
    """Another loop, as of another process, that begins where this one ended."""
    other = private()
    other[0].load_state_dict(made[0].state_dict())
    return other


def with_a_past(kind, then=nothing, **options):
    """A pass without noise, and what is done to the model after that."""

    def made():
        model, _, loader, criterion = by_hand()
        optimizer = kind(model.parameters(), lr=0.01, **options)
        run(model, optimizer, loader, criterion, epochs=1)
        optimizer.zero_grad()
        then(model)
        return model, optimizer, loader, criterion

    return made


adam_with_a_past = with_a_past(torch.optim.Adam)


with_momentum = prepared(lambda made: made[1].original_optimizer.param_groups[0].update(momentum=0.9))


def a_part(made):
    """Pieces of a batch that was broken off go into the first step."""
    model, optimizer, loader, criterion = made
    features, labels = next(iter(loader))
    optimizer.signal_skip_step()
    criterion(model(features), labels).backward()
    optimizer.step()


def a_pass(made):
    run(*made, epochs=1)


random_weights = prepared(lambda made: fresh(made[0]))


def frozen(model=None):
    """The last layer is trained, as a new one on a network from elsewhere."""
    model = model or network()
    next(iter(model.parameters())).requires_grad_(False)
    return private(model=model)


def named():
    """As ``from_pretrained`` of transformers leaves it."""
    model = network()
    model.config = SimpleNamespace(_name_or_path="somebody/base")
    return private(model=model)


@torch.no_grad()
def write(made):
    next(made[0].parameters()).add_(1.0)


def back_to_a_step_between():
    """Another optimizer goes on from weights that no watch ended at."""
    made = by_hand()
    with rt.watch(*made[:3]) as seen:
        BY_HAND.run(made, seen)
        between = state_of(made[0])
        BY_HAND.run(made, seen)
    made[0].load_state_dict(between)
    return by_hand(made[0], made[2])


def back_with_the_old_momentum():
    model, _, loader, criterion = by_hand()
    made = model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loader, criterion
    start = state_of(model)
    with rt.watch(*made[:3]) as seen:
        BY_HAND.run(made, seen)
    model.load_state_dict(start)
    return made


def back_at_the_start():
    """For the third time."""
    model = network()
    start = state_of(model)
    for _ in range(2):
        model.load_state_dict(start)
        BY_HAND.but(made=lambda: by_hand(model)).watched()
    model.load_state_dict(start)
    return by_hand(model)


def with_a_seed(made):
    """The noise of the first loop is known."""
    torch.manual_seed(0)
    watched(*made)
    torch.seed()


@prepared
def broken_off(made):
    """After two steps of a loop that was watched."""
    with pytest.raises(KeyboardInterrupt), rt.watch(*made[:3]):
        run(*made, after=stop(2))


def stop(at, first=lambda: None):
    def after(step):
        if step == at:
            first()
            raise KeyboardInterrupt

    return after


def one_more_step(made):
    run(*made, epochs=1, most=1)


WRITTEN = {facts.WEIGHTS_CHANGED}
TWICE = {"entries": 2, "beside": True}
LOOPS = {
    "an optimizer with a past": BY_HAND.but(made=adam_with_a_past, errors=BEFORE),
    "an optimizer with a past that is declared": BY_HAND.but(made=adam_with_a_past, options={"start": "declared"}),
    "momentum of steps before": Loop(made=prepared(a_pass, with_momentum), errors=BEFORE),
    "an old momentum under new weights": BY_HAND.but(
        made=with_a_past(torch.optim.SGD, fresh, momentum=0.9), errors=BEFORE
    ),
    "gradients that wait since before": Loop(made=prepared(a_part, shuffled), errors=BEFORE, beside=True),
    "gradients that were released before": Loop(made=prepared(a_pass, shuffled)),
    "random weights": Loop(made=random_weights, ledger={"start.weights": "random"}, draws=True),
    "steps that a trainer says it took": Loop(
        options={"trainer_step": 12}, errors=BEFORE, ledger={"start.weights": "loaded", "start.trainer_step": 12}
    ),
    "frozen weights under trained ones": Loop(made=frozen, ledger={"start.weights": "loaded"}),
    "a network whose configuration has a name": Loop(made=named, ledger={"start.weights": "loaded"}),
    "a base model that is declared": Loop(options={"start": "base-model"}, ledger={"start.weights": "loaded"}),
    "frozen weights that were drawn anew": Loop(
        made=lambda: frozen(fresh(network())), ledger={"start.weights": "random"}, draws=True
    ),
    "a second watch": Loop(made=earlier(), draws=True, ran={"steps": 12, "noise_multiplier": NOISE}),
    "random weights that were changed": Loop(made=prepared(write, random_weights), draws=True),
    "steps between two watches": Loop(made=earlier(one_more_step), draws=True, errors=BEFORE),
    "a loop before whose noise is known": Loop(
        made=prepared(with_a_seed), errors={facts.PUBLIC_SEED}, may={facts.REPEATED_NOISE}, draws=True
    ),
    "a loop before that ended with an error": Loop(
        made=broken_off, draws=True, ran={"steps": 8, "noise_multiplier": NOISE}
    ),
    "a loop before that ended with an error, and a write": Loop(
        made=prepared(write, broken_off), draws=True, errors=BEFORE
    ),
    "a model that is put back to its start": BY_HAND.but(made=back_at_the_start, ledger={"earlier": ()}),
    "a model that is put back to a step between": BY_HAND.but(made=back_to_a_step_between, errors=BEFORE),
    "a model that is put back with the old momentum": BY_HAND.but(made=back_with_the_old_momentum, errors=BEFORE),
    "three entries": Loop(made=shuffled, entries=3, segments={"passes": [3]}, ran={"steps": 18}),
    "a write between two entries": Loop(**TWICE, away=lambda toy: write([toy.model]), errors=WRITTEN),
    "a step between two entries": Loop(
        **TWICE, away=lambda toy: toy.train(epochs=1, most=1), errors=WRITTEN, may={facts.UNRECORDED_STEPS}
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_start(name):
    seen, _ = LOOPS[name].check()
    random, stated = ("random weights", "frozen weights that were drawn anew"), ("is declared",)
    said = Status.CHECKED if name in random else Status.DECLARED if name.endswith(stated) else None
    assert seen.ledger.vouches().get("start-weights") is said


@pytest.mark.parametrize("start", ["base model", "loaded"])
def test_any_other_word_for_the_start_is_refused(start):
    with pytest.raises(ParameterError, match="declared, base-model, or left out"):
        watched(*private(), start=start)


KEY = facts.BASE_MODEL.key
TRUTHS = {
    "nothing is said": (private, {}),
    "declared": (private, {"start": "declared"}),
    "a base model that is stated": (private, {"start": "base-model"}),
    "frozen": (frozen, {}),
    "a name": (named, {}),
}


class TestABaseModel:
    """What it saw is beside every number of a training, unless its weights were seen being drawn at random."""

    @staticmethod
    def said(what):
        found = [{one.key: one.status for one in row.conditions} for row in rt.assess(what, ["relaxed"])]
        assert len({one["base-model"] for one in found}) == 1
        return found[0]["base-model"] is Status.ASSUMED

    @pytest.mark.parametrize("name", TRUTHS)
    def test_who_says_nothing_is_told_the_same_as_who_says_the_truth(self, name, quick_documents):
        made, how = TRUTHS[name]
        found = rt.certify(watched(*made(), **ONCE, **how)).certificate
        assert {one.status for row in found.assessments for one in row.conditions if one.key == "base-model"} == {
            Status.ASSUMED
        }
        assert KEY in found.warned
        (forbidden,) = [one for one in judged(found, policy(MOST, forbid_warnings=[KEY])) if KEY in str(one.name)]
        assert not forbidden.passed

    def test_only_weights_that_were_seen_being_drawn_have_no_base_model(self, quick_documents):
        first, second = (watched(*random_weights(), **ONCE) for _ in range(2))
        silent = watched(*private(), **ONCE)
        assert not self.said(first)
        for what, warned in ((first, 0), ([first, second], 0), ([first, silent], 1)):
            found = rt.certify(what)
            assert found.verify().accepted
            assert found.certificate.warned.count(KEY) == warned
        both = tuple(what.ledger.mechanism() for what in (first, second))
        assert self.said(rt.Ledger(both))  # nothing is checked of several together

    def test_the_chain_has_the_start_of_its_first_loop(self):
        made = frozen()
        for _ in range(2):
            assert self.said(watched(*made, **ONCE))
        other = random_weights()
        watched(*other, **ONCE)
        next(iter(other[0].parameters())).requires_grad_(False)
        second = watched(*other, **ONCE)
        assert second.ledger.start.weights == "loaded"
        assert not self.said(second)

    @pytest.mark.parametrize("plan", [DPSGD(2.0, 0.1, 9), rt.Ledger((DPSGD(2.0, 0.1, 9), rt.Gaussian(3.0)))])
    def test_a_plan_says_nothing_of_it_either(self, plan):
        assert self.said(plan)
        assert "base-model" not in {one.key for one in rt.Gaussian(3.0).conditions}


def test_weights_that_cannot_be_drawn_anew_are_named():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))

    with pytest.raises(UnsupportedError, match="Own"):
        fresh(nn.Sequential(Own()))


def test_the_commitment_to_the_start_is_salted_and_the_salt_is_not_public():
    seen = watched(*private()).ledger
    assert "salt" not in seen.public()["start"]
    assert "start_salt" not in str(seen.public())
    again = watched(*private()).ledger
    assert seen.start.commitment != again.start.commitment


@pytest.fixture(scope="module")
def in_turn():
    """Three watches of one model, and one of another."""
    made, other = private(), private()
    return [watched(*one, **ONCE) for one in (made, made, made, other)]


class TestOneAfterTheOther:
    """A second watch of a model continues the first."""

    @staticmethod
    def less_noise(made):
        made[1].noise_multiplier = 0.5

    @staticmethod
    def freezes(made):
        made[0]._module[0].requires_grad_(False)

    @pytest.mark.parametrize(
        ("change", "part", "values"),
        [(less_noise, "noise_multiplier", [NOISE, 0.5]), (freezes, "num_parameters", [44, 14])],
    )
    def test_it_counts_both(self, change, part, values):
        """Parts that differ stay apart."""
        made = private()
        assert watched(*made, **ONCE).ledger.steps == 6
        change(made)
        second = watched(*made, **ONCE)
        assert [(getattr(p, part), p.steps) for p in second.mechanism().parts] == [(one, 6) for one in values]
        assert list(second.ledger.contradictions()) == []

    def test_ledgers_of_other_processes_are_chained_by_hand(self, tmp_path):
        made = private()
        watched(*made).save(tmp_path / "first.json")
        second = watched(*from_weights_of(made), continues=tmp_path / "first.json")
        assert second.mechanism() == DPSGD(NOISE, RATE, 24, num_parameters=44, dataset_size=RECORDS)
        with pytest.raises(ParameterError, match="ended at these weights"):
            watched(*private(), continues=tmp_path / "first.json")

    def test_certify_takes_a_list_of_ledgers_that_meet(self, quick_documents):
        made = private()
        first = watched(*made)
        second = watched(*from_weights_of(made))
        assert facts.STEPS_BEFORE not in second.ledger.faults
        assert "start-weights" not in second.ledger.vouches()
        whole = rt.certify([first, second])
        assert whole.verify().accepted
        assert whole.certificate.mechanism["steps"] == 24
        apart = rt.certify([second, first]).certificate  # no chain: releases that are composed
        assert [part["steps"] for part in apart.mechanism["parts"]] == [12, 12]

    def test_a_chain_that_was_edited_is_noticed(self):
        made = private()
        watched(*made)
        document = watched(*made).ledger.public()
        whole = RunLedger.model_validate(document)
        assert list(whole.contradictions()) == []
        assert RunLedger.model_validate(whole.model_dump(mode="json", by_alias=True)) == whole
        document["earlier"][0]["weights_sha256"] = "0" * 64
        forged = RunLedger.model_validate(document)
        assert {field for field, _ in forged.contradictions()} == {"digest"}

    def test_a_plan_of_the_first_of_three_loops_that_was_not_finished_contradicts_nothing(self):
        """It followed from no fact of the second loop, whose ledger had it: the third contradicted itself."""
        made = private()
        watched(*made, planned_steps=40)
        watched(*made)
        third = watched(*made).ledger
        assert facts.STOPPED_BEFORE_PLAN in third.faults
        assert not list(third.contradictions())
        assert sum(part.steps for part in third.mechanism().parts) == 40 + 12 + 12

    @pytest.mark.parametrize(
        ("which", "releases"),
        [((0, 1, 2), 0), ((0, 2), 0), ((1, 2), 0), ((2, 0, 1), 3), ((2, 1), 2), ((0, 1, 3), 3)],
    )
    def test_loops_in_turn_count_once_in_any_list(self, which, releases, in_turn, quick_documents):
        """Three watches in turn, in the order in which they ran, were refused as not in this order."""
        found = rt.certify([in_turn[place] for place in which]).certificate
        assert sum(part["steps"] for part in found.mechanism.get("parts", [found.mechanism])) == 18
        assert len(found.declared.releases) == releases
        assert (found.ledger is not None) == (not releases)

    def test_a_new_watch_for_each_of_very_many_passes_is_refused_before_it_trains(self, monkeypatch):
        monkeypatch.setattr("reticent.watching.detectors.start.MOST_EARLIER", 2)
        made = by_hand()
        for _ in range(3):
            seen, _ = BY_HAND.but(made=lambda: made).watched()
        with pytest.raises(ParameterError, match="same watch again"), rt.watch(*made[:3]):
            pytest.fail("the loop began")
        assert len(seen.ledger.earlier) == 2


class TestEnteredAgain:
    """One watch around each pass over the data."""

    def test_entering_twice_at_once_is_refused(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            with pytest.raises(ParameterError, match="entered twice"):
                watch.__enter__()
            run(*made, epochs=1)

    @pytest.mark.parametrize("when", ["not", "before the error", "after the block"])
    def test_after_an_error_it_goes_on(self, when):
        """As in a notebook: the weights are those of the last step, unless somebody wrote them."""
        made = private()
        watch = rt.watch(*made[:3])
        with pytest.raises(KeyboardInterrupt), watch:
            run(*made, after=stop(3, lambda: write(made) if when == "before the error" else None))
        if when == "after the block":
            write(made)
        with watch:
            run(*made, epochs=1)
        if when == "not":
            assert watch.mechanism() == DPSGD(NOISE, RATE, 9, num_parameters=44, dataset_size=RECORDS)
        else:
            assert facts.WEIGHTS_CHANGED in watch.ledger.faults

    @pytest.mark.parametrize("written", [True, False])
    def test_weights_that_are_written_while_a_watch_sees_no_step(self, written):
        """The ledger begins at the weights before: weights from a generator, as it said."""
        made = private(model=fresh(network()))
        with rt.watch(*made[:3]) as seen:
            if written:
                next(iter(made[0].parameters())).data[0, 0] += 0.5
        with seen:
            run(*made)
        assert void(seen) == written
        assert ("start-weights" in seen.ledger.vouches()) != written


class TestFederatedRounds:
    """One model that is averaged with others after each round: no loop begins where another ended."""

    @staticmethod
    def rounds(start, count=3):
        made, seen = private(), []
        for _ in range(count):
            seen.append(watched(*made, start=start, **ONCE))
            with torch.no_grad():
                for p in made[0].parameters():
                    p.copy_(0.5 * (p + torch.randn_like(p)))
        return seen

    def test_they_are_certified_together(self, tmp_path, quick_documents):
        seen = self.rounds("declared")
        whole = rt.certify(seen)
        assert whole.verify().accepted
        files = [tmp_path / f"{place}.json" for place in range(3)]
        for one, file in zip(seen, files, strict=True):
            one.save(file)
        for found in (whole, rt.certify(files)):
            parts = found.certificate.mechanism["parts"]
            assert sum(part["steps"] for part in parts) == 18
            assert {part["noise_multiplier"] for part in parts} == {NOISE}
