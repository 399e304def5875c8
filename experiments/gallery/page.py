"""The gallery and the page of our own study, made from the stored results alone when the site is built.

One page shows all pictures small; one page for each paper has the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from experiments.gallery.entry import OWN, PAPERS, Measured, Published, Relation, Result, Verdict
from reticent.kernel.proofs.references import PAPERS as CITED

_HEAD = """# Gallery: every figure and table of the four papers

Each picture leads to its numbers: what the paper prints, and what comes out here. *Agrees* means that every published
number lies within the stated tolerance of ours. *Differs* means that at least one does not. Tables that print no number
(notation; threat models and attacks side by side) have no entry.

In a checkout of the repository `python -m experiments.gallery` lists the same verdicts; the scripts are in
`experiments/<paper>/`. With an id, such as `glrt/figure-8`, it runs that entry again and says whether it drifted from
the stored result; with `--keep` it stores the new result and picture. `python -m experiments.gallery all --quick` runs
everything that takes no more than a minute. What takes longer is drawn from results that the checkout holds, which
cannot drift; `--again` computes them anew, which may take hours. What was trained on a GPU is not computed again.
"""

_LATER = """## What the papers leave to others

- *Influence functions, to save gradients of completions* (CHERUBIN2024, section 5.4): not done. They are a first-order
  approximation without a bound on its error, so no security follows; one pass over a fully connected network serves all
  completions of a record ([attribute](../theory/attribute.md)).
- *Inference-time attackers* (CHERUBIN2024, appendix): done, where updates contract
  ([final model](../theory/final-model.md)).
- *Steps over data that are used again* (LEEMANN2023, section 7): done. Only noise counts there, and a single pass gains
  ([membership game](../theory/membership-game.md)).
- *Attackers who see predictions only* (LEEMANN2023, section 7): no theorem is known; audits say what shadow models do
  ([audits](audits.md)).
- *An unknown sensitivity, noise scale or kind of noise* (KAISSIS2023, section 6): not done. Releases show their own
  noise: d coordinates tell its scale to one part in sqrt(2 d), and a certificate states it.
- *Discrete outputs, private selection, adaptive composition* (KAISSIS2023, section 6): done for the worst case
  (`RandomisedResponse`, `Selection`, every composition). Who does not know the direction gets its answer there, as
  nothing less is proven.
"""

_LONGEST = 30
"""Rows of a table on the page; the rest is in the stored result."""

_AT_ONCE = 6
"""Rows of a table that are shown at once; a longer one opens when somebody asks for it."""

_FILTERS = '<div class="filters"></div>'
"""Where the site puts its filters by paper and by verdict (docs/site_pages.py)."""


def pages(results: Sequence[Result]) -> dict[str, str]:
    """Every page as Markdown, by its name below ``docs/evidence``."""
    mine = {slug: [r for r in results if r.id.startswith(slug + "/")] for slug in PAPERS}
    return {
        "gallery.md": _gallery(mine),
        **{f"gallery/{slug}.md": _of_paper(slug, mine[slug]) for slug in PAPERS},
        "utility.md": _utility(results),
    }


def _gallery(mine: dict[str, list[Result]]) -> str:
    entries = [r for one in mine.values() for r in one]
    listed = "\n".join(f"gallery/{slug}" for slug in mine)
    parts = [_HEAD, _summary(entries), *_papers(mine), '<div class="gallery">', _FILTERS, ""]
    parts += [_thumbnail(r) for r in entries]
    return "\n".join([*parts, "</div>", "", _LATER, f"```{{toctree}}\n:hidden:\n\n{listed}\n```", ""])


def _summary(results: Sequence[Result]) -> str:
    counts = Counter(r.verdict for r in results)
    agree, differ, cannot = (counts[verdict] for verdict in Verdict)
    return f"{len(results)} entries: {agree} agree, {differ} differ, {cannot} cannot be run here.\n"


def _papers(mine: dict[str, list[Result]]) -> Iterator[str]:
    for slug, results in mine.items():
        yield f"- `{slug}`: [{CITED[PAPERS[slug]].title}](gallery/{slug}.md), {len(results)} entries"
    yield ""


def _thumbnail(result: Result) -> str:
    """One picture that leads to its numbers; the classes are what the filters look at."""
    slug = result.id.partition("/")[0]
    page = f"gallery/{slug}.md#{_anchor(result)}"
    return (
        f'<div class="entry {slug} {result.verdict.name.lower()}">\n\n'
        f"[![{result.title}]({_picture(result)})]({page})\n\n"
        f"`{result.id}`: *{result.verdict.value}*\n\n</div>"
    )


def _of_paper(slug: str, results: Sequence[Result]) -> str:
    paper = CITED[PAPERS[slug]]
    lines = [f"# {paper.title}", "", f"{paper.authors}, {paper.year}; {paper.version}.", ""]
    lines += [_summary(results), "[All papers](../gallery.md).", ""]
    return "\n".join([*lines, *(_section(r) for r in results)])


def sentence(result: Result) -> str:
    """The one sentence next to the verdict."""
    return f"{result.reason} Not measured: needs {result.needs}." if result.needs else result.reason


def compared(result: Result) -> list[str]:
    """Each published number next to ours."""
    ours = {p.name: shown(result.ours[p.name]) if p.name in result.ours else "not measured" for p in result.published}
    return [f"{_cell(p.name)}: {published_words(p)}; ours {ours[p.name]}" for p in result.published]


def _section(result: Result) -> str:
    lines = [f"## {result.id}", "", f"**{result.title}.** *{result.verdict.value}.* {result.reason}"]
    if result.needs:
        lines += ["", f"What is not measured needs {result.needs}."]
    lines += ["", f"![{result.title}](../{_picture(result)})", "", *_numbers(result)]
    if result.settings:
        lines += ["", "Settings: " + "; ".join(f"{k} {v}" for k, v in result.settings.items()) + "."]
    if result.stored:
        lines += ["", f"Drawn from stored results; `python -m experiments.gallery {result.id} --again` computes them."]
    return "\n".join([*lines, ""])


def _numbers(result: Result) -> Iterator[str]:
    printed = {p.name: p for p in result.published}
    names = list(dict.fromkeys([*printed, *result.ours]))
    folded = len(names) > _AT_ONCE
    if folded:
        yield f"<details><summary>{len(names)} numbers of {result.id}</summary>\n"
    yield "| number | published | ours |\n|---|---|---|"
    for name in names[:_LONGEST]:
        ours = shown(result.ours[name]) if name in result.ours else "not measured"
        yield f"| {_cell(name)} | {published_words(printed.get(name))} | {ours} |"
    if len(names) > _LONGEST:
        yield f"\n{len(names) - _LONGEST} more in `python -m experiments.gallery --json`."
    if folded:
        yield "\n</details>"


def _picture(result: Result) -> str:
    return f"../figures/gallery/{result.id.replace('/', '--')}.svg"


def published_words(number: Published | None) -> str:
    """A published number with its tolerance and place."""
    if number is None:
        return ""
    side = "" if number.relation is Relation.IS else number.relation.value + " "
    near = f" ± {number.tolerance:.3g}" if number.tolerance else ""
    return _cell(f"{side}{number.value:.6g}{near} ({number.where})")


def shown(number: Measured) -> str:
    """Four digits, with the interval where there is one."""
    interval = f" ({number.low:.4g} to {number.high:.4g}, {number.about})" if number.about else ""
    return f"{number.value:.4g}{interval}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _anchor(result: Result) -> str:
    return result.id.replace("/", "")


_UTILITY = """# What does each threat model buy?

