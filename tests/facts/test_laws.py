"""Laws of facts: effects only add risk, in any order; nobody gains by silence; words and lists are whole.

A bug is planted for each in tests/mutants/table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from reticent.facts.base import Seen
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

pytestmark = pytest.mark.usefixtures("coarse")

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


# effects


@pytest.mark.parametrize("name", LEDGERS)
def test_effects_commute(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [*all_facts().items()]
    orders = [dict(listed), dict(listed[::-1]), dict(listed[1::2] + listed[::2])]
    for place in places(name):
        for stated in TOGETHER:
            found = []
            for order in orders:
                monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda order=order: order)
                found.append(place(stated).mechanism())
            assert found.count(found[0]) == len(found), stated


ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def stronger(one: RunLedger, other: RunLedger) -> list[str]:
    """What the one vouches for, and the other does not as much."""
    rank = ORDER.index
    known = other.vouches()
    return [key for key, status in one.vouches().items() if rank(status) > rank(known.get(key, Status.ASSUMED))]


@pytest.mark.parametrize("name", LEDGERS)
def test_one_more_fact_is_never_less_risk(name: str) -> None:
    """Nor is more vouched for."""
    for place in places(name):
        for stated in TOGETHER:
            more = dict.fromkeys(MOVING, Seen.FOUND) if stated else seen()
            for key, value in more.items():
                before, after = place(stated), place({**stated, key: value})
                assert not less(before, after), (stated, key)
                assert stronger(after, before) == [], (stated, key)


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


@pytest.mark.parametrize("name", LEDGERS)
def test_a_key_that_is_not_known_voids(name: str) -> None:
    """It leaves no noise, no word of what is vouched for, and a fault."""
    for place in places(name):
        for stated in ({}, *({key: value} for key, value in seen().items())):
            one = place({**stated, UNKNOWN: "no"})
            assert one.vouches() == {}, stated
            assert risk(one.mechanism()) == 1.0, stated
            assert UNKNOWN in [fact.key for fact in one.faults if fact.voids], stated


# silence


def loops() -> list[RunLedger]:
    """With a start and a plan that their program states."""
    stated = {"start": BEGUN, "facts": {"planned-steps": PlannedSteps(steps=12)}}
    return [made().model_copy(update=stated).sealed() for made in (poisson, secure_loop)]


SILENT = {"planned-steps": ("facts", "planned-steps"), "start-weights": ("start",)}
"""Conditions that a program states, and where."""


def test_who_says_nothing_vouches_for_nothing_and_is_named() -> None:
    for ledger in loops():
        document = ledger.model_dump(mode="json", by_alias=True)
        for key, path in SILENT.items():
            silent = read(edited(document, [Edit(path, None, drop=True)]))
            assert silent is not None
            assert key in ledger.vouches()
            assert key not in silent.vouches()
            assert key in silent.unstated
    assert {key for fact in all_facts().values() for key in fact.silent} == {*SILENT}


OTHER_LEDGERS = ("config", "data", "diagnostics", "earlier")
"""Without a part of these it is the ledger of another run."""


@pytest.mark.parametrize("ledger", [*loops(), chain(), shuffled(), make_ledger()])
def test_nobody_vouches_for_more_by_leaving_something_out(ledger: RunLedger) -> None:
    document = ledger.model_dump(mode="json", by_alias=True)
    for path in {part[:n] for part in leaves(document) for n in range(1, len(part) + 1)}:
        if path[0] in OTHER_LEDGERS:
            continue
        for drop in (True, False):
            silent = read(edited(document, [Edit(path, None, drop=drop)]))
            assert silent is None or stronger(silent, ledger) == [], path


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


def test_each_fact_has_its_words() -> None:
    """And each word its fact, each sentence its end."""
    known, words = all_facts(), texts()
    assert {key for key, fact in known.items() if fact.said} == words.keys()
    assert {key for key, fact in known.items() if fact.severity is not Severity.NOTE} <= words.keys()
    for key, said in words.items():
        ours = {f"{name}.ours" for name in ("reason", "remedy") if known[key].ours}
        causes = Mixing if key == facts.MIXES_RECORDS.key else ()
        needed = {"reason", "remedy", *(f"{name}.{cause}" for name in ("reason", "remedy") for cause in causes)}
        assert needed <= said.keys() <= needed | ours, key
        assert all(text == text.strip() and text.endswith(".") for text in said.values()), key


def test_every_fact_is_listed() -> None:
    written = [
        one
        for module in iter_modules(facts.__path__)
        for one in vars(import_module(f"reticent.facts.{module.name}")).values()
        if type(one) is Fact
    ]
    assert {id(one) for one in written} == {id(one) for one in all_facts().values()}
    assert len({one.key for one in all_facts().values()}) == len({id(one) for one in written})
