"""Certificates of plans, events, runs, watched loops, several together; what each door says of them."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import yaml

from reticent.certificates.document.rounding import leaves
from reticent.kernel.errors import ReticentError
from reticent.kernel.messages import from_json, is_message, said, to_json
from tests.certificates.edits import Edit, document_of, resealed
from tests.corpus.assessments import MECHANISMS
from tests.corpus.case import Case
from tests.corpus.project import called, of_json, words_of_page

SIZES = ("--batch-size", "100", "--dataset-size", "10000", "--epochs", "2")
PLANS: dict[str, tuple[str, ...]] = {
    "poisson": (),
    "parameters": ("--num-parameters", "1000"),
    "persons": ("--records-per-user", "4"),
    "clients": ("--unit", "client"),
    "shuffled": ("--sampler", "shuffled"),
    "cyclic": ("--sampler", "cyclic"),
    "fixed size": ("--sampler", "fixed-size"),
    "random allocation": ("--sampler", "random-allocation"),
    "truncated": ("--sampler", "truncated-poisson", "--max-batch-size", "130"),
    "draws": ("--draws-per-step", "4"),
    "uses": ("--sampler", "random-allocation", "--uses-per-epoch", "3"),
    "allocated once": ("--sampler", "allocated-once"),
    "persons in passes": ("--sampler", "shuffled", "--records-per-user", "3"),
    "persons, allocated": ("--sampler", "random-allocation", "--records-per-user", "2"),
    "selection": ("--selection", "geometric", "--mean-runs", "5"),
    "secret": ("--secret-bits", "13.29", "--guesses", "10"),
    "contraction": ("--contraction", "0.9"),
    "words": ("--subject", "A model of letters", "--issuer", "The lab", "--purpose", "Sorting", "--expires",
              "2999-01-01"),
}  # fmt: skip
EVENTS = ("gaussian", "laplace", "randomised response", "matrix, banded", "guarantee", "filtered", "ledger of two",
          "ledger of kinds", "selection, fixed", "one of two", "allocated once")  # fmt: skip
HERE = Path(__file__).resolve().parent
RUNS: dict[str, Any] = yaml.safe_load((HERE / "runs.yaml").read_text())
POLICIES: dict[str, Any] = yaml.safe_load((HERE / "policies.yaml").read_text())
LOOPS: dict[str, dict[str, Any]] = {  # what the watch is told
    "opacus": {},
    "shuffled": {},
    "planned": {"planned_steps": 12, "start": "declared"},
    "faulty": {},
    "persons": {"records_per_user": 2},
}


def _train(config: dict[str, Any]) -> None:
    """Weights hardly move, so that no number of the run hangs on its noise."""
    usual = {"noise_multiplier": 2.0, "learning_rate": 1e-9, "randomness": "fresh"}
    Path("run.yaml").write_text(yaml.safe_dump(config | usual))
    called("train", "run.yaml", "--out", "run")


def _watch(kind: str) -> None:
    from torch.utils.data import DataLoader, Subset

    from tests.watching.loops import Loop, passes, watched
    from tests.watching.programs import private, records

    few = DataLoader(Subset(records(), range(60)), batch_size=10, shuffle=True)
    made = private(few, poisson_sampling=kind != "shuffled")
    if kind == "faulty":
        centred = Loop(batches=passes(2), forward=lambda toy, rows: toy.model(rows - rows.mean(0)))
        seen, _ = centred.but(made=lambda: made).watched()
    else:
        seen = watched(*made, **LOOPS[kind])
    seen.save("ledger.json")


def _documents(make: Callable[[], tuple[Any, ...]], *, languages: bool, gated: bool) -> Any:
    """What everybody gets of one certificate."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        what = make()
        told: dict[str, Any] = {
            "certify": called("certify", *what, "--out", "made", "--language", "de", "--language", "fr")
        }
        if told["certify"]["exit"]:
            return told
        told["document"] = of_json(Path("made/certificate.public.json").read_text())
        told["files"] = sorted(path.name for path in Path("made").iterdir())
        pages = {"en": "certificate.html", "de": "certificate.de.html", "fr": "certificate.fr.html"}
        told["pages"] = {
            name: words_of_page(Path("made", page).read_text())
            for name, page in pages.items()
            if languages or name == "en"
        }
        told["verify"] = called("verify", "made/certificate.public.json")
        told["lint"] = called("lint", what[0]) if Path(str(what[0])).exists() else None
        if gated:
            told["verify, wide"] = called("verify", "made/certificate.public.json", columns=200)
            told["verify, json"] = called("verify", "made/certificate.public.json", "--json")
            judged = ("gate", "made/certificate.public.json", "--policy", "policy.yaml")
            for name, policy in POLICIES.items():
                Path("policy.yaml").write_text(yaml.safe_dump({"schema": "reticent.policy/1", **policy}))
                told[f"gate, {name}"] = called(*judged)
                if name == "membership":
                    told["gate, json"] = called(*judged, "--json")
                    told["gate, wide"] = called(*judged, "--markdown", "-", columns=200)
            signed = ("--sign", "key")
            told["register"] = [
                called("keygen", "key")["exit"],
                called("register", "open", "all.register", "--name", "letters", "--budget", "epsilon=3@1e-5", *signed),
                called("register", "add", "all.register", "made/certificate.json", *signed),
                called("register", "show", "all.register", "--key", "key.pub"),
                called("register", "show", "all.register", "--key", "key.pub", "--json"),
            ]
        return told


