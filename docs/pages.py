"""Write the pages that are made from the code: ``python docs/pages.py``. A test says when they are out of date."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from reticent import verbs
from reticent.adversaries import ADVERSARIES
from reticent.certificates.ledger_rules import _in_time, _nothing_private, _same_weights
from reticent.certificates.targets import misses_its_target
from reticent.facts import Fact, Severity, all_facts
from reticent.languages import language
from reticent.mechanisms import MECHANISMS
from reticent.proofs import CONDITIONS
from reticent.proofs.bibtex import entry
from reticent.proofs.references import ERRATA, PAPERS, THEOREMS
from reticent.registry import parameters_of
from reticent.verbs.request import spelling_of
from reticent.watching import detectors

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.mutants.table import MUTANTS  # noqa: E402

_ROOMS = "<!-- the table is made by docs/pages.py from the docstrings of the packages; change those -->"
_MADE = "<!-- made by docs/pages.py from the code; change that -->"
_SEEN = "<!-- the table is made by docs/pages.py from the docstrings of the detectors; change those -->"
_LISTED = "<!-- the contents below are made by docs/pages.py from docs/contents.toml -->"


def readme() -> str:
    """The contents for readers of the folder, in the order of the site's sidebar."""
    return "\n".join(["# Documentation", "", _LISTED, *_contents()]) + "\n"


def _contents() -> Iterator[str]:
    yield "\nThese pages are the source of the site that `make site` builds into `docs/_build/html`."
    for part in _parts():
        yield f"\n## {part['title']}\n\n{part['about']}\n"
        for page, about, *made in part["pages"]:
            yield f"- {made[0]} (on the site): {about}" if made else f"- [{_title(page)}]({page}.md): {about}"


def landing() -> str:
    """The first page of the site: its head is written by hand, its sidebar is the contents."""
    head, _, _ = (HERE / "index.md").read_text().partition(_LISTED)
    listed = (f"```{{toctree}}\n:caption: {p['title']}\n:hidden:\n\n{_lines(p)}\n```\n" for p in _parts())
    return head + _LISTED + "\n\n" + "\n".join(listed)


def _lines(part: dict[str, Any]) -> str:
    return "\n".join(page for page, *_ in part["pages"])


def _parts() -> list[dict[str, Any]]:
    return tomllib.loads((HERE / "contents.toml").read_text())["part"]


def _title(page: str) -> str:
    return (HERE / f"{page}.md").read_text().partition("\n")[0].removeprefix("# ")


def errata() -> str:
    """Statements of papers that do not hold, by paper."""
    return "\n".join(["# Errata", "", _MADE, *_errata()]) + "\n"


def _errata() -> Iterator[str]:
    yield ""
    yield (
        "Statements of papers that do not hold, what holds instead, and the test that shows it. Code, notes and pages "
        "cite these keys."
    )
    for paper in dict.fromkeys(key.partition(":")[0] for key in ERRATA):
        known = PAPERS[paper]
        yield f"\n## {paper}\n\n{known.authors}, *{known.title}* ({known.year}), {known.version}.\n"
        yield "| key | printed | holds | shown by |\n|---|---|---|---|"
        for erratum in ERRATA.values():
            if erratum.key.startswith(f"{paper}:"):
                shown = f"`tests/{erratum.shown_by}`" if erratum.shown_by else "the argument"
                yield f"| {erratum.key} | {_cell(erratum.printed)} | {_cell(erratum.holds)} | {shown} |"


def theorems() -> str:
    """Where each theorem is proven, used and tested."""
    return "\n".join(["# Theorems", "", _MADE, *_theorems()]) + "\n"


def _theorems() -> Iterator[str]:
    yield (
        "\nEvery theorem that a number may follow from. A certificate, `--json` and notes cite these keys. Each leads "
        "to the section that proves it (or states it as its paper does), to the code that uses it, and to the tests of "
        "that code. To run the tests of one theorem, type this in a checkout, with the file of its row:\n\n"
        "```text\nmake env\n.venv/bin/python -m pytest tests/adversaries/test_final_model.py\n```\n\n"
        "The head of the file says which theorems it tests. `-m slow` runs its longer tests, where it has some. "
        "[Conditions](../concepts/conditions.md) says what each assumes about training, "
        "[the bibliography](bibliography.md) has the papers.\n"
    )
    yield "| theorem | says | proof | code | tests |\n|---|---|---|---|---|"
    for key, known in sorted(THEOREMS.items()):
        module, _, name = known.code.partition(":")
        code = f"[`{module}`](../../{_file(module)}): `{name}`"
        tests = f"[`{known.tests}`](../../{known.tests})"
        page, _, anchor = known.proof.partition("#")
        link = os.path.relpath(known.proof, "theory")
        section = f"[{page.removeprefix('theory/').removesuffix('.md')}: {anchor.replace('-', ' ')}]({link})"
        says = known.says if known.holds else f"**Does not hold.** {known.says}"
        yield f"| `{key}` | {_cell(says)} | {section} | {code} | {tests} |"


