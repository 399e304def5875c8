"""``reticent reproduce``: every figure and table of the four papers, from stored results or run again."""

from __future__ import annotations

import time

import click

from reticent import papers
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._progress import note, progress_bar
from reticent.cli._tables import print_json, say
from reticent.errors import ParameterError


@command(
    "reproduce",
    argument("entry", str, "[ID|all]", "Run this one again; all: every one.", required=False),
    option("quick", bool, "With all: leave out what takes more than a minute."),
    option("keep", bool, "Store the new results and pictures in the checkout."),
    option("page", bool, "Write the gallery and docs/evidence/utility.md of the checkout anew."),
    JSON,
)
def reproduce(entry: str | None, quick: bool, keep: bool, page: bool, json: bool) -> None:
    """Figures and tables of the four papers: published, ours, verdict.

    Without an id the stored results are listed. With one it runs again (in a checkout of the repository); the exit code
    is 1 if a number drifted from the stored result.
    """
    if keep and entry is None:
        raise ParameterError("keep", keep, "given with an id, or with all", shown=False)
    if quick and entry != "all":
        raise ParameterError("quick", entry, "given with `reticent reproduce all` only")
    drifted = {} if entry is None else _run(entry, quick, keep, json)
    if page:
        _write_page()
    if json:
        _print_json(entry, drifted)
    elif entry is None and not page:
        _print_list()
    if any(drifted.values()):
        raise click.exceptions.Exit(1)


def _run(entry: str, quick: bool, keep: bool, json: bool) -> dict[str, tuple[str, ...]]:
    """Run one id, or every id that has a script; what drifted, by id."""
    ids = papers.scripted_ids() if entry == "all" else (entry,)
    drifted = {}
    with progress_bar("figures and tables") as bar:
        for done, name in enumerate(ids):
            if bar is not None:
                bar(done, len(ids))
            chosen, start = papers.load_entry(name), time.process_time()
            if quick and chosen.slow:
                note(f"{name}: left out, it takes minutes")
                continue
            result, picture = papers.run_entry(chosen)
            drifted[name] = result.drift(papers.stored(name)) if name in papers.stored_ids() else ("not stored yet",)
            if keep:
                papers.keep(result, picture)
            says = "; ".join(drifted[name]) or "as stored"
            seconds = time.process_time() - start
            note(f"{name}: {result.verdict.value}; {says} ({seconds:.1f} s)")
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
