"""Laws of facts: effects only add risk, in any order; nobody gains by silence; words and lists are whole.

Each law is a function that names what breaks it. A bug is planted for each, and must be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain as joined
from itertools import combinations, pairwise
from pkgutil import iter_modules
from typing import Any

import pytest

import reticent as rt
from reticent import facts
from reticent.certificates.document.rounding import leaves
from reticent.facts import Fact, Severity, all_facts
from reticent.facts.base import Reading, Seen
from reticent.facts.clipping import Mixing
from reticent.facts.planned_steps import PlannedSteps
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.proofs import Status
from reticent.languages import language
from reticent.records import ledger as ledgers_of_reticent
from reticent.records.ledger import RunLedger
from tests.certificates.conftest import in_stages, make_ledger
from tests.certificates.edits import Edit, edited, parsed, read
from tests.certificates.ledgers import chain, poisson, secure_loop, shuffled

Stated = Mapping[str, Any]
FIXED_SIZE = {"drawn": "fixed-size", "source": "declared", "name": "declared", "sample_rate": 0.2}
ALLOCATED = {"drawn": "random-allocation", "source": "seen", "name": "RandomAllocation"}
SEVERAL = [{"noise_multiplier": 1.1, "steps": 9, "batches": 2, "passes": 3}]
IN_PASSES = {"dataset_size": 60, "batches_per_epoch": 6, "times_per_epoch": 1}
LEDGERS: dict[str, Callable[[], RunLedger]] = {
    "opacus": poisson,
    "plain loop": shuffled,
    "accumulation": lambda: shuffled(segments=SEVERAL),
    "fixed size": lambda: poisson(sampler=FIXED_SIZE),
    "allocation": lambda: shuffled(
        sampler=ALLOCATED | IN_PASSES, segments=[{"noise_multiplier": 4.0, "steps": 6, "passes": 1}]
    ),
    "chain": chain,
    "run": make_ledger,
    "run in stages": in_stages,
}
BEGUN = start_at("cd" * 32, "unknown", Source.DECLARED)[0]
UNKNOWN = "records-read-aloud"
PLANS = (None, PlannedSteps(steps=3), PlannedSteps(steps=40))
"""No plan, one of fewer steps than ran, one of more."""


def test_what_the_laws_begin_with_is_accepted() -> None:
    assert [name for name, made in LEDGERS.items() if list(made().contradictions())] == []


def value_of(fact: Fact) -> Any:
    return ("1",) if fact.key == "mixes-records" else Seen.FOUND


def seen() -> dict[str, Any]:
    """What only a detector can say, with what it says."""
    return {key: value_of(fact) for key, fact in all_facts().items() if fact.shown is None and fact.said}


def places(name: str) -> Iterator[Callable[[Stated], RunLedger]]:
    """The ledger, or the first of a chain, with other facts."""
    ledger = LEDGERS[name]()
    yield lambda stated: ledger.model_copy(update={"facts": dict(stated)})
    if ledger.earlier:
        (first,) = ledger.earlier
        yield lambda stated: ledger.model_copy(update={"earlier": (first.model_copy(update={"facts": dict(stated)}),)})


def several(*stated: tuple[str, Any]) -> Iterator[Stated]:
    """All subsets."""
    return (dict(part) for part in joined(*(combinations(stated, n) for n in range(len(stated) + 1))))


MOVING = ("batches-not-from-the-loader", "publicly-seeded-draws", "buffers-changed", UNKNOWN)
"""One of each effect, beside the plan."""
TOGETHER = [
    {**found, **({} if plan is None else {"planned-steps": plan})}
    for found in several(*((key, Seen.FOUND) for key in MOVING))
    for plan in PLANS
]


@cache
def risk(released: Mechanism) -> float:
    """What may be claimed of it."""
    return rt.assess(released, rt.WorstCase())[0].measure(rt.advantage).upper


def less(before: RunLedger, after: RunLedger) -> bool:
    """Whether there is less risk afterwards, by more than enclosures differ."""
    was, found = before.mechanism(), after.mechanism()
    return was != found and risk(found) < risk(was) * (1.0 - 1e-6)


def put(monkeypatch: pytest.MonkeyPatch, *others: Fact) -> None:
    """Facts as they are, but for these."""
    found = {**all_facts(), **{fact.key: fact for fact in others}}
    monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda: found)


# effects


def differing(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Stated]:
    """Facts of which the mechanism depends on their order."""
    listed = [*ledgers_of_reticent.all_facts().items()]
    orders = [dict(listed), dict(listed[::-1]), dict(listed[1::2] + listed[::2])]
    wrong = []
    for place in places(name):
        for stated in TOGETHER:
            found = []
            for order in orders:
                monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda order=order: order)
                found.append(place(stated).mechanism())
            wrong += [stated] if found.count(found[0]) < len(found) else []
    return wrong


@pytest.mark.parametrize("name", LEDGERS)
def test_effects_commute(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing(name, monkeypatch) == []


def test_effects_that_look_at_each_other_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, replace(facts.OTHER_BATCHES, effect=lambda _, reading: replace(reading, noisy=reading.secret)))
    assert differing("opacus", monkeypatch)


def milder(name: str) -> list[tuple[Stated, str]]:
    """Facts to which one more is added, after which there is less risk, or more is vouched for."""
    wrong = []
    for place in places(name):
        for stated in TOGETHER:
            more = dict.fromkeys(MOVING, Seen.FOUND) if stated else seen()
            for key, value in more.items():
                before, after = place(stated), place({**stated, key: value})
                wrong += [(stated, key)] if less(before, after) or stronger(after, before) else []
    return wrong


ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def stronger(one: RunLedger, other: RunLedger) -> list[str]:
    """What the one vouches for, and the other does not as much."""
    rank = ORDER.index
    known = other.vouches()
    return [key for key, status in one.vouches().items() if rank(status) > rank(known.get(key, Status.ASSUMED))]


@pytest.mark.parametrize("name", LEDGERS)
def test_one_more_fact_is_never_less_risk(name: str) -> None:
    assert milder(name) == []


@pytest.mark.parametrize(
    "planted",
    [
        {"effect": lambda _, reading: replace(reading, segments=fewer(reading))},
        {"vouches": lambda run: {"hidden-runs": Status.CHECKED} if facts.OTHER_BATCHES.key in run.facts else {}},
    ],
)
def test_a_fact_that_makes_a_run_better_is_seen(planted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, replace(facts.OTHER_BATCHES, **planted))
    assert milder("opacus")


def fewer(reading: Reading) -> tuple[Any, ...]:
    return tuple(part.model_copy(update={"steps": 1}) for part in reading.segments)


@pytest.mark.parametrize("name", LEDGERS)
def test_a_longer_plan_is_never_less_risk(name: str) -> None:
    for place in places(name):
        plans = [{}, *({"planned-steps": PlannedSteps(steps=steps)} for steps in (1, 12, 13, 30))]
        assert not any(less(place(first), place(second)) for first, second in pairwise(plans))


@pytest.mark.parametrize("fact", [facts.OTHER_BATCHES, facts.PUBLIC_DRAWS])
@pytest.mark.parametrize("name", ["opacus", "fixed size", "allocation", "run"])
def test_draws_that_are_not_used_or_not_secret_amplify_nothing(name: str, fact: Fact) -> None:
    ledger = LEDGERS[name]()
    found = ledger.model_copy(update={"facts": {**ledger.facts, fact.key: Seen.FOUND}}).mechanism()
    assert (found.sample_rate, found.steps) == (1.0, ledger.steps)


# what was not looked at, and what is not known


def kinder(fact: Fact, name: str) -> bool:
    """Whether it is worth more that nobody could look than that it was found."""
    found, blind = (
        LEDGERS[name]().model_copy(update={"facts": {fact.key: value}}) for value in (Seen.FOUND, Seen.BLIND)
    )
    return less(found, blind) or bool(stronger(blind, found)) or not {*found.faults} <= {*blind.faults}


@pytest.mark.parametrize("name", LEDGERS)
def test_could_not_look_is_never_kinder_than_found(name: str) -> None:
    detected = [fact for fact in all_facts().values() if fact.shown is None and fact.stated is Seen]
    assert [fact for fact in detected if kinder(fact, name)] == []


@pytest.mark.parametrize("key", [key for key, fact in all_facts().items() if fact.stated is not Seen])
def test_what_states_more_than_found_is_no_fact_without_it(key: str) -> None:
    """A ledger in which it was not looked for, or stands without its value, is none."""
    for said in (*Seen, None, [], {}):
        document = poisson().model_dump(mode="json", by_alias=True)
        assert parsed({**document, "facts": {key: said}}) is None


def test_a_fact_that_forgives_who_could_not_look_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    key = facts.OTHER_BATCHES.key
    forgiving = replace(
        facts.OTHER_BATCHES,
        effect=lambda run, reading: replace(reading, one_by_one=run.facts[key] is not Seen.FOUND),
    )
    put(monkeypatch, forgiving)
    assert kinder(forgiving, "opacus")


def believed(name: str) -> list[Stated]:
    """Facts among which is one that nobody knows, and which leave some noise, some word, or no fault."""
    wrong = []
    for place in places(name):
        for stated in ({}, *({key: value} for key, value in seen().items())):
            one = place({**stated, UNKNOWN: "no"})
            names = [fact.key for fact in one.faults if fact.voids]
            wrong += [stated] if one.vouches() or risk(one.mechanism()) < 1.0 or UNKNOWN not in names else []
    return wrong


@pytest.mark.parametrize("name", LEDGERS)
def test_a_key_that_is_not_known_voids(name: str) -> None:
    assert believed(name) == []


@pytest.mark.parametrize("name", ["opacus", "run"])
def test_an_unknown_key_that_voids_nothing_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers_of_reticent, "known", lambda key: all_facts().get(key) or Fact(key, Severity.NOTE))
    assert believed(name)


# silence


def loops() -> list[RunLedger]:
    """With a start and a plan that their program states."""
    stated = {"start": BEGUN, "facts": {"planned-steps": PlannedSteps(steps=12)}}
    return [made().model_copy(update=stated).sealed() for made in (poisson, secure_loop)]


SILENT = {"planned-steps": ("facts", "planned-steps"), "start-weights": ("start",)}
"""Conditions that a program states, and where."""


def rewarded() -> list[str]:
    """Conditions of which it is worth as much to say nothing as the truth, or more."""
    wrong = []
    for ledger in loops():
        document = ledger.model_dump(mode="json", by_alias=True)
        for key, path in SILENT.items():
            silent = read(edited(document, [Edit(path, None, drop=True)]))
            assert silent is not None
            fine = key in ledger.vouches() and key not in silent.vouches() and key in silent.unstated
            wrong += [] if fine else [key]
    return wrong


def test_who_says_nothing_vouches_for_nothing_and_is_named() -> None:
    assert rewarded() == []
    assert {key for fact in all_facts().values() for key in fact.silent} == {*SILENT}


@pytest.mark.parametrize(
    "planted",
    [
        replace(facts.PLANNED_STEPS, silent={}),
        replace(facts.STEPS_BEFORE, silent={}),
        replace(facts.PLANNED_STEPS, vouches=lambda _: {"planned-steps": Status.DECLARED}),
        replace(facts.STEPS_BEFORE, vouches=lambda _: {"start-weights": Status.DECLARED}),
    ],
    ids=["no plan", "no start", "a plan that nobody stated", "a start that nobody stated"],
)
def test_silence_that_is_worth_something_is_seen(planted: Fact, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, planted)
    assert rewarded()


OTHER_LEDGERS = ("config", "data", "diagnostics", "earlier")
"""Without a part of these it is the ledger of another run."""


def gained(ledger: RunLedger) -> list[tuple[tuple[str, ...], list[str]]]:
    """What may be left out of an accepted ledger, and conditions that it vouches for then more than before."""
    document = ledger.model_dump(mode="json", by_alias=True)
    wrong = []
    for path in {part[:n] for part in leaves(document) for n in range(1, len(part) + 1)}:
        if path[0] in OTHER_LEDGERS:
            continue
        for drop in (True, False):
            silent = read(edited(document, [Edit(path, None, drop=drop)]))
            more = [] if silent is None else stronger(silent, ledger)
            wrong += [(path, more)] if more else []
    return wrong


@pytest.mark.parametrize("ledger", [*loops(), chain(), shuffled(), make_ledger()])
def test_nobody_vouches_for_more_by_leaving_something_out(ledger: RunLedger) -> None:
    assert gained(ledger) == []


def test_what_is_vouched_for_where_nothing_is_stated_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, replace(facts.STEPS_BEFORE, vouches=lambda run: {} if run.start else {"x": Status.DECLARED}))
    assert gained(loops()[0])


# words and lists


def texts() -> dict[str, dict[str, str]]:
    """The words of facts in the English catalogue, by fact and by what they are."""
    found: dict[str, dict[str, str]] = {}
    for key, (text, *_) in language("en").words.items():
        start, _, rest = key.partition(".")
        if start == "fault" and rest and not rest.startswith("unknown."):
            fact, _, what = rest.partition(".")
            found.setdefault(fact, {})[what] = text
    return found


def unsaid(found: Sequence[Fact], words: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Facts without their words, words without their fact, and sentences without an end."""
    keys = {fact.key: fact for fact in found}
    wrong = [key for key in words if key not in keys]
    wrong += [fact.key for fact in found if fact.severity is not Severity.NOTE and fact.key not in words]
    for key, said in words.items():
        ours = {f"{name}.ours" for name in ("reason", "remedy") if key in keys and keys[key].ours}
        known = Mixing if key == facts.MIXES_RECORDS.key else ()
        causes = {f"{name}.{cause}" for name in ("reason", "remedy") for cause in known}
        whole = {"reason", "remedy"} | causes <= said.keys() <= {"reason", "remedy"} | causes | ours
        ends = all(text == text.strip() and text.endswith(".") for text in said.values())
        wrong += [] if whole and ends else [key]
    return wrong


def test_each_fact_has_its_words() -> None:
    found = [*all_facts().values()]
    assert unsaid(found, texts()) == []
    assert {fact.key for fact in found if fact.said} == texts().keys()


def test_every_fact_is_listed() -> None:
    written = [
        one
        for module in iter_modules(facts.__path__)
        for one in vars(import_module(f"reticent.facts.{module.name}")).values()
        if type(one) is Fact
    ]
    assert {id(one) for one in written} == {id(one) for one in all_facts().values()}
    assert len({one.key for one in all_facts().values()}) == len({id(one) for one in written})