def _file(module: str) -> str:
    """The file of ``module``, from the root of the checkout."""
    path = Path("src", *module.split("."))
    package = (HERE.parent / path).is_dir()
    return (path / "__init__.py" if package else path.with_suffix(".py")).as_posix()


def architecture() -> str:
    """The rooms in the order of their floors; what follows the table on the page is written by hand."""
    _, heading, walks = (HERE / "development" / "architecture.md").read_text().partition("\n## Where to look")
    return "\n".join(["# The rooms", "", _ROOMS, *_rooms()]) + "\n" + heading + walks


def _rooms() -> Iterator[str]:
    yield (
        "\nEach package is one room. Imports point down this table, never up (`make imports`). The docstring of a room "
        "says what belongs there and what does not.\n"
    )
    yield "| room | what belongs there |\n|---|---|"
    rules = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    source = HERE.parent / "src/reticent"
    for room in (name.strip() for layer in rules[0]["layers"] for name in layer.split("|")):
        file = source / room / "__init__.py" if (source / room).is_dir() else source / f"{room}.py"
        first = (ast.get_docstring(ast.parse(file.read_text())) or "").split("\n")[0]
        yield f"| `{room}` | {_cell(first.replace('``', '`'))} |"


def watch() -> str:
    """What a watch sees, by kind of fault; the rest of the page is written by hand."""
    page = (HERE / "reference/watch.md").read_text()
    head, _, _ = page.partition(_SEEN)
    _, heading, rest = page.partition("\n## How it looks")
    return "\n".join([head + _SEEN, *_seen()]) + "\n" + heading + rest


def _seen() -> Iterator[str]:
    files = [importlib.import_module(f"{detectors.__name__}.{one.name}") for one in iter_modules(detectors.__path__)]
    kinds = [one for file in files for one in vars(file).values() if getattr(one, "__module__", "") == file.__name__]
    rows: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    for told in map(_paragraphs, kinds):
        if "Kind" in told:
            rows[told["Kind"].rstrip(".")].append(told)
    yield "\n| what is looked at | seen | not seen |\n|---|---|---|"
    for kind, found in rows.items():
        seen = "<br>".join(f"**{one['']}** {one['Seen']}" for one in found)
        unseen = "<br>".join(one["Not seen"] for one in found if "Not seen" in one)
        yield f"| {kind} | {_cell(seen)} | {_cell(unseen)} |".replace("``", "`")


_KINDS = (
    "How records are drawn",
    "Clipping and gradients of single records",
    "Noise",
    "Randomness",
    "Divisor",
    "Records that mix",
    "Padding",
    "Weights and updates",
    "What trains beside",
    "Start",
    "Form and size of gradients",
)


def _paragraphs(kind: Any) -> dict[str, str]:
    """What the docstring of a detector says after words such as ``Seen:``; its first paragraph has no such word."""
    first, *paragraphs = (" ".join(one.split()) for one in (inspect.getdoc(kind) or "").split("\n\n"))
    parts = (one.partition(": ") for one in paragraphs)
    return {"": first} | {name: text[:1].upper() + text[1:] for name, colon, text in parts if colon}


def catalogue() -> str:
    """Every mechanism and every attacker with its parameters."""
    return "\n".join(["# Catalogue", "", _MADE, *_catalogue()]) + "\n"


def _catalogue() -> Iterator[str]:
    yield "\nWhat can be released and who can attack it, as the command line, certificates and the dashboard list them."
    yield "[extending.md](../development/extending.md) shows how to add to either list.\n\n## Mechanisms"
    for name, kind in MECHANISMS.items():
        yield f"\n### {name}\n\n{_doc(kind)}\n"
        yield from _parameters(kind)
    yield "\n## Attackers"
    for name, who in ADVERSARIES.items():
        methods = ", ".join(method.value for method in who.methods)
        yield f"\n### {name}: {str(who.title).lower()}\n\n{_doc(who)}\n"
        yield f"Relation where none is stated: {who.relation.value}. Methods, the first by default: {methods}.\n"
        yield from _parameters(who)


