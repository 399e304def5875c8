"""What a forger does to a ledger: random edits of one or two facts, and what becomes of the numbers."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reticent.certificates.ledger_rules import refuse_contradictions
from reticent.certificates.rounding import leaves
from reticent.errors import ReticentError
from reticent.mechanisms import DPSGD, Ledger, Mechanism, Neighbouring
from reticent.records.ledger import RunLedger

Document = dict[str, Any]
WORDS = ("", "poisson", "shuffled", "seen", "unknown", "flat", "fresh", "secure generator", "linear-head", "x")


@dataclass(frozen=True)
class Edit:
    """A path inside a document, and what is written there; None as a value takes the entry away."""

    path: tuple[str, ...]
    value: Any
    drop: bool = False

    def on(self, document: Document) -> None:
        here: Any = document
        for part in self.path[:-1]:
            here = here[int(part)] if isinstance(here, list) else here[part]
        last = int(self.path[-1]) if isinstance(here, list) else self.path[-1]
        if self.drop:
            del here[last]
        else:
            here[last] = self.value


def random_edit(document: Document, choice: random.Random) -> Edit:
    """One fact with another value of its kind, or none, or gone."""
    facts = [path for path in leaves(document) if path[0] != "digest"]
    long = [path for path in facts if path[0] == "diagnostics"]
    path = choice.choice([path for path in facts if path not in long] + long[:3])
    value: Any = document
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    if choice.random() < 0.1:
        return Edit(path, None, drop=True)
    if choice.random() < 0.1:
        return Edit(path, None)
    return Edit(path, _other(value, choice))


def _other(value: Any, choice: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return choice.choice([not value, 1, choice.uniform(0.0, 50.0), choice.choice(WORDS)])
    if isinstance(value, int):
        return max(0, choice.choice([value + choice.choice((-1, 1)), int(value * choice.uniform(0.0, 4.0)), 10**6, 1]))
    if isinstance(value, float):
        return choice.choice([value * choice.uniform(0.01, 100.0), value * 2.0, value / 2.0, 1.0])
    if isinstance(value, str):
        return choice.choice([*WORDS, value[:-1], value + "0", value.swapcase()])
    return []


def edited(document: Document, edits: list[Edit]) -> Document:
    """A copy with the edits, one after the other, as far as they still find their place."""
    changed = copy.deepcopy(document)
    for edit in edits:
        try:
            edit.on(changed)
        except (KeyError, IndexError, TypeError):
            continue
    return changed


def read(document: Document, *, complete: bool, sealed: bool) -> RunLedger | None:
    """The ledger that whoever certifies it gets, or None where it is refused; ``sealed`` by the forger if asked."""
    try:
        ledger = RunLedger.model_validate(document)
        if complete != (ledger.diagnostics is not None):
            return None
        ledger = ledger.sealed() if sealed else ledger
        refuse_contradictions(ledger)
        ledger.mechanism()
    except (ReticentError, ValueError, OverflowError):
        return None
    return ledger


def risk(mechanism: Mechanism) -> float:
    """A number that grows with what is released: the sum over steps of (sample rate / noise)^2."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    return sum(_of(part) for part in parts)


def _of(part: Mechanism) -> float:
    assert isinstance(part, DPSGD)
    if part.noise_multiplier == 0.0:
        return float("inf")
    (found, *_) = part.parts_under(Neighbouring.ADD_REMOVE)
    rate = getattr(found.pair, "sample_rate", 1.0)
    return float((part.records_per_user or 1) * found.count * (rate / part.noise_multiplier) ** 2)


def lower_in(honest: RunLedger, forged: RunLedger) -> bool:
    """Whether some number of the certificate of ``forged`` can be below that of ``honest``."""
    before, after = honest.mechanism(), forged.mechanism()
    if before == after and honest.vouches() == forged.vouches():
        return False
    gone = getattr(before, "records_per_user", None), getattr(after, "records_per_user", None)
    fewer = (gone[1] or 1) < (gone[0] or 1)
    return risk(after) < risk(before) * (1.0 - 1e-9) or fewer or more_vouched(honest, forged)


def more_vouched(honest: RunLedger, forged: RunLedger) -> bool:
    return bool(set(forged.vouches().items()) - set(honest.vouches().items()))


def attacks(document: Document, count: int, seed: int) -> Iterator[list[Edit]]:
    """Single and double edits, drawn anew each time."""
    choice = random.Random(seed)  # noqa: S311
    for _ in range(count):
        edits = [random_edit(document, choice)]
        if choice.random() < 0.5:
            edits.append(random_edit(edited(document, edits), choice))
        yield edits
