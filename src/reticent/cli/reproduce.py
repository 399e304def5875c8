"""``reticent reproduce``: every figure and table of the four papers, from stored results or run again."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from reticent import papers
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._progress import progress_bar
from reticent.cli._tables import print_json, say
from reticent.errors import ParameterError


@command(
    "reproduce",
    argument("entry", str, "[ID|all]", "Run this one again; all: every one.", required=False),
    option("quick", bool, "With all: leave out what takes more than a minute."),
    option("again", bool, "Compute anew what is drawn from stored results; may take hours."),
    option("keep", bool, "Store the new results and pictures in the checkout."),
    option("page", bool, "Write the gallery and docs/evidence/utility.md of the checkout anew."),
    JSON,
)
def reproduce(entry: str | None, quick: bool, again: bool, keep: bool, page: bool, json: bool) -> None:
    """Figures and tables of the four papers: published, ours, verdict.

    Without an id the stored results are listed. With one it runs again (in a checkout of the repository); the exit code
    is 1 if a number drifted from the stored result. What takes minutes is drawn from results of the checkout, which
    cannot drift, unless --again computes them too.
    """
    for name, given in (("keep", keep), ("again", again)):
        if given and entry is None:
            raise ParameterError(name, given, "given with an id, or with all", shown=False)
    if keep and again:
        raise ParameterError("keep", keep, "given without --again, whose results are not those of the checkout")
    if quick and entry != "all":
        raise ParameterError("quick", entry, "given with `reticent reproduce all` only")
    with _results_anew(again) as folder:
        drifted = {} if entry is None else _run(entry, quick, keep, json, folder)
    if page:
        _write_page()
    if json:
        _print_json(entry, drifted)
    elif entry is None and not page:
        _print_list()
    if any(drifted.values()):
        raise click.exceptions.Exit(1)


@contextmanager
def _results_anew(again: bool) -> Iterator[Path | None]:
    """A folder in which this process looks for results; None where those of the checkout do."""
    if not again:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ[papers.RESULTS_ANEW] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[papers.RESULTS_ANEW]


def _run(entry: str, quick: bool, keep: bool, json: bool, anew: Path | None) -> dict[str, tuple[str, ...]]:
    """Run one id, or every id that has a script; what drifted, by id."""
    ids = papers.scripted_ids() if entry == "all" else (entry,)
    console, drifted, computed = Console(stderr=True), {}, set[str]()
    with progress_bar("figures and tables") as bar:
        for done, name in enumerate(ids):
            if bar is not None:
                bar(done, len(ids))
            chosen, start = papers.load_entry(name), time.process_time()
            if quick and chosen.slow:
                console.print(f"{name}: left out, it takes minutes", highlight=False)
                continue
            if anew is not None:
                papers.compute_again(chosen, anew, computed)
            result, picture = papers.run_entry(chosen)
            drifted[name] = result.drift(papers.stored(name)) if name in papers.stored_ids() else ("not stored yet",)
            if keep:
                papers.keep(result, picture)
            redrawn = chosen.stored and anew is None
            says = "; ".join(drifted[name]) or ("drawn from stored results" if redrawn else "as stored")
            seconds = time.process_time() - start
            console.print(f"{name}: {result.verdict.value}; {says} ({seconds:.1f} s)", highlight=False, markup=False)
            if entry != "all" and not json:
                _print_result(result)
    return {} if keep else drifted


def _write_page() -> None:
    results = [papers.stored(i) for i in papers.stored_ids()]
    for name, text in papers.pages(results).items():
        path = papers.checkout() / "docs" / "evidence" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(f"written: {path}", err=True)


def _print_json(entry: str | None, drifted: dict[str, tuple[str, ...]]) -> None:
    ids = papers.stored_ids() if entry is None or entry == "all" else (entry,)
    rows = [papers.document(papers.stored(i)) | ({"drift": drifted[i]} if i in drifted else {}) for i in ids]
    print_json(rows)


def _print_result(result: papers.Result) -> None:
    say(papers.sentence(result))
    for line in papers.compared(result):
        say(f"- {line}", indent=2)
    click.echo(f"stored picture: {papers.picture_of(result.id)}")


def _print_list() -> None:
    click.echo("Figures and tables of the four papers, and what they buy, from stored results")
    for name in papers.stored_ids():
        result = papers.stored(name)
        click.echo(f"{name}: {result.verdict.value}")
        say(f"  {papers.sentence(result)}", indent=2)
