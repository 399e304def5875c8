"""What people take away: Python and shell text that give the same numbers, and the shown curves as CSV."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from inspect import isfunction
from typing import Any

from reticent.adversaries import Adversary, assess
from reticent.calibration import Calibration, Target, Unknown, calibrate
from reticent.certificates.page import paged, render_html
from reticent.certificates.schema import CALIBRATED, OF_THE_DASHBOARD, SETTINGS
from reticent.dashboard.catalogue import OF_RUNS
from reticent.dashboard.readings import QUESTIONS, Answer, points
from reticent.dashboard.released import as_text
from reticent.dashboard.searching import for_anybody
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of, target_of, unknown_of
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.registry import parameters_of, told
from reticent.risk import advantage, bayes_security
from reticent.stopping import checkpoint
from reticent.text import as_call, as_python, stated
from reticent.verbs import certify

_FILE = "release.json"
_PRIORS = [word for prior in QUESTIONS.priors for word in ("--prior", f"{prior:g}")]


def risk_python(state: State, answer: Answer) -> str:
    """A script that prints advantage and Bayes security of everybody who was answered."""
    release, relation = mechanism_of(state), relation_of(state)
    who = _answered(state, answer)
    return (
        f"{_imports(assess, advantage, bayes_security, relation, *_written(release), *who)}\n"
        f"release = {as_call(release)}\n"
        f"attackers = [{', '.join(as_call(a) for a in who)}]\n"
        f"for a in assess(release, attackers{_relation_python(relation)}):\n"
        "    risks = [a.measure(number).value for number in (advantage, bayes_security)]\n"
        "    print(a.adversary.name, a.neighbouring, a.claim, *risks)\n"
    )


def risk_command(state: State, answer: Answer) -> str:
    """The command line with the same numbers; what a file says is written to a file first."""
    release = mechanism_of(state)
    who, run = _answered(state, answer), release.base
    if not told(run).keys() <= {p.name for p in parameters_of(type(run))}:
        words = ["reticent", "risk", "ledger", _FILE, *_who(who), *_relation(relation_of(state)), *_PRIORS]
        return f"printf %s {shlex.quote(as_text(release))} > {_FILE}\n{shlex.join(words)}"
    words = ["reticent", "risk", run.name, *_options(run, leave=_implied(run)), *_runs(release)]
    return shlex.join([*words, *_who(who), *_relation(relation_of(state)), *_PRIORS])


def _implied(release: Mechanism) -> tuple[str, ...]:
    """Fields that change no number: the size of the data is one where batches are cut."""
    counted = release.sampler.counts_records
    return ("batches_per_epoch",) if counted else ("batches_per_epoch", "dataset_size")


def calibration_python(state: State, found: Sequence[Calibration]) -> str:
    """A script that prints what each attacker would allow, and the worst case there."""
    release, relation, target, unknown = mechanism_of(state), relation_of(state), target_of(state), unknown_of(state)
    who = [c.adversary for c in found]
    return (
        f"{_imports(calibrate, target, unknown, relation, *_written(release), *who)}\n"
        f"release = {as_call(release)}\n"
        f"target = {as_call(target)}\n"
        f"for who in [{', '.join(as_call(a) for a in who)}]:\n"
        f"    found = calibrate(release, {as_call(unknown)}, target, who{_relation_python(relation)})\n"
        "    print(who.name, found.value, found.achieved.value, found.worst_case().value)\n"
    )


def calibration_command(state: State, found: Sequence[Calibration]) -> str:
    """One command for each attacker."""
    release, target, unknown = mechanism_of(state), target_of(state), unknown_of(state)
    run = release.base
    searched = {
        "sample_rate": ("sample_rate", "batch_size"),
        "batch_size": ("sample_rate", "batch_size"),
        "steps": ("steps", "releases"),
    }.get(unknown.name, (unknown.name,))
    known = [*_options(run, leave=(*searched, "batches_per_epoch")), *_runs(release, leave=searched)]
    shared = ["--target", _target(target), "--unknown", _unknown(unknown, run), *known]
    return "\n".join(
        shlex.join(["reticent", "calibrate", run.name, *shared, *_who([c.adversary]), *_relation(relation_of(state))])
        for c in found
    )


def certificate_page(state: State) -> str:
    """The page of a certificate of what the panel shows, settings or the answer of a search: nobody saw a run."""
    searched, release, relation = state["panel"] == "calibrate", mechanism_of(state), relation_of(state)
    # computed already where the page shows it
    answer = for_anybody(release, unknown_of(state), target_of(state), relation).mechanism if searched else release
    made = certify(
        answer,
        subject=OF_THE_DASHBOARD.format(CALIBRATED if searched else SETTINGS),
        adversary=adversaries_of(state),
        neighbouring=relation,
        progress=lambda _: checkpoint(),
    )
    return render_html(paged(made.certificate))


def curves_csv(answer: Answer, view: str) -> str:
    """The shown curves: one row for each point; empty ends where nothing is enclosed."""
    names = {
        "curves": ("false_positive_rate", "false_negative_rate"),
        "roc": ("false_positive_rate", "true_positive_rate"),
        "profile": ("epsilon", "delta"),
        "guesses": ("prior", "right_guesses"),
    }[view]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["attacker", "neighbouring", "claim", *names, "enclosed_from", "enclosed_to"])
    for assessment in answer.assessments:
        read = points(assessment, view)
        head = [assessment.adversary.name, assessment.neighbouring.value, assessment.claim.value]
        exact = read.least is None or read.most is None
        for k, x in enumerate(read.x):
            ends = ["", ""] if exact else [repr(float(read.least[k])), repr(float(read.most[k]))]  # type: ignore[index]
            rows.writerow([*head, repr(float(x)), repr(float(read.claimed[k])), *ends])
    return text.getvalue()


def _answered(state: State, answer: Answer) -> list[Adversary]:
    return [a for a in adversaries_of(state) if a.name not in answer.skipped]


def _written(release: Mechanism) -> list[Any]:
    """What a script imports to write the release down: the release, its parts, and what their fields hold."""
    held = [value for value in stated(release).values() if isinstance(value, Enum) or is_dataclass(value)]
    return [release, *held, *[one for part in release.inner for one in _written(part)]]


def _options(release: Mechanism, leave: Sequence[str]) -> list[str]:
    """``--name value`` for what is not the default."""
    words = []
    for name, value in told(release).items():
        if name not in leave:
            words += [_option(name), str(value) if isinstance(value, Enum | str) else repr(value)]
    return words


def _who(adversaries: Sequence[Adversary]) -> list[str]:
    words = [word for a in adversaries for word in ("--adversary", a.name)]
    for adversary in adversaries:
        words += [word for name, value in stated(adversary).items() for word in (_option(name), repr(value))]
    return words


def _relation(relation: Neighbouring | None) -> list[str]:
    return [] if relation is None else ["--neighbouring", relation.value]


def _relation_python(relation: Neighbouring | None) -> str:
    return "" if relation is None else f", {as_python(relation)}"


def _target(target: Target) -> str:
    limit, *places = [repr(getattr(target, f.name)) for f in fields(target)]  # type: ignore[arg-type]
    at = ",".join(places)
    return f"{target.name}={limit}{f'@{at}' if at else ''}"


def _unknown(unknown: Unknown, release: Mechanism) -> str:
    name = "releases" if unknown.name == "steps" and "steps" not in release.searched() else unknown.name
    return name.replace("_", "-")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _runs(release: Mechanism, leave: Sequence[str] = ()) -> list[str]:
    """``--selection`` and what goes with it."""
    if (law := release.runs) is None:
        return []
    given = {name: getattr(law, own) for name, own in OF_RUNS[law.name].items() if name not in leave}
    return ["--selection", law.name, *[word for name in given for word in (_option(name), repr(given[name]))]]


def _imports(*used: Any) -> str:
    """Of the functions that a script calls, and of the types of what it writes down."""
    found: dict[str, set[str]] = {}
    for kind in (one if isfunction(one) else type(one) for one in used if one is not None):
        found.setdefault(".".join(kind.__module__.split(".")[:2]), set()).add(kind.__name__)
    return "".join(f"from {home} import {', '.join(sorted(names))}\n" for home, names in sorted(found.items()))