def _parameters(kind: type) -> Iterator[str]:
    for p in parameters_of(kind):
        default = "required" if p.required else f"default {p.default}" if p.default is not None else "optional"
        shown = f"`--{p.option}` ({default})" if p.typeable else f"`{p.name}` (measured, in Python)"
        yield f"- {shown}: {p.help}"


_REQUESTS = """\
A verb is a request and an answer. The request is one frozen object: Python arguments, options and a file make the same
one, so they have the same answer. `--dry-run` prints it, `--request` takes it:

```sh
reticent risk dpsgd --noise-multiplier 1.1 --sample-rate 0.01 --steps 1000 --adversary relaxed --dry-run > request.json
reticent risk --request request.json --json
```

The request of `train` is its configuration file, and its `--dry-run` shows what that would cost and reveal. A request
names the file of a key. It never holds a private key or a passphrase.

What is at its default is left out. Paths are those of files on the machine that answers. In Python each answer of
`rt.assess` has its `request`; any request is made from its fields, or from its JSON.

```python
import reticent as rt
from reticent.verbs import Assess

found = rt.assess(rt.Gaussian(2.0), ["relaxed"], delta=1e-6)
request = Assess.from_json(found.request.to_json())
print(request == found.request, request.answer()[0].adversary.name)
```

prints

```text
True relaxed
```

The [JSON Schema](../schema/request-1.schema.json) `reticent.request/1` has all fields. What `--json` printed is
read again by `reticent.verbs.read`, from its text or its file: the name of its schema says what it is."""


def requests() -> str:
    """What each verb may be asked: the fields of its request."""
    return "\n".join(["# Requests", "", _MADE, "", _REQUESTS, *_requests()]) + "\n"


def _requests() -> Iterator[str]:
    known = [getattr(verbs, name) for name in verbs.__all__ if hasattr(getattr(verbs, name), "verb")]
    for kind in known:
        yield f"\n## {kind.verb}\n\n{_doc(kind)}\n"
        for one in dataclasses.fields(kind):
            way = spelling_of(one)
            many = ", several" if way.many else ""
            must = "required" if one.default is dataclasses.MISSING else "optional"
            yield f"- `{one.name}` ({must}{many}): {one.metadata['help']}"


def _doc(kind: type) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def mutants() -> str:
    """Every planted bug and the test that must see it."""
    return "\n".join(["# Planted bugs", "", _MADE, *_mutants()]) + "\n"


def _mutants() -> Iterator[str]:
    yield (
        "\nA test that cannot fail shows nothing. `make mutants` plants these bugs one at a time in a copy of the "
        "source: an error term set to zero, a step forgotten, a wrong theorem. Each must make its test fail, "
        "in the suite that runs by default, or be named by its part of the corpus. It prints what survived."
    )
    yield "\n| what is broken | how | the test that must fail |\n|---|---|---|"
    for mutant in MUTANTS:
        how = f"{mutant.edit} in `{mutant.place}`".replace("|", "\\|")
        yield f"| {mutant.name} | {how} | `{mutant.test}` |"
    yield "\nNone is listed as a survivor that is justified: where a term was seen by no test, a test was written."


def constraints() -> str:
    """Every constraint between facts of a ledger."""
    return "\n".join(["# Constraints between the facts of a ledger", "", _MADE, *_constraints()]) + "\n"


def _constraints() -> Iterator[str]:
    yield (
        "\nA ledger that breaks one of these contradicts itself. `reticent lint` names what is broken; `certify` and "
        "`verify`, and so `gate`, refuse it. Each stands with its fact in `reticent/facts/`, those of "
        "certificates are in `certificates/ledger_rules.py`. The digest of a ledger is that of all its facts. Each "
        "loop of a chain begins at the weights at which the one before ended."
    )
    for title, kind in (("A run of `reticent train`", "trained"), ("A loop that `rt.watch` saw", "watched")):
        yield f"\n## {title}\n\n| what must hold | fact |\n|---|---|"
        for fact in all_facts().values():
            yield from (f"| {_cell(_doc(rule))} | `{fact.key}` |" for rule in getattr(fact, kind))
    yield "\n## A ledger and the certificate around it\n\n| what must hold |\n|---|"
    yield from (f"| {_cell(_doc(rule))} |" for rule in (_same_weights, _in_time, _nothing_private, misses_its_target))
    yield (
        "\nRules find edits that do not agree with each other. An edit of one fact states another run that could have "
        "happened: only the signature that was made when the run ended tells "
        "([certificates](certificates.md#runs-that-are-signed-when-they-end))."
    )


def warnings() -> str:
    """Every warning and condition by code, with its remedy."""
    return "\n".join(["# Warnings and conditions", "", _MADE, *_warnings()]) + "\n"


