"""``reticent verify``: derive a certificate again and compare every number and sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reticent.certificates.check import Checked
from reticent.certificates.page.browser_check import BROWSER_MARK, browser_checker
from reticent.certificates.verify import ROUNDING, State
from reticent.cli._app import option
from reticent.cli._asking import asking, told
from reticent.cli._limits import limited
from reticent.cli._options import TIMEOUT
from reticent.cli._tables import say
from reticent.cli.progress import waiting
from reticent.io.outputs import refuse_foreign, write_output
from reticent.verbs.verifying import Verified, Verify

_MOST_LINES = 20


def _do(request: Verify, given: Mapping[str, Any], json: bool) -> None:
    """Compare, and say what was found; exit code 1 where something does not agree."""
    path, page = Path(str(request.certificate)), given["browser_page"]
    if page is not None:
        refuse_foreign(page, BROWSER_MARK)
    with limited(path, given["timeout"]), waiting("deriving") as progress:
        answer = request.answer(progress)
    if page is not None:
        write_output(page, browser_checker(), BROWSER_MARK)
    if not isinstance(answer, Verified):  # the report of an audit
        told(answer, given, json)
        return
    told(answer, given, json, lambda answer, given: _show(path, answer.checked))


def _show(path: Path, found: Checked) -> None:
    say(_verdict(path, found) if found.accepted else f"{path}: REFUSED")
    say(*_told(found) if found.accepted else _reasons(found), indent=2)
    say(*_declared(found), indent=2)


ASKED = {Verify: _do}


SHOWN_BY = (
    option("browser_page", Path, "Also write a page that checks certificates in a browser, offline, without Python."),
    TIMEOUT,
)
verify = asking(
    "verify",
    Verify,
    _do,
    after=SHOWN_BY,
    help="Derive the whole certificate again; exit code 1 when something does not agree, 2 when it cannot be checked.",
)


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
