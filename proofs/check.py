"""What ``make proofs`` does: compile every file with Coq, and show that no theorem rests on an axiom.

It needs Coq and mathcomp, and no package of Python. ``FILES`` is read by the documentation, which needs no Coq.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
MISSING = "make proofs needs Coq 8.16 and mathcomp 1.15, as Debian 12 has them: apt install coq libcoq-mathcomp-algebra"
CLOSED = "Closed under the global context"

_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_STATED = re.compile(
    r"^(?:\(\*(?:(?!\*\)).)*\*\)\n)?(Definition|Fixpoint|Theorem|Corollary) (\w+).*?\.$", re.DOTALL | re.MULTILINE
)
_PROVEN = ("Theorem", "Corollary")
_GRANTED = re.compile(
    r"\b(?:Admitted|admit|Abort|Axioms?|Parameters?|Hypothes[ie]s|Conjectures?|Context|(?:Un)?[Ss]et \w+ Checking|"
    r"bypass_check|give_up|mathcomp\.(?:analysis|classical)|Reals|Classical\w*)\b|"
    r"^Variables? (?!R : (?:comRingType|realFieldType|rcfType)\.$|n : nat\.$).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Proven:
    """A file of proofs, as its first comment describes it.

    Attributes:
        name: without its suffix.
        title: a heading.
        keys: of the theorems that it proves, or of which it proves a step.
        says: how its statements are to be read.
        leaves_out: what is not checked here.
        needs: files that it builds on.
        statements: by name, its theorems and what they speak of, as they stand there.
        theorems: the names of its theorems.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    says: str
    leaves_out: str
    needs: tuple[str, ...]
    statements: dict[str, str]
    theorems: tuple[str, ...]


def read(path: Path) -> Proven:
    """What a file of proofs says of itself, and states."""
    text = path.read_text(encoding="utf-8")
    head, body = re.match(r"\(\* (.*?) \*\)\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    told = dict(re.findall(r"^ *([a-z ]+): (.*?)(?=\n   [a-z]|\Z)", head, re.DOTALL | re.MULTILINE))
    told = {name: " ".join(words.split()) for name, words in told.items()}
    stated = {match[2]: match for match in _STATED.finditer(body)}
    needs = re.search(r"^From reticent Require Import (.*)\.$", body, re.MULTILINE)
    return Proven(
        path.stem,
        told["title"],
        tuple(told["keys"].split(", ")) if "keys" in told else (),
        told.get("says", ""),
        told.get("leaves out", ""),
        tuple(needs[1].split()) if needs else (),
        {name: match[0] for name, match in stated.items()},
        tuple(name for name, match in stated.items() if match[1] in _PROVEN),
    )


def files(folder: Path = HERE) -> tuple[Proven, ...]:
    """Every file, after those that it builds on; of its definitions those that some theorem speaks of."""
    known = {path.stem: read(path) for path in sorted(folder.glob("*.v"))}
    stated = {name: text for one in known.values() for name, text in one.statements.items()}
    spoken = new = {name for one in known.values() for name in one.theorems}
    while new:
        words = {word for name in new for word in re.findall(r"\w+", _COMMENT.sub("", stated[name]))}
        new = words & stated.keys() - spoken
        spoken |= new
    order = TopologicalSorter({name: one.needs for name, one in known.items()}).static_order()
    return tuple(_about(known[name], spoken) for name in order)


def _about(one: Proven, spoken: set[str]) -> Proven:
    return replace(one, statements={name: text for name, text in one.statements.items() if name in spoken})


def granted(text: str) -> list[str]:
    """Words of a file by which it would take something for granted."""
    return _GRANTED.findall(_COMMENT.sub("", text))


def main(folder: Path = HERE) -> int:
    """Check all; 0 where every theorem is proven."""
    if shutil.which("coqc") is None:
        print(MISSING)
        return 1
    known = files(folder)
    names = [f"{one.name}.{name}" for one in known for name in one.theorems]
    with TemporaryDirectory() as built:
        for one in known:
            text = (folder / f"{one.name}.v").read_text(encoding="utf-8")
            if found := granted(text):
                print(f"{one.name}.v takes for granted: {', '.join(found)}")
                return 1
            _compiled(Path(built), one.name, text)
        asked = "\n".join(f"Print Assumptions {name}." for name in names)
        required = " ".join(one.name for one in known)
        answer = _compiled(Path(built), "assumptions", f"From reticent Require {required}.\n{asked}\n")
    if answer.splitlines() != [CLOSED] * len(names):
        print(answer)
        return 1
    print("\n".join(f"{name}: {CLOSED}" for name in names))
    return 0


def _compiled(folder: Path, name: str, text: str) -> str:
    """What Coq prints for a file; it stops the program where Coq refuses it."""
    (folder / f"{name}.v").write_text(text, encoding="utf-8")
    command = ["coqc", "-q", "-w", "none", "-Q", ".", "reticent", f"{name}.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}.v is not proven:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
