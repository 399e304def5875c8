"""``reticent register``: all releases from one data set, and what its budget leaves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reticent import _check
from reticent.cli._app import JSON, Listing, argument, command, option
from reticent.cli._keys import private_key
from reticent.cli._paths import several
from reticent.cli._tables import print_json, say
from reticent.errors import ArtifactError, ParameterError
from reticent.mechanisms import Neighbouring
from reticent.proofs import CONDITIONS

if TYPE_CHECKING:
    from reticent.certificates.register import Register
    from reticent.certificates.schema import Certificate

_FILE = argument("file", Path, "REGISTER", "The register, a file of signed lines.")
_SIGN = option("sign", Path, "Private key of reticent keygen, which signs the line.", required=True)
_HEAD = option("head", str, "The head that was printed last: so many lines must still be there.")
_KEYS = option("key", Path, "Public key that may have signed lines; repeatable.", many=True)


@command(
    "open",
    _FILE,
    option("name", str, "The name of the data set.", required=True),
    option("budget", str, "The most risk of all releases together, as epsilon=3@1e-5.", required=True),
    option("neighbouring", str, "Between which data sets.", "add-remove"),
    _SIGN,
    JSON,
)
def _open(file: Path, name: str, budget: str, neighbouring: str, sign: Path, json: bool) -> None:
    """Begin a register, with a budget."""
    from reticent.certificates.register import LONGEST, Opened, open_register

    relation = _check.member(Neighbouring, neighbouring=neighbouring)
    for stated, text in {"name": name, "budget": budget}.items():
        if not 1 <= len(text) <= LONGEST:
            raise ParameterError(stated, text, f"a text of 1 to {LONGEST} characters")
    opened = Opened(data=name, budget=budget, neighbouring=relation)
    _shown(open_register(file, opened, _now(), private_key(sign)), json)


@command(
    "add",
    _FILE,
    several("CERTIFICATE...", "The certificate of a release, or its page; of several, all are entered or none."),
    _SIGN,
    _KEYS,
    option("anyway", bool, "Enter it although the budget does not allow it: it is out already."),
    _HEAD,
    JSON,
)
def _add(
    file: Path, paths: tuple[Path, ...], sign: Path, key: tuple[Path, ...], anyway: bool, head: str | None, json: bool
) -> None:
    """Enter releases by their certificates."""
    from reticent.certificates.check import read_document
    from reticent.certificates.register import enter
    from reticent.certificates.verify import verify
    from reticent.signing.keys import load_public_key

    documents: dict[str, Certificate] = {}
    for path in paths:
        document, problems = read_document(path)
        if problems or not verify(document).accepted:
            raise ArtifactError(f"{path}: does not agree with itself; reticent verify says where")
        if str(path) in documents:
            raise ArtifactError(f"{path}: is named twice")
        documents[str(path)] = document
    keys, what = [load_public_key(path) for path in key], documents if len(paths) > 1 else document
    _shown(enter(file, what, _now(), private_key(sign), keys, anyway=anyway, head=head), json)


@command(
    "show",
    _FILE,
    option("key", Path, "Public key that may have signed lines; repeatable.", many=True, required=True),
    _HEAD,
    JSON,
)
def _show(file: Path, key: tuple[Path, ...], head: str | None, json: bool) -> None:
    """Check the register, and say what is left."""
    from reticent.certificates.register import read_register
    from reticent.signing.keys import load_public_key

    _shown(read_register(file, [load_public_key(path) for path in key], head), json)


_MADE = {str(one.name): one for one in (_open, _add, _show)}
register = Listing(
    "register",
    lambda: {name: str(one.help) for name, one in _MADE.items()},
    _MADE.__getitem__,
    help="All releases from one data set.",
)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(register: Register, json: bool) -> None:
    from reticent.certificates.register import TORN

    spent = register.spent()
    subjects = [one.released.subject for one in register.entries if one.released is not None]
    if json:
        known = {"data": register.opened.data, "budget": register.opened.budget, "head": register.head}
        unsaid = list(register.reservations())
        found = {"spent": spent, "torn": register.torn, "releases": subjects, "reservations": unsaid}
        print_json({**known, **found, "assumed": ["fixed-plan", "drawn-anew"]})
        return
    many = "1 release" if len(subjects) == 1 else f"{len(subjects)} releases"
    say(f"{register.opened.data}: {many} ({register.opened.neighbouring})")
    for number, subject in enumerate(subjects, 1):
        say(f"{number}: {subject}", indent=2)
    say(f"all together under the worst case: {register.left(spent)}")
    say(f"assumed: {CONDITIONS['fixed-plan'].says} Who chooses a release by an earlier result can exceed the budget.")
    say(f"assumed: {CONDITIONS['drawn-anew'].says}")
    for line in (*register.reservations(), *([TORN] if register.torn else ())):
        say(f"! {line}")
    say(f"head: {register.head}")
