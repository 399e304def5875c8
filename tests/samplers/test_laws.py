"""What holds for every sampler of the list, whatever it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from pydantic import TypeAdapter, ValidationError

from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Declaration
from reticent.certificates.page.page import render_html
from reticent.facts.steps import Drawn
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.messages import Message, said
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import CONDITIONS, Bearing, Kind, Status, condition, worst_first
from reticent.kernel.registry import flat, gathered, parameters_of
from reticent.kernel.risk import advantage
from reticent.kernel.samplers import SAMPLERS, Poisson, Run, Sampler
from reticent.kernel.samplers.base import by_coins, seen_as
from reticent.languages import language, languages
from reticent.mechanisms.codec import mechanism_of, mechanism_record
from reticent.samplers import RandomAllocation, TruncatedPoisson
from reticent.samplers.named import Named
from tests.laws.leaves import BY_NAME, STATED, full, run_of

EACH = pytest.mark.parametrize("kind", SAMPLERS.values(), ids=SAMPLERS)


@EACH
def test_fields_of_another_sampler_are_refused(kind: type[Sampler]) -> None:
    own = {p.name for p in parameters_of(kind)}
    for name in STATED.keys() - own:
        with pytest.raises(ParameterError, match=f"^{name} must be given with the sampler .*, and with no other"):
            gathered(DPSGD, {"sampler": kind.name, **flat(full(kind)), name: STATED[name]})
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            gathered(DPSGD, {"sampler": full(kind), name: STATED[name]})


@EACH
def test_an_accountant_of_opacus_keeps_it(kind: type[Sampler]) -> None:
    """With all that it states: three draws in a step are not one."""
    opacus = pytest.importorskip("reticent.interop.opacus")
    accountant, again = opacus.ReticentAccountant(), opacus.ReticentAccountant()
    accountant.sampler = full(kind)
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert again.sampler == full(kind)


@EACH
def test_a_ledger_takes_no_settings_that_it_cannot_name(kind: type[Sampler]) -> None:
    named, sampler = TypeAdapter(Named), full(kind).in_batches(None)
    if kind in BY_NAME and sampler == kind.of_uses(sampler.uses):
        assert named.validate_python(full(kind)) == sampler
        assert named.validate_python(json.loads(named.dump_json(sampler))) == sampler
        assert named.validate_python(kind.name) == kind()
    else:
        with pytest.raises(ValidationError, match="a sampler without settings of its own"):
            named.validate_python(sampler)


def test_what_is_no_sampler_is_refused() -> None:
    from reticent.pairs import Poisson as RunsOfPoisson

    for wrong in (RunsOfPoisson(3.0), 7, Poisson):
        with pytest.raises(ParameterError, match="sampler must be one of poisson"):
            gathered(DPSGD, {"sampler": wrong})
    with pytest.raises(ParameterError, match=r"write sampler=FixedSize\(\)"):
        DPSGD(1.0, 0.1, 3, sampler="fixed_size")


@EACH
def test_an_event_is_read_back(kind: type[Sampler]) -> None:
    events = pytest.importorskip("reticent.interop.dp_events")
    sampler = full(kind).drawn_once()
    run = run_of(sampler)
    if kind.in_passes:
        assert sampler.event(run) is None
        return
    again = events.from_dp_event(events.to_dp_event(run))
    assert (again.sampler, again.steps, again.noise_multiplier, again.sample_rate) == (sampler, 10, 2.0, 0.2)
    if sampler.event(run) is not None:
        with pytest.raises(UnsupportedError, match="one record per person"):
            events.to_dp_event(DPSGD(2.0, 0.2, 3, dataset_size=20, sampler=sampler, records_per_user=2))


def test_a_loader_that_is_recognised_has_one_sampler() -> None:
    drawn = [kind.drawn for kind in SAMPLERS.values() if kind.drawn is not None]
    assert len(set(drawn)) == len(drawn)
    assert all(seen_as(Drawn(name)) is not None for name in drawn)
    assert {one for one in Drawn if seen_as(one) is None} == {
        *(Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT, Drawn.DISTRIBUTED, Drawn.UNKNOWN),
    }


@dataclass(frozen=True, slots=True, repr=False)
class Twice(Sampler):
    """Poisson sampling at the square of the rate: a sampler of another package, which says nothing beyond its pair."""

    name: ClassVar[str] = "twice"
    title: ClassVar[str] = "twice"
    sentence: ClassVar[str] = "Two coins decide."
    condition: ClassVar[Kind] = Kind(
        "twice-draws",
        said("Two coins of its own put a record into a batch."),
        Bearing.RELEASE,
        "Read the code that tosses coins.",
    )

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        return by_coins(run.noise_multiplier, run.sample_rate**2, run.steps, neighbouring)


@pytest.fixture
def twice():
    yield SAMPLERS.add(Twice)
    SAMPLERS.remove("twice")


def test_a_sampler_that_says_little_gets_little(twice: type[Sampler]) -> None:
    """Nobody who lacks something gains, no event is made up, no person and no attribute is answered for.

    Nor is it known that a batch at rate 1 is all records.
    """
    from reticent.adversaries import Attribute, FinalModel, Relaxed
    from reticent.kernel.adversaries import WorstCase

    run = DPSGD(1.0, 0.1, 5, num_parameters=1000, sampler=Twice())
    truth = WorstCase().assess(run).measure(advantage).value
    assert truth == pytest.approx(WorstCase().assess(DPSGD(1.0, 0.01, 5)).measure(advantage).value, rel=1e-9, abs=0)
    assert Relaxed(dimension=1000).assess(run).measure(advantage).value == pytest.approx(truth, rel=1e-9, abs=0)
    assert mechanism_of(json.loads(json.dumps(mechanism_record(run)))) == run
    for refused in (
        lambda: DPSGD(1.0, 0.1, 5, sampler=Twice(), records_per_user=2).parts_under(Neighbouring.ADD_REMOVE),
        lambda: Attribute(0.1).assess(run),
        lambda: FinalModel(contraction=0.9).assess(DPSGD(4.0, 1.0, 20, sampler=Twice())),
        lambda: pytest.importorskip("reticent.interop.dp_events").to_dp_event(run),
    ):
        with pytest.raises(UnsupportedError):
            refused()


def test_a_sampler_brings_its_condition(twice: type[Sampler]) -> None:
    """Its own words and remedy stand wherever those of other samplers do, in English; without it nobody knows them."""
    known = condition("twice-draws", Status.DECLARED)
    assert known in DPSGD(1.0, 0.1, 5, sampler=Twice()).conditions
    assert worst_first([condition("stated-guarantee"), known, condition("public-divisor")])[-1] == known
    assert list(CONDITIONS).index("public-divisor") < list(CONDITIONS).index("twice-draws") < len(CONDITIONS) - 1
    assert CONDITIONS["twice-draws"].remedy == "Read the code that tosses coins."
    policy = {"schema": "reticent.policy/1", "limits": [{"measure": "advantage", "at_most": 0.5}]}
    policy["accept_conditions"] = ["twice-draws"]
    assert Policy.model_validate(policy).accept_conditions == ("twice-draws",)
    certificate = certify(DPSGD(1.0, 0.1, 5, sampler=Twice()), Declaration(subject="s", created="2026-01-01"))
    for code in ("de", "fr"):
        page = render_html(certificate, language(code))
        assert f'<span lang="en">{Twice.condition.says}' in page
        assert '<span lang="en">Two coins decide.' in page
    policy["accept_conditions"] = ["thrice-draws"]
    with pytest.raises(ParameterError, match="condition must be one of"):
        condition("thrice-draws")
    with pytest.raises(ValidationError, match="accept_conditions"):
        Policy.model_validate(policy)


def test_a_class_that_says_a_known_condition_anew_is_refused_when_it_is_made() -> None:
    """It replaced the sentence of the other one in silence, until somebody read the whole list."""
    for taken in (Poisson.condition, CONDITIONS["clipped"]):
        with pytest.raises(ParameterError, match="a key that no other condition has"):
            type("Anew", (Sampler,), {"name": "anew", "condition": replace(taken, says=said("Nothing."))})
    assert CONDITIONS[Poisson.condition.key] == Poisson.condition


def test_a_sampler_without_a_condition_is_not_listed(monkeypatch) -> None:
    """One of another package ends each command in a line that names the package; see ``Registry``."""
    monkeypatch.setattr(Twice, "condition", "poisson-draws")
    with pytest.raises(TypeError, match=r"^Twice.condition is no reticent.kernel.proofs.Kind$"):
        SAMPLERS.add(Twice)


@EACH
def test_a_sampler_says_it_in_every_language_of_pages(kind: type[Sampler]) -> None:
    for text in filter(None, (kind.sentence, kind.note, kind.exposed, kind.condition.says)):
        assert isinstance(text, Message)
        assert all(text.key in language(code).words for code in languages())


def test_documents_of_our_own_samplers_do_not_depend_on_what_else_is_installed(twice: type[Sampler]) -> None:
    assert "twice" not in json.dumps(
        mechanism_record(Ledger((run_of(RandomAllocation()), run_of(TruncatedPoisson(4)))))
    )