def _event(mechanism: dict[str, Any]) -> tuple[Any, ...]:
    Path("event.json").write_text(json.dumps(mechanism))
    return ("event.json",)


def _run(config: dict[str, Any]) -> tuple[Any, ...]:
    _train(config)
    return ("run",)


def _loop(kind: str) -> tuple[Any, ...]:
    _watch(kind)
    return ("ledger.json",)


def _together() -> tuple[Any, ...]:
    _train(RUNS["digits"])
    _watch("opacus")
    return ("run", "ledger.json")


def cases() -> Iterator[Case]:
    """Documents of each kind, then edits of three."""
    for name, more in PLANS.items():
        words = ("dpsgd", "--noise-multiplier", "1.1", *SIZES, *more)
        whole = name in ("poisson", "persons", "clients", "shuffled", "selection", "secret")
        yield Case(f"plan; {name}", lambda w=words, x=whole: _documents(lambda: w, languages=x, gated=x))
    for name in EVENTS:
        yield Case(
            f"event; {name}",
            lambda n=name: _documents(lambda: _event(MECHANISMS[n]), languages=n == "gaussian", gated=False),
        )
    for name, config in RUNS.items():
        whole = name in ("digits", "sensitive", "persons")
        yield Case(f"run; {name}", lambda t=config, x=whole: _documents(lambda: _run(t), languages=x, gated=x))
    for kind in LOOPS:
        whole = kind in ("opacus", "faulty")
        yield Case(f"loop; {kind}", lambda k=kind, x=whole: _documents(lambda: _loop(k), languages=x, gated=x))
    yield Case("together; a run and a loop", lambda: _documents(_together, languages=True, gated=True))
    for kind in EDITED:
        for index in range(PIECES):
            yield Case(f"edits; {kind}; {index}", lambda k=kind, i=index: _edits(k, i))


EDITED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "plan": lambda: _event({**MECHANISMS["poisson"], "steps": 5}),
    "run": lambda: _run(RUNS["network"]),
    "loop": lambda: _loop("opacus"),
}
PIECES, EDITS = 5, 100
"""Of each document."""


@cache
def _genuine(kind: str) -> str:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        called("certify", *EDITED[kind](), "--out", "made")
        return Path("made/certificate.public.json").read_text()


def _chosen(document: Any) -> list[tuple[str, ...]]:
    """Leaves by their names alone, so that one more elsewhere moves none; of each kind one before a second of any."""
    seen, turns = Counter(), []
    for path in sorted(leaves(document), key=lambda path: crc32("/".join(path).encode())):
        kind = tuple(re.sub(r"^[\d.e+-]+$", "#", part) for part in path)
        turns.append((seen[kind], path))
        seen[kind] += 1
    return [path for _, path in sorted(turns, key=lambda one: one[0])][:EDITS]


def _other(value: Any, turn: int) -> Any:
    """Another value: by turns of its kind, of another kind."""
    if is_message(value):
        return to_json(said(f"{from_json(value)}x"))
    if turn % 3 == 2:
        return next(other for other in ({"a": 1}, [], "x", -1, 1e400)[turn % 4 :] if other != value)
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + (1 if turn % 2 else -1)
    if isinstance(value, float):
        return value * (0.99 if turn % 2 else 1.01) or 0.01
    return f"{value}x" if isinstance(value, str) else 1


def _forged(document: Any, path: tuple[str, ...]) -> Any:
    """With another value at ``path``, sealed again; the digest of the ledger stays, by which an edit of it is found."""
    here: Any = document
    for part in path:
        here = here[int(part)] if isinstance(here, list) else here[part]
    Edit(path, _other(here, crc32("/".join(path).encode()))).on(document)
    try:
        return document_of(resealed(document))
    except (ReticentError, ValueError, AttributeError):
        return document


def _edits(kind: str, piece: int) -> dict[str, str]:
    """What ``verify`` says of a document with one leaf changed."""
    text, told = _genuine(kind), {}
    for path in _chosen(json.loads(text))[piece::PIECES]:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            Path("edited.json").write_text(json.dumps(_forged(json.loads(text), path)))
            exit_code = called("verify", "edited.json")["exit"]
            told["/".join(path)] = ("accepted", "refused", "not read")[exit_code]
    return told