Less noise gives better models, and an attacker who knows less allows less noise. This page measures how much accuracy
that is worth. It also says what an attacker who knows everything can do at the smaller noise: each run with noise has
its true worst-case advantage and epsilon (delta 1e-5). Accuracy depends on the noise alone. So a weaker attacker moves
a model along one curve of accuracy over worst-case epsilon; no threat model moves the curve.

Each accuracy is the mean over seeds of the weights, the batches and the noise, with Student's 95 % interval in
brackets. A gain is the mean of the differences seed by seed, in percentage points, from the run of the same group whose
gain is 0. Learning rates and clip norms were chosen on records of the training set that are declared public and are not
trained on (`experiments/utility/tune.py`, stored in `results/tuning-*.json`). The test set judged the final runs only.
Dimensions are measured on public records too. Verdicts compare the numbers with what the papers say, as in the
[gallery](gallery.md). Scripts and all runs are in `experiments/utility/`.
"""


def _utility(results: Sequence[Result]) -> str:
    """The page of our own study: the table of all threat models first."""
    mine = [r for r in results if r.id.startswith(OWN + "/")]
    last = sorted(mine, key=lambda r: r.id != f"{OWN}/table-2")
    return "\n".join([_UTILITY, *(_study(r) for r in last)])


def _study(result: Result) -> str:
    lines = [f"## {result.title}", "", f"`{result.id}`, *{result.verdict.value}.* {result.reason}", ""]
    lines += [f"![{result.title}]({_picture(result)})", "", *_matrix(result), "", "The papers say:", ""]
    lines += [f"- {line}" for line in compared(result)]
    lines += ["", "Settings: " + "; ".join(f"{k} {v}" for k, v in result.settings.items()) + ".", ""]
    return "\n".join(lines)


def _matrix(result: Result) -> list[str]:
    """Numbers called ``row: column`` as one table."""
    columns = list(dict.fromkeys(name.rpartition(": ")[2] for name in result.ours))
    rows = list(dict.fromkeys(name.rpartition(": ")[0] for name in result.ours))
    lines = ["| run | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [result.ours.get(f"{row}: {column}") for column in columns]
        lines.append("| " + " | ".join([_cell(row), *("" if m is None else _brief(m) for m in cells)]) + " |")
    return lines


def _brief(number: Measured) -> str:
    return f"{number.value:.3g} ({number.low:.3g}, {number.high:.3g})" if number.about else f"{number.value:.3g}"