def _warnings() -> Iterator[str]:
    yield (
        "\nWhat `reticent lint`, tables and certificates show by code, and what to do about each. "
        "[Pitfalls](../concepts/pitfalls.md) says what each severity means."
    )
    yield "\n## Warnings of a watched loop"
    for severity, heading in _SEVERITIES.items():
        yield f"\n### {heading} (`{severity}`)\n\n{_HEAD}"
        yield from _facts(severity)
    yield f"\n## Warnings of a run of `reticent train`\n\n{_HEAD}"
    yield from (_row(fact.of_ours()) for fact in all_facts().values() if fact.ours)
    yield (
        "\n## Conditions\n\nEvery number rests on some of these. What becomes of a claim depends on what a condition "
        "is about ([claims](../concepts/claims.md)).\n\n| code | says | about | if nobody vouches for it |"
        "\n|---|---|---|---|"
    )
    for key, kind in CONDITIONS.items():
        yield f"| `{key}` | {_cell(str(kind.says))} | {kind.bearing} | {_cell(kind.remedy)} |"


_HEAD = "| code | means | remedy |\n|---|---|---|"


def _facts(severity: Severity) -> Iterator[str]:
    """A row for each fact of watched loops with this severity."""
    said = [fact for fact in all_facts().values() if fact.said and fact.severity is severity]
    return (_row(one) for fact in said for one in _each(fact))


def _each(fact: Fact) -> Iterator[Fact]:
    """A fact, and the same by each of its causes that has words of its own."""
    yield fact
    start = f"fault.{fact}.reason."
    causes = (key.removeprefix(start) for key in language("en").words if key.startswith(start))
    yield from (fact.because(cause) for cause in causes if not cause.startswith("ours"))


def _row(fact: Fact) -> str:
    code = f"`{fact}`" + (f": {fact.cause}" if fact.cause else "")
    return f"| {code} | {_cell(str(fact.reason))} | {_cell(str(fact.remedy))} |"


def pitfalls() -> str:
    """What a program sees, in short; above it what none sees, by hand."""
    head, _, _ = (HERE / "concepts/pitfalls.md").read_text().partition(_MADE)
    return head + "\n".join([_MADE, *_pitfalls()]) + "\n"


def _pitfalls() -> Iterator[str]:
    for severity, heading in _SEVERITIES.items():
        yield f"\n## {heading}\n\n| pitfall | code | what to do |\n|---|---|---|"
        for fact in all_facts().values():
            if fact.said and fact.severity is severity:
                yield f"| {_cell(_first(str(fact.reason)))} | `{fact}` | {_cell(_first(str(fact.remedy)))} |"


def _first(text: str) -> str:
    """The first sentence."""
    return text.partition(". ")[0].rstrip(".") + "."


_SEVERITIES = {Severity.ERROR: "Critical", Severity.WARNING: "Theoretical", Severity.NOTE: "Negligible"}


def bibliography() -> str:
    """The papers behind the keys, with BibTeX."""
    return "\n".join(["# Bibliography", "", _MADE, *_bibliography()]) + "\n"


def _bibliography() -> Iterator[str]:
    yield (
        "\nTheorems and errata cite these keys. [Theorems](theorems.md) says what follows from each paper, "
        "[errata](../evidence/errata.md) which of its statements do not hold.\n"
    )
    papers = [paper for key, paper in sorted(PAPERS.items()) if key != "RETICENT"]
    yield "| key | paper |\n|---|---|"
    for paper in papers:
        yield f"| `{paper.key}` | {paper.authors}: *{_cell(paper.title)}* ({paper.year}). {_cell(paper.version)} |"
    yield "\n## BibTeX\n\n```bibtex"
    for paper in papers:
        yield entry(paper)
    yield "```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def checker() -> str:
    """The checker in the browser, with what it compares in each language."""
    from browser_page import filled  # it lies next to this script

    page = (HERE.parent / "src/reticent/certificates/templates/verify.html").read_text()
    return filled(page)


PAGES = {
    "development/architecture.md": architecture,
    "reference/watch.md": watch,
    "evidence/errata.md": errata,
    "theory/theorems.md": theorems,
    "reference/catalogue.md": catalogue,
    "reference/requests.md": requests,
    "development/mutants.md": mutants,
    "reference/constraints.md": constraints,
    "reference/warnings.md": warnings,
    "concepts/pitfalls.md": pitfalls,
    "theory/bibliography.md": bibliography,
    "../src/reticent/certificates/templates/verify.html": checker,
    "README.md": readme,  # after the pages whose titles it reads
    "index.md": landing,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
