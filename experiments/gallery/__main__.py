"""``python -m experiments.gallery``: every figure and table of the four papers, from stored results or run again."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from experiments import gallery
from reticent.kernel.errors import ParameterError, ReticentError


@click.command()
@click.argument("entry", metavar="[ID|all]", required=False)
@click.option("--quick", is_flag=True, help="With all: leave out what takes more than a minute.")
@click.option("--again", is_flag=True, help="Compute anew what is drawn from stored results; may take hours.")
@click.option("--keep", is_flag=True, help="Store the new results and pictures.")
@click.option("--json", "as_json", is_flag=True, help="Print strict JSON and nothing else.")
def reproduce(entry: str | None, quick: bool, again: bool, keep: bool, as_json: bool) -> None:
    """Figures and tables of the four papers: published, ours, verdict.

    Without an id the stored results are listed. With one it runs again; the exit code is 1 if a number drifted from the
    stored result. What takes minutes is drawn from results of the checkout, which cannot drift, unless --again computes
    them too.
    """
    for name, given in (("keep", keep), ("again", again)):
        if given and entry is None:
            raise ParameterError(name, given, "given with an id, or with all", shown=False)
    if keep and again:
        raise ParameterError("keep", keep, "given without --again, whose results are not those of the checkout")
    if quick and entry != "all":
        raise ParameterError("quick", entry, "given with all only")
    with _results_anew(again) as folder:
        drifted = {} if entry is None else _run(entry, quick, keep, as_json, folder)
    if as_json:
        _print_json(entry, drifted)
    elif entry is None:
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
        os.environ[gallery.RESULTS_ANEW] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[gallery.RESULTS_ANEW]


def _run(entry: str, quick: bool, keep: bool, as_json: bool, anew: Path | None) -> dict[str, tuple[str, ...]]:
    """Run one id, or every id that has a script; what drifted, by id."""
    ids = gallery.scripted_ids() if entry == "all" else (entry,)
    drifted, computed = {}, set[str]()
    for name in ids:
        chosen, start = gallery.load_entry(name), time.process_time()
        if quick and chosen.slow:
            click.echo(f"{name}: left out, it takes minutes", err=True)
            continue
        if anew is not None:
            gallery.compute_again(chosen, anew, computed)
        result, picture = gallery.run_entry(chosen)
        drifted[name] = result.drift(gallery.stored(name)) if name in gallery.stored_ids() else ("not stored yet",)
        if keep:
            gallery.keep(result, picture)
        redrawn = chosen.stored and anew is None
        says = "; ".join(drifted[name]) or ("drawn from stored results" if redrawn else "as stored")
        click.echo(f"{name}: {result.verdict.value}; {says} ({time.process_time() - start:.1f} s)", err=True)
        if entry != "all" and not as_json:
            _print_result(result)
    return {} if keep else drifted


def _print_json(entry: str | None, drifted: dict[str, tuple[str, ...]]) -> None:
    ids = gallery.stored_ids() if entry is None or entry == "all" else (entry,)
    rows = [gallery.document(gallery.stored(i)) | ({"drift": drifted[i]} if i in drifted else {}) for i in ids]
    click.echo(json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False))


def _print_result(result: gallery.Result) -> None:
    _say(gallery.sentence(result))
    for line in gallery.compared(result):
        _say(f"- {line}")
    click.echo(f"stored picture: {gallery.picture_of(result.id)}")


def _print_list() -> None:
    click.echo("Figures and tables of the four papers, and what they buy, from stored results")
    for name in gallery.stored_ids():
        result = gallery.stored(name)
        click.echo(f"{name}: {result.verdict.value}")
        _say(f"  {gallery.sentence(result)}")


def _say(text: str) -> None:
    click.echo(textwrap.fill(text, 100, subsequent_indent="  "))


def main(words: Sequence[str] | None = None) -> int:
    """Bad input ends in one line and exit code 2."""
    try:
        return reproduce.main(words, "python -m experiments.gallery", standalone_mode=False) or 0
    except (ReticentError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"gallery: {message}", err=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
