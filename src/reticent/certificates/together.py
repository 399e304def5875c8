"""Several releases from the same records: all of them together, each alone, and the ledger that each rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.certificates.document.ledger_rules import refuse_contradictions
from reticent.certificates.document.schema import CitedRelease
from reticent.facts.steps import Randomness
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.kernel.text import digits, printable
from reticent.records.chain import holds
from reticent.records.ledger import RunLedger
from reticent.records.parts import PublicData
from reticent.records.publication import published

_DELTA = 1e-5


@dataclass(frozen=True)
class OneRelease:
    """One of several.

    Attributes:
        name: what to call it.
        mechanism: what it released.
        ledger: that says so; None where it is only stated.
    """

    name: str
    mechanism: Mechanism
    ledger: RunLedger | None = None

    def cited(self) -> CitedRelease | None:
        """Its ledger as a document cites it: by what its own public certificate shows of it."""
        ledger = self.ledger
        if ledger is None:
            return None
        shown = published(ledger)
        data = shown.data.commitment if isinstance(shown.data, PublicData) else None
        warnings = tuple(fact.key for fact in ledger.faults)
        silent = tuple(sorted(ledger.unstated - ledger.vouches().keys()))
        return CitedRelease(ledger=shown.digest, training_data=data, warnings=warnings, silent=silent)

    def alone(self) -> list[str]:
        """What it shows by itself, and the warnings of its ledger."""
        found = WorstCase().assess(self.mechanism, Neighbouring.ADD_REMOVE)
        most = found.measure(advantage).value, found.measure(epsilon_at_delta, _DELTA).value
        shown, name = [digits(value, 4, up=True) for value in most], printable(self.name)
        numbers = f"advantage at most {shown[0]}, epsilon at most {shown[1]} at delta {_DELTA:g}"
        cited = self.cited()
        warned = [] if cited is None else [f"! {name}: {warning}" for warning in cited.warnings]
        return [f"alone, {name}: {numbers} (worst case, add-remove)", *warned]


def released_together(releases: Sequence[OneRelease]) -> Ledger:
    """All releases as one ledger; a loop that another one continues counts once.

    Args:
        releases: at least two.

    Raises:
        ParameterError: there are fewer, or they protect different units.
        ArtifactError: a ledger contradicts itself, one run is given twice, or two runs drew their noise from one seed.
    """
    if len(releases) < 2:
        raise ParameterError("what", len(releases), "two releases or more")
    ledgers = [one.ledger for one in releases if one.ledger is not None]
    for ledger in ledgers:
        refuse_contradictions(ledger)
    _refuse_one_run_twice(releases)
    _refuse_shared_noise(ledgers)
    counted = [one for one in releases if not any(holds(other, one.ledger) for other in ledgers if one.ledger)]
    return Ledger(tuple(part for one in counted for part in one.mechanism.parts))


def _refuse_one_run_twice(releases: Sequence[OneRelease]) -> None:
    """One run releases once: a run that was made again has a ledger of its own, with another digest."""
    names: dict[str, str] = {}
    for one in releases:
        if one.ledger is not None:
            first = names.get(one.ledger.digest)
            if first is not None:
                raise ArtifactError(f"{printable(first)} and {printable(one.name)} are the same run: name it once")
            names[one.ledger.digest] = one.name


def _refuse_shared_noise(runs: Sequence[RunLedger]) -> None:
    """Noise that two releases share is taken away by who sees both: they are not independent."""
    where = {run.digest: run.environment for run in runs}
    seeded = {
        key: None if one.seeds is None else one.seeds.noise
        for key, one in where.items()
        if one.randomness is Randomness.REPRODUCIBLE
    }
    if len(set(seeded.values())) < len(seeded):
        raise ArtifactError("two of these runs drew their noise from one seed: who has both can take it away")
