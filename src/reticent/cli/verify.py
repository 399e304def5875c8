"""``reticent verify``: derive a certificate again and compare every number and sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from reticent.certificates.browser_check import BROWSER_MARK, browser_checker
from reticent.certificates.check import Checked, check
from reticent.certificates.verify import ROUNDING, State
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._limits import limited
from reticent.cli._options import TIMEOUT
from reticent.cli._progress import waiting
from reticent.cli._tables import say
from reticent.io.outputs import refuse_foreign, write_output

_MOST_LINES = 20


@command(
    "verify",
    argument("certificate", Path, "CERTIFICATE", "A certificate.json, certificate.public.json or page."),
    option("key", Path, "Public key of the issuer: require its signature; may be repeated.", many=True),
    option("threshold", int, "How many of several keys are enough; default: all."),
    option("signature", Path, "A detached envelope; default: the embedded signatures."),
    option("opening", Path, "A certificate.opening.json: open the commitments to the data."),
    option("data", Path, "With --opening: the table that was trained on."),
    option("weights", Path, "The file of weights: compare its fingerprint."),
    option("browser_page", Path, "Also write a page that checks certificates in a browser, offline, without Python."),
    option("tolerance", float, f"Accept numbers that differ by this factor, at most {ROUNDING:g}.", 0.0),
    TIMEOUT,
    JSON,
)
def verify(certificate: Path, browser_page: Path | None, timeout: float, json: bool, **given: Any) -> None:
    """Derive the whole certificate again; exit code 1 when something does not agree, 2 when it cannot be checked."""
    if browser_page is not None:
        refuse_foreign(browser_page, BROWSER_MARK)
    with limited(certificate, timeout), waiting("deriving") as progress:
        found = check(certificate, **given, progress=progress)
    if browser_page is not None:
        write_output(browser_page, browser_checker(), BROWSER_MARK)
    if json:
        click.echo(found.to_json(), nl=False)
    else:
        say(_verdict(certificate, found) if found.accepted else f"{certificate}: REFUSED")
        say(*_told(found) if found.accepted else _reasons(found), indent=2)
        say(*_declared(found), indent=2)
    if not found.accepted:
        raise click.exceptions.Exit(1)


def _verdict(path: Path, found: Checked) -> str:
    what = "the mechanism that it declares" if found.document.ledger is None else "the ledger in it"
    equal = found.verification.equal
    return f"{path}: ACCEPTED. All {equal} numbers and sentences that follow from {what} were derived again."


def _told(found: Checked) -> Iterator[str]:
    yield from found.compared
    yield from (f"! {line}" for line in found.reservations())


def _reasons(found: Checked) -> Iterator[str]:
    outcome = found.verification
    yield from (f"refused: {problem}" for problem in found.problems)
    refused = [difference for difference in outcome.differences if outcome.refuses(difference)]
    rounded = [difference for difference in refused if difference.state is State.ROUNDED]
    causes_first = sorted((d for d in refused if d not in rounded), key=lambda d: not d.rule)
    for difference in causes_first[:_MOST_LINES]:
        line = f"{difference.leaf} is {difference.stated}, derived {difference.found}"
        if difference.rule:
            line = f"{difference.leaf} is {difference.stated}; it {difference.found}"
        if difference.leaf == "signatures":  # nothing is derived
            line = difference.found.strip("'\"")
        yield f"{difference.state.value}: {line}"
    if len(refused) - len(rounded) > _MOST_LINES:
        yield f"... and {len(refused) - len(rounded) - _MOST_LINES} more"
    if rounded:
        yield (
            f"rounded: {len(rounded)} numbers differ in their last digits, such as {rounded[0].leaf}. Another kind of "
            f"processor rounds that way. If that is acceptable, say --tolerance {ROUNDING:g}"
        )


def _declared(found: Checked) -> Iterator[str]:
    """What nobody can derive."""
    for name, value in sorted(found.document.declared.model_dump(mode="json").items()):
        if value:
            yield f"declared: {name} = {value}"
    facts = sum(not leaf.startswith("declared.") for leaf in found.verification.declared)
    if facts:
        where = "ledger of the run" if found.document.ledger is not None else "mechanism"
        yield f"declared: {facts} facts of the {where}"
