"""Every page that is made, and so not kept: ``make site`` writes them before it builds, ``python docs/pages.py`` alone.

``PAGES`` has them by name. They follow from the code, from results that are kept, and from ``contents.toml``.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path, PurePath
from pkgutil import iter_modules
from typing import Any

from reticent import verbs
from reticent.facts import Fact, Severity, all_facts
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.mechanisms import MECHANISMS
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.proofs.references import ERRATA, PAPERS, THEOREMS
from reticent.kernel.registry import parameters_of
from reticent.languages import language
from reticent.verbs.bibtex import entry
from reticent.verbs.request import spelling_of
from reticent.watching import detectors

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import generate_reference  # noqa: E402
import landing  # noqa: E402

from proofs import check  # noqa: E402

_MADE = "<!-- made by docs/pages.py; change what it is made from -->"


def first() -> str:
    """The first page of the site, and the parts of the sidebar."""
    parts = "\n".join(f"{part['name']}/index" for part in _parts())
    doors = "\n".join(f"- **[{part['title']}]({part['name']}/index.md)**: {part['about']}" for part in _parts())
    toctree = f"```{{toctree}}\n:hidden:\n\n{parts}\n```"
    moves = f"```{{raw}} html\n{landing.widget()}\n```"
    return "\n".join(["# reticent", "", _MADE, "", moves, "", doors, "", toctree, ""])


def overview() -> str:
    """The README, with links as the site has them; the picture of a certificate is one that opens."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8").replace("# reticent", "# Overview", 1)
    text = re.sub(r"!\[[^\]]*\]\(docs/figures/certificate.png\)\n\n", "", text)
    text = text.replace("](CHANGELOG.md)", "](docs/development/changelog.md)")
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", lambda link: f"]({os.path.relpath(link[1], 'docs/start')})", text)


@cache
def _parts() -> list[dict[str, Any]]:
    """The parts of the contents; each has the name of its folder."""
    parts = tomllib.loads((HERE / "contents.toml").read_text(encoding="utf-8"))["part"]
    return [{**part, "name": part["pages"][0][0].partition("/")[0]} for part in parts]


def _part(part: dict[str, Any]) -> str:
    """What a reader finds in one part of the site."""
    names = [(os.path.relpath(page, part["name"]), about) for page, about in part["pages"]]
    lines = "\n".join(f"- []({name}.md): {about}" for name, about in names)
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(name for name, _ in names) + "\n```"
    return "\n".join([f"# {part['title']}", "", _MADE, "", part["about"], "", lines, "", toctree, ""])


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
        section += "".join(_checked(one) for one in _machine_proofs() if key in one.keys)
        says = known.says if known.holds else f"**Does not hold.** {known.says}"
        yield f"| `{key}` | {_cell(says)} | {section} | {code} | {tests} |"


@cache
def _machine_proofs() -> tuple[check.Proven, ...]:
    return check.files()


def _checked(one: check.Proven) -> str:
    """Where a reader finds what Coq checks of a theorem."""
    return f"<br>[Coq](machine-proofs.md#{_anchor(one.title)}): " + ", ".join(f"`{name}`" for name in one.theorems)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def machine_proofs() -> str:
    """What Coq checks, in words and as it stands in the files."""
    return "\n".join(["# Proofs that a machine checks", "", _MADE, *_proven()]) + "\n"


def _proven() -> Iterator[str]:
    yield (
        "\n`make proofs` lets Coq 8.16 with mathcomp check these statements, copied from its files. It refuses axioms "
        "and open proofs. Nobody needs Coq to use or to test reticent. Outcomes are finitely many everywhere."
    )
    for one in _machine_proofs():
        yield f"\n## {one.title}\n\n[`proofs/{one.name}.v`](../../proofs/{one.name}.v). {one.says}\n"
        yield from (f"- `{key}`: {THEOREMS[key].says.partition('; docs/')[0].rstrip('.')}." for key in one.keys)
        if one.leaves_out:
            yield f"\n**Not checked.** {one.leaves_out}"
        yield "\n```coq\n" + "\n\n".join(one.statements.values()) + "\n```"


def _file(module: str) -> str:
    """The file of ``module``, from the root of the checkout."""
    path = Path("src", *module.split("."))
    package = (HERE.parent / path).is_dir()
    return (path / "__init__.py" if package else path.with_suffix(".py")).as_posix()


def rooms() -> str:
    """The rooms in the order of their floors."""
    return "\n".join(["# The rooms", "", _MADE, *_rooms()]) + "\n"


def _rooms() -> Iterator[str]:
    yield (
        "\nEach package is one room. Imports point down this table, never up (`make imports`). The docstring of a room "
        "says what belongs there and what does not. [Where to look](architecture.md) has the ways through them.\n"
    )
    yield "| room | what belongs there |\n|---|---|"
    rules = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    source = HERE.parent / "src/reticent"
    for room in (name.strip() for layer in rules[0]["layers"] for name in layer.split("|")):
        file = source / room / "__init__.py" if (source / room).is_dir() else source / f"{room}.py"
        first = (ast.get_docstring(ast.parse(file.read_text())) or "").split("\n")[0]
        yield f"| `{room}` | {_cell(first.replace('``', '`'))} |"


def seen() -> str:
    """What a watch sees, by kind of fault."""
    return "\n".join(["# What a watch sees", "", _MADE, *_seen()]) + "\n"


