"""Which conditions each answer of the attackers rests on, and so what it may be called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.adversaries import Attribute, Mixed, Relaxed
from reticent.facts.steps import Source
from reticent.kernel.adversaries import WorstCase, assess, assess_answerable
from reticent.kernel.adversaries.base import Method
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim, Status
from reticent.mechanisms import Laplace, OneOf, Selection
from reticent.mechanisms.gradients import Gradients, GradientsRecord, Obstacle
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.pairs import Geometric
from reticent.samplers import AllocatedOnce, Shuffled
from tests.certificates.ledgers import poisson

pytestmark = pytest.mark.usefixtures("coarse")

RUN = DPSGD(2.0, 0.05, 40)


class Saw:
    """A ledger that saw one model."""

    looks_to_stop = False

    def rearranges(self, neighbouring: Neighbouring) -> bool:
        return False

    def __init__(self, form: GradientsRecord | None, **statuses: Status) -> None:
        self.gradients, self._statuses = form, {key.replace("_", "-"): status for key, status in statuses.items()}

    def vouches(self) -> dict[str, Status]:
        return self._statuses


HEAD = GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=20, features="same")
LINE = GradientsRecord(kind=Gradients.ONE_DIRECTION, dimension=20, features="same")
HARD = GradientsRecord(kind=Gradients.HARD_LABEL_HEAD, dimension=20, features="same")
FIXED = GradientsRecord(kind=Gradients.FIXED, dimension=20, features="same", normalised=True)
NETWORK = GradientsRecord(kind=Gradients.ANY, obstacle=Obstacle.NETWORK)


def keys_of(assessment) -> dict[str, Status]:
    return {one.key: one.status for one in assessment.conditions}


@pytest.mark.parametrize(
    ("kind", "dimension", "key"),
    [
        (None, 1, "one-direction-per-person"),
        (None, 30, "independent-directions"),
        (Gradients.FIXED, 1, "one-direction-per-person"),
        (Gradients.FIXED, 30, "independent-directions"),
        (Gradients.ONE_DIRECTION, 1, "independent-directions"),
        (Gradients.ONE_DIRECTION, 30, "independent-directions"),
        (Gradients.LINEAR_HEAD, 30, "independent-directions"),
    ],
)
def test_directions_of_a_person_are_a_condition_of_their_own(kind, dimension, key) -> None:
    """What is stated of gradients says nothing about persons: a page said "Declared" of what nobody had said."""
    found = Relaxed(dimension, gradients=kind).assess(DPSGD(2.0, 0.05, 40, records_per_user=2))
    assert found.claim is Claim.CONDITIONAL
    assert found.vouched({"fixed-length": Status.CHECKED}).claim is Claim.CONDITIONAL
    assert keys_of(found)[key] is Status.ASSUMED
    about = "fixed-length" if kind in (None, Gradients.FIXED) else kind.value
    assert keys_of(found)[about] is (Status.ASSUMED if kind is None else Status.DECLARED)


@pytest.mark.parametrize("kind", [Gradients.ONE_DIRECTION, Gradients.LINEAR_HEAD, Gradients.ANY])
@pytest.mark.parametrize("between", Neighbouring)
def test_gradients_that_may_react_need_no_condition_on_data(kind, between) -> None:
    found = Relaxed(30, gradients=kind).assess(RUN, between)
    assert found.claim is Claim.BOUND
    assert "fixed-length" not in keys_of(found)
    if kind is not Gradients.ANY:
        assert keys_of(found)[kind.value] is Status.DECLARED
        assert keys_of(found)["same-features"] is Status.DECLARED


FITTED = [(LINE, "one-direction"), (HARD, "hard-label-head"), (HEAD, "linear-head"), (FIXED, "fixed")]


@pytest.mark.parametrize("adversary", [Relaxed(5), Mixed(0.5, 5)])
@pytest.mark.parametrize(("form", "kind"), FITTED)
def test_what_a_ledger_saw_of_the_model_answers_an_open_question(adversary, form, kind) -> None:
    saw = Saw(
        form, **dict.fromkeys(("one-direction", "hard-label-head", "linear-head", "fixed-length"), Status.CHECKED)
    )
    (found, worst) = assess(RUN, [adversary], witness=saw)
    assert found.adversary.gradients == Gradients(kind)
    assert found.claim is worst.claim is Claim.BOUND
    assert {Status.CHECKED} <= set(keys_of(found).values())


@pytest.mark.parametrize("door", [assess, lambda *asked, **how: assess_answerable(*asked, **how)[0]])
def test_the_worst_case_that_nobody_asked_for_rests_on_what_the_ledger_saw(door) -> None:
    """What it does not vouch for is assumed, and a start is needed: a number without a ledger would say neither."""
    for one in door(RUN, [Relaxed(5)], witness=Saw(None, poisson_draws=Status.CHECKED)):
        statuses = keys_of(one)
        assert statuses["poisson-draws"] is Status.CHECKED
        assert statuses["start-weights"] is statuses["planned-steps"] is Status.ASSUMED


@pytest.mark.parametrize("form", [NETWORK, GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=20)])
def test_a_network_or_features_that_nobody_saw_leave_the_answer_conditional(form) -> None:
    found = assess_seen(Relaxed(5), RUN, Neighbouring.ADD_REMOVE, Relaxed.methods[0], Saw(form))
    assert found.adversary.gradients is None
    assert found.claim is Claim.CONDITIONAL
    said = [note for note in found.notes if "The form of the model was looked at" in note]
    assert said == ([] if form.obstacle is None else [said[0]])
    assert all(str(note).endswith(str(NETWORK.obstacle.text)) for note in said)


@pytest.mark.parametrize(
    ("adversary", "form", "name"),
    [
        (Relaxed(5, gradients=Gradients.ONE_DIRECTION), NETWORK, "gradients"),
        (Relaxed(5, gradients=Gradients.ONE_DIRECTION), HARD, "gradients"),
        (Relaxed(5, gradients=Gradients.HARD_LABEL_HEAD), HEAD, "gradients"),
        (Relaxed(21, gradients=Gradients.LINEAR_HEAD), HEAD, "dimension"),
        (Relaxed(21), LINE, "dimension"),
        (
            Mixed(0.5, 5, gradients=Gradients.LINEAR_HEAD, known_share=0.1),
            GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=20, features="same", known_share=0.2),
            "known_share",
        ),
        (
            Relaxed(5, gradients=Gradients.LINEAR_HEAD),
            GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=20, features="same", known_share=1e-4),
            "at least 0.0001, as the run has it",
        ),
    ],
)
def test_who_contradicts_what_was_seen_is_refused(adversary, form, name) -> None:
    with pytest.raises(ParameterError, match=name):
        assess(RUN, [adversary], witness=Saw(form))


@pytest.mark.parametrize("kind", [Relaxed, Mixed])
@pytest.mark.parametrize(("stated", "seen"), [(0.0, 1e-9), (0.1, 0.1000002), (0.25, 0.2)])
def test_a_share_that_was_rounded_contradicts_nothing_and_the_larger_one_counts(kind, stated, seen) -> None:
    form = HEAD.model_copy(update={"known_share": seen})
    one = kind(dimension=5, gradients=Gradients.LINEAR_HEAD, known_share=stated)
    (found, _) = assess(RUN, [one], witness=Saw(form, known_share=Status.CHECKED))
    assert found.adversary.known_share == max(stated, seen)
    assert keys_of(found)["known-share"] is Status.CHECKED


@pytest.mark.parametrize(
    "wrong",
    [
        {"gradients": "one-direction"},
        {"known_share": 0.5},
        {"known_share": 1.5, "gradients": Gradients.LINEAR_HEAD},
        {"known_share": 0.5, "gradients": Gradients.FIXED},
        {"known_share": 0.5, "gradients": Gradients.ANY},
    ],
)
def test_contradictions_of_the_parameters_are_refused(wrong) -> None:
    for kind in (Relaxed, Mixed):
        with pytest.raises(ParameterError):
            kind(**wrong)


def test_a_filter_that_looked_at_some_records_is_no_bound_for_all() -> None:
    """And one that stopped the run speaks about its plan."""
    whole = SensitivityRecord(25, Scope.WHOLE_DATA, 0.1, 0.2, 0.05, None, 2.0, budget=0.3)
    for record, claim in ((whole, Claim.BOUND), (replace(whole, scope=Scope.AUDIT_SET), Claim.CONDITIONAL)):
        found = Attribute(record).assess(RUN)
        assert found.claim is claim
        assert ("audited-record" in keys_of(found)) == (claim is Claim.CONDITIONAL)
    with pytest.raises(ParameterError, match="steps"):
        Attribute(replace(whole, budget=None)).assess(RUN)


@pytest.mark.parametrize("who", [WorstCase(), Relaxed()])
def test_several_releases_say_that_none_was_chosen_by_a_result(who) -> None:
    """Composition holds for a plan; whoever looks at one result to choose the next release needs a filter."""
    for parts in ((RUN, replace(RUN, noise_multiplier=3.0)), (Gaussian(2.0), Gaussian(2.0))):
        assert "fixed-plan" in {one.key for one in who.assess(Ledger(parts)).conditions}
    assert "fixed-plan" not in {one.key for one in who.assess(Ledger((RUN,))).conditions}


COIN = OneOf((Gaussian(2.0), Gaussian(4.0)), (1, 1))
ONCE = replace(RUN, sampler=AllocatedOnce())


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((COIN, COIN), True),
        ((Selection(Gaussian(4.0), Geometric(3)),) * 2, True),
        ((RUN, Laplace(2.0, sample_rate=0.1)), True),
        ((RUN, ONCE), True),
        ((COIN, Gaussian(2.0)), False),
        ((RUN, replace(RUN, sampler=Shuffled())), False),
        ((ONCE,) * 2, False),
        ((ONCE,) * 3, True),
    ],
)
def test_parts_that_chance_drew_for_say_that_it_drew_anew(parts, said) -> None:
    """Two parts that used one coin, or the same batches, were certified as if each had its own."""
    assert ("drawn-anew" in {one.key for one in Ledger(parts).conditions}) is said


@pytest.mark.parametrize(("source", "status"), [("seen", Status.CHECKED), ("declared", Status.DECLARED)])
def test_a_ledger_of_one_run_vouches_for_its_draws(source, status) -> None:
    """Noise that changed along a watched run makes parts; its sampler drew each batch anew."""
    run = poisson(segments=[{"noise_multiplier": noise, "steps": 1} for noise in (1.0, 2.0)])
    run = run.model_copy(update={"sampler": run.sampler.model_copy(update={"source": Source(source)})})
    found = assess_seen(WorstCase(), run.mechanism(), Neighbouring.ADD_REMOVE, Method.EXACT, run).conditions
    assert {one.key: one.status for one in found}["drawn-anew"] is status
