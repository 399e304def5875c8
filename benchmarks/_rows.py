"""What every benchmark prints: rows of one form, and ratios of interleaved timings."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Limit:
    """The physical limit that a row is compared with.

    Attributes:
        what: the arithmetic that stays, whatever the code around it.
        ratio: peer's time over the time of that arithmetic alone, measured in the same process.
    """

    what: str
    ratio: float


@dataclass(frozen=True)
class Row:
    """One line of a benchmark.

    Attributes:
        work: what is computed.
        peer: what it is compared with, on the same work.
        ratio: peer's time over ours: ``min``, ``median``, ``max`` over the repeats.
        error: our error against the reference, in the unit that ``goal`` names.
        goal: what is to be reached, in words; of a row without a goal, what a reader must know instead.
        met: whether it is; None where there is no goal.
        notes: what a reader must know.
        limit: what no code for this work can save, and the ratio if ours took nothing else; None where nobody asked.
        moonshot: the ratio that this project dreams of.
    """

    work: str
    peer: str
    ratio: dict[str, float]
    error: float | None
    goal: str
    met: bool | None
    notes: dict[str, object] = field(default_factory=dict)
    limit: Limit | None = None
    moonshot: float | None = None

    def as_dict(self) -> dict[str, object]:
        """The JSON object."""
        return asdict(self)


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """min, median and max."""
    return {"min": min(ratios), "median": statistics.median(ratios), "max": max(ratios)}


def interleave(
    ours: Callable[[], object],
    peer: Callable[[], object],
    repeats: int,
    pause: float = 0.0,
    before: Callable[[], object] = lambda: None,
) -> list[float]:
    """Time both in turn, in one process, after one untimed call of each; peer's time over ours, per repeat.

    ``pause`` seconds before each call let idle threads of the other side's libraries stop spinning. ``before`` is
    called before each of them, untimed.
    """
    ours()
    peer()
    ratios = []
    for _ in range(repeats):
        time.sleep(pause)
        before()
        fast = _seconds(ours)
        time.sleep(pause)
        before()
        ratios.append(_seconds(peer) / fast)
    return ratios


def forget() -> None:
    """Empty every cache of what computes: a repeat must do the work again."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("reticent.accountants", "reticent.adversaries", "reticent.kernel", "reticent.pairs")):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def limit(
    what: str,
    floor: Callable[[], object],
    ours: Callable[[], object],
    ratio: float,
    repeats: int = 5,
    before: Callable[[], object] = lambda: None,
) -> Limit:
    """What ``ratio``, the peer's time over ours, would be if ours took only the time of ``floor``; both in turn."""
    return Limit(what, ratio * statistics.median(interleave(floor, ours, repeats, before=before)))


def main(rows: Callable[[], Iterable[Row]], description: str) -> None:
    """Print each row as soon as it is there; with ``--json`` as the elements of one JSON array."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    as_json = parser.parse_args().json
    lead = "["
    for row in rows():
        if as_json:
            print(lead + "\n" + json.dumps(row.as_dict(), indent=1, allow_nan=False), end="", flush=True)
            lead = ","
        else:
            print(row_as_text(row.as_dict()), flush=True)
    if as_json:
        print("[]" if lead == "[" else "\n]")


def rows_as_text(table: Sequence[dict[str, object]]) -> list[str]:
    """One line for each row."""
    return [row_as_text(row) for row in table]


def row_as_text(row: dict[str, object]) -> str:
    """Work, ratios, error, and whether the goal is met."""
    ratio = row["ratio"]
    assert isinstance(ratio, dict)
    mark = "no goal" if row["met"] is None else "met" if row["met"] else "NOT MET"
    numbers = f"{ratio['min']:9.3g} {ratio['median']:9.3g} {ratio['max']:9.3g}"
    error = "" if row["error"] is None else f"{row['error']:.3g}"
    return f"{row['work']:52s} {numbers}  error {error:9s} {mark:8s} {row['goal']}"


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