def _seen() -> Iterator[str]:
    files = [importlib.import_module(f"{detectors.__name__}.{one.name}") for one in iter_modules(detectors.__path__)]
    kinds = [one for file in files for one in vars(file).values() if getattr(one, "__module__", "") == file.__name__]
    rows: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    for told in map(_paragraphs, kinds):
        if "Kind" in told:
            rows[told["Kind"].rstrip(".")].append(told)
    yield (
        "\nWhat `rt.watch` looks at in [a training loop](watch.md), by kind of fault, and what it does not see. What "
        "comes before the loop and after it is [on that page](watch.md#what-is-not-seen). The list is meant to be "
        "complete for honest loops.\n\n| what is looked at | seen | not seen |\n|---|---|---|"
    )
    for kind, found in rows.items():
        seen = "<br>".join(f"**{one['']}** {one['Seen']}" for one in found)
        unseen = "<br>".join(one["Not seen"] for one in found if "Not seen" in one)
        yield f"| {kind} | {_cell(seen)} | {_cell(unseen)} |".replace("``", "`").replace("](#", "](watch.md#")


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
    "Several processes",
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

The request of `train` is its configuration file, and its `--dry-run` shows what that would cost and reveal. What is
done with an answer is no part of a request: where it is written, who signs it, when a verb fails. Such options stand
beside `--request`; `--help` lists them last. A key is named by its file. No request holds a private key or a
passphrase.

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

The [JSON Schema](../schema/request-1.schema.json) `reticent.request/1` has all fields. What `--json` printed is read
again by `reticent.verbs.read`, from its text or its file: the name of its schema says what it is. What `audit`
and `train` print has no such reader yet."""


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
    from tests.mutants.table import MUTANTS

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


def warnings() -> str:
    """Every warning and condition by code, with its remedy."""
    return "\n".join(["# Warnings and conditions", "", _MADE, *_warnings()]) + "\n"


def _warnings() -> Iterator[str]:
    yield (
        "\nWhat `reticent lint`, tables and certificates show by code, and what to do about each. "
        "[Pitfalls](../concepts/pitfalls.md) says what each severity means, and what no program sees."
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


def conditions() -> str:
    """What each theorem assumes about training."""
    return "\n".join(["# What the theorems assume about training", "", _MADE, *_conditions()]) + "\n"


def _conditions() -> Iterator[str]:
    yield (
        "\nFor every key that a number can cite: what does it assume about training that nothing checks? The answers "
        "are conditions. [Claims](../concepts/claims.md) says what becomes of a number on which they rest, and which "
        "of them every release needs. [Warnings](../reference/warnings.md#conditions) has what each says, and what to "
        "do.\n\n| theorem | what it assumes about training that nothing checks | conditions |\n|---|---|---|"
    )
    for key, known in THEOREMS.items():
        yield f"| `{key}` | {_cell(known.assumes)} | {' '.join(f'`{one}`' for one in known.needs)} |"


def measured() -> str:
    """What was timed."""
    from benchmarks.page import text

    return f"# Measured times\n\n{_MADE}\n\n{text()}"


def attribute_results() -> str:
    """What an attacker learns about one field in real runs."""
    from experiments.closed_form_bounds.attribute_report import text

    return f"# Attribute inference: what real runs show\n\n{_MADE}\n\n{text()}"


@cache
def _gallery() -> dict[str, str]:
    from experiments import gallery

    return gallery.pages([gallery.stored(name) for name in gallery.stored_ids()])


def _of_gallery(name: str) -> str:
    return _gallery()[name]


OF_PAPERS = ("glrt", "relaxed-threat-model", "closed-form-bounds", "gaussian-mip")
"""Papers with a page in the gallery."""

PAGES: dict[str, Callable[[], str]] = {
    "index.md": first,
    "start/overview.md": overview,
    **{f"{part['name']}/index.md": partial(_part, part) for part in _parts()},
    "concepts/conditions.md": conditions,
    "development/mutants.md": mutants,
    "development/rooms.md": rooms,
    "evidence/attribute-results.md": attribute_results,
    "evidence/errata.md": errata,
    "evidence/measured.md": measured,
    "reference/catalogue.md": catalogue,
    "reference/requests.md": requests,
    "reference/seen.md": seen,
    "reference/warnings.md": warnings,
    "theory/bibliography.md": bibliography,
    "theory/machine-proofs.md": machine_proofs,
    "theory/theorems.md": theorems,
    **{
        f"evidence/{name}": partial(_of_gallery, name)
        for name in ("gallery.md", "utility.md", *(f"gallery/{slug}.md" for slug in OF_PAPERS))
    },
    **generate_reference.PAGES,
}
"""The text of each page by its name below ``docs``."""


def is_made(page: PurePath) -> bool:
    """Whether this page is made when the site is built."""
    return page.as_posix().endswith(tuple(f"docs/{name}" for name in PAGES))


def write(folder: Path) -> None:
    """Write every page below ``folder``; those whose text is the same are left alone, so that Sphinx does so too.

    The page of a package that the reference does not list any more goes.
    """
    for path in (folder / "reference" / "api").glob("*.md"):
        if f"reference/api/{path.name}" not in PAGES:
            path.unlink()
    for name, page in PAGES.items():
        path, text = folder / name, page()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def checker() -> None:
    """Give the page that checks certificates in a browser what it compares in each language."""
    from browser_page import filled

    page = HERE.parent / "src/reticent/certificates/templates/verify.html"
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    checker()
    write(HERE)
