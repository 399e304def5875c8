"""One list: a mechanism or an attacker that is added to it appears everywhere by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.page import render_html
from reticent.certificates.verify import verify
from reticent.cli import main
from reticent.curves import LaplaceTradeOff
from reticent.kernel import registry
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import ADVERSARIES, Adversary, Assessment, Method, WorstCase
from reticent.kernel.adversaries.base import adversaries_named
from reticent.kernel.curves import GaussianTradeOff, Mixture
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ExtensionError, ParameterError
from reticent.kernel.mechanisms import MECHANISMS, Gaussian, Mechanism
from reticent.kernel.pairs import CurvePair, Neighbouring, Part
from reticent.kernel.proofs import CONDITIONS, Proof, references
from reticent.kernel.proofs.references import Paper, Theorem, add_paper
from reticent.kernel.registry import Registry, described, parameters_of
from reticent.mechanisms import Laplace
from tests.cli.calling import run
from tests.conftest import forget


@dataclass(frozen=True, slots=True)
class Sleepy(Adversary):
    """Looks at the release with some probability only.

    Knows: everything but this record.
    Claim: a bound.
    """

    awake: float = field(default=0.5, metadata=described("Probability of looking at all."))

    name: ClassVar[str] = "sleepy"
    title: ClassVar[str] = "Attacker who sleeps now and then"
    relation: ClassVar[Neighbouring] = Neighbouring.ZERO_OUT
    knows: ClassVar[str] = "everything but this record, when awake"
    lacks: ClassVar[str] = "the noise"
    infers: ClassVar[str] = "whether this record was used"

    def assess(self, mechanism: Mechanism, neighbouring: Neighbouring, method: Method = Method.EXACT) -> Assessment:
        truth = compose(mechanism, neighbouring)
        curve = Mixture([truth.pessimistic, GaussianTradeOff(0.0)], [self.awake, 1.0 - self.awake])
        proof = Proof(Enclosure.from_above(curve), theorems=("RETICENT:public-coin",))
        return Assessment(self, neighbouring, method, (proof,))


ASKED = """
import sys
from concurrent.futures import ThreadPoolExecutor
import reticent as rt
from reticent.kernel.adversaries.base import ADVERSARIES
rt.WorstCase()
try:
    rt.DPSGD(1.0, 0.1, 10, sigma=2.0)
except TypeError as error:
    print(error)
print(*(name for name in sys.modules if name.startswith(("reticent.adversaries.", "reticent.mechanisms."))))
with ThreadPoolExecutor(8) as pool:
    print(*set(pool.map(lambda _: " ".join(ADVERSARIES), range(8))), sep="; ")
"""


def told(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_lists_are_loaded_at_the_first_use_and_are_whole() -> None:
    """Whatever was imported, and however many ask at once; what is given as an object costs its own imports."""
    error, loaded, lists = told(ASKED)
    assert "did you mean noise_multiplier?" in error
    names = {"base", "worst_case", "dpsgd", "units", "witness"}
    assert {name.split(".")[2] for name in loaded.split()} <= names
    assert lists == " ".join(ADVERSARIES)


BY_HAND = """
from reticent.kernel.proofs import CONDITIONS, Condition, Status
Condition('poisson-draws', Status.ASSUMED)
import sys
print(len(CONDITIONS), 'reticent.samplers.shuffled' in sys.modules)
from reticent.kernel.adversaries.base import ADVERSARIES, Adversary
from reticent.kernel.errors import ParameterError
try:
    ADVERSARIES.add(type("Other", (), {"name": "relaxed"}))
except ParameterError as error:
    print(error)
ADVERSARIES.add(type("Mine", (), {"name": "mine"}))
print(*ADVERSARIES)
"""


def test_whoever_lists_a_kind_first_of_all_comes_after_the_built_in_ones() -> None:
    """Lists are loaded when they are first asked: a name that is taken was refused there, and for good.

    Conditions of samplers are known whatever was imported.
    """
    assert told(BY_HAND) == [
        f"{len(CONDITIONS)} True",
        "name must be a name that no other attacker has, got 'relaxed'",
        " ".join([*ADVERSARIES, "mine"]),
    ]


@pytest.fixture
def sleepy() -> Iterator[type[Adversary]]:
    yield ADVERSARIES.add(Sleepy)
    ADVERSARIES.remove("sleepy")


def said(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    output = capsys.readouterr()
    assert ended.value.code == 0, output.err
    return " ".join(output.out.split())


def test_help_names_it_with_its_parameter(capsys) -> None:
    """Also where the file of a verb was read before the attacker was listed, and no longer afterwards."""
    verbs = ("risk", "dpsgd"), ("calibrate", "laplace"), ("compare", "gaussian"), ("compare", "run"), ("audit",)
    assert all("sleepy" not in said(capsys, *verb, "--help") for verb in verbs)
    ADVERSARIES.add(Sleepy)
    try:
        shown = [said(capsys, *verb, "--help") for verb in verbs]
    finally:
        ADVERSARIES.remove("sleepy")
    for one in shown:
        assert "attribute, sleepy" in one
        assert "--awake FLOAT Probability of looking at all, for sleepy. Default: 0.5." in one
        assert "and zero-out for sleepy" in one
    assert "sleepy" not in said(capsys, "audit", "--help")


def test_risk_and_calibrate_answer_for_it(sleepy, capsys) -> None:
    words = ("risk", "gaussian", "--noise-multiplier", "2", "--adversary", "sleepy", "--awake", "0.25", "--json")
    found = {a["adversary"]: a for a in json.loads(said(capsys, *words))["assessments"]}
    assert found["sleepy"]["neighbouring"] == "zero-out"
    assert found["sleepy"]["parameters"] == {"awake": 0.25}
    mine, worst = (found[name]["advantage"]["value"] for name in ("sleepy", "worst-case"))
    assert mine == pytest.approx(0.25 * worst, rel=1e-9, abs=0)
    everybody = said(capsys, "risk", "laplace", "--noise-multiplier", "2", "--adversary", "all")
    assert "sleepy bound" in everybody
    answer = calibrate(Gaussian(1.0), NoiseMultiplier(), Advantage(0.1), Sleepy())
    assert answer.achieved.value <= 0.1 < 1.001 * answer.achieved.value
    assert "sleepy (zero-out, exact, bound)" in said(
        capsys, "calibrate", "gaussian", "--target", "advantage=0.1", "--adversary", "sleepy"
    )


def test_a_parameter_of_somebody_else_is_refused(sleepy, capsys) -> None:
    _, _, err = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--awake", "0.2")
    assert "--awake must be left out unless --adversary sleepy is asked for" in err


def test_certificates_hold_it_and_verify_derives_it_again(sleepy) -> None:
    document = certify(Gaussian(2.0), Declaration(subject="s", created="2026-01-01"), adversaries=(Sleepy(),))
    assert "sleepy" in {record.adversary for record in document.assessments}
    assert Sleepy.title in render_html(document)
    assert verify(document).accepted
    forged = document.model_dump(mode="json", by_alias=True)
    place = next(i for i, a in enumerate(forged["assessments"]) if a["adversary"] == "sleepy")
    forged["assessments"][place]["parameters"]["awake"] = 0.4
    assert not verify(Certificate.parse(forged)).accepted


class Point:
    """An entry point of another package."""

    def __init__(self, name: str, found: object, value: str = "other.file:Kind") -> None:
        self.name, self.value, self.found, self.dist = name, value, found, None

    def load(self) -> object:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def offered(monkeypatch: pytest.MonkeyPatch, *points: Point) -> Registry[Adversary]:
    """A list with one built-in attacker, and what other packages offer."""
    found = SimpleNamespace(select=lambda group: [point for point in points if group == "group"])
    monkeypatch.setattr(registry, "offered_here", lambda: found)
    listed: Registry[Adversary] = Registry("attacker", "group", Adversary)
    listed.add(WorstCase)
    return listed


def test_other_packages_come_after_the_built_in_ones(monkeypatch) -> None:
    assert list(offered(monkeypatch, Point("sleepy", Sleepy))) == ["worst-case", "sleepy"]


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        (Point("sleepy", ImportError("no module named other")), "ImportError: no module named other"),
        (Point("sleepy", object()), "not a subclass of Adversary"),
        (Point("sleepy", Gaussian), "not a subclass of Adversary"),
        (Point("lazy", Sleepy), "the entry point is called 'lazy' and the class 'sleepy'"),
        (Point("worst-case", type("WorstCase", (WorstCase,), {})), "a name that no other attacker has"),
    ],
)
def test_what_cannot_be_used_is_named_each_time(monkeypatch, point: Point, problem: str) -> None:
    """No answer comes from a list that lacks an installed attacker."""
    listed = offered(monkeypatch, point)
    for _ in range(2):
        with pytest.raises(ExtensionError, match=r"other\.file:Kind of the package unknown") as wrong:
            list(listed)
        assert problem in str(wrong.value)


def test_theorems_of_other_packages_are_said_once(monkeypatch) -> None:
    paper, theorem = Paper("ME2026", "Me", "Mine", 2026, "1"), Theorem("ME2026:Theorem 1", "It holds.", "Always.")
    monkeypatch.setattr(references, "PAPERS", dict(references.PAPERS))
    monkeypatch.setattr(references, "THEOREMS", dict(references.THEOREMS))
    add_paper(paper, theorem)
    add_paper(paper, theorem)
    assert references.cite("ME2026:Theorem 1")
    with pytest.raises(ParameterError, match="nothing else has"):
        add_paper(paper, replace(theorem, says="Something else."))
    with pytest.raises(ParameterError, match="nothing else has"):
        add_paper(replace(paper, year=2025))
    with pytest.raises(ParameterError, match="nothing else has"):
        add_paper(paper, Theorem("RETICENT:mine", "It holds.", "Always."))


def test_names_are_taken_once_and_wrong_ones_are_answered_with_the_nearest(sleepy) -> None:
    with pytest.raises(ParameterError, match="no other attacker"):
        ADVERSARIES.add(type("Other", (), {"name": "sleepy"}))
    with pytest.raises(ParameterError, match=r"did you mean relaxed\?"):
        ADVERSARIES.find("relax", "adversary")


def test_no_option_means_two_things() -> None:
    own = {p.name for kind in MECHANISMS.values() for p in (*parameters_of(kind), *kind.extras)}
    both = own & {p.name for kind in ADVERSARIES.values() for p in parameters_of(kind)}
    assert both == {"dimension"}  # of a release, and in which the direction is unknown: the first comes first


@dataclass(frozen=True, slots=True)
class Spent(Mechanism):
    """A release by its budget."""

    epsilon: float = field(metadata=described("Budget of the release."))

    name: ClassVar[str] = "spent"

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        return (Part(CurvePair(LaplaceTradeOff(self.epsilon)), 1, ()),)


@dataclass(frozen=True, slots=True)
class Impatient(Sleepy):
    """Looks at the release where it shows much."""

    delta: float = field(default=0.5, metadata=described("Of what it looks at."))

    name: ClassVar[str] = "impatient"


@pytest.mark.parametrize(
    ("listed", "kind", "words", "option"),
    [
        (MECHANISMS, Spent, "spent --epsilon 1", "spent: --epsilon"),
        (ADVERSARIES, Impatient, "gaussian --noise-multiplier 1", "gaussian: --delta"),
    ],
)
def test_a_field_called_like_an_option_of_the_verb_ends_in_one_line(capsys, listed, kind, words, option) -> None:
    """Click gave the field what the verb had asked for, and the mechanism ended in a traceback."""
    listed.add(kind)
    code, _, err = run(capsys, "risk", *words.split())
    listed.remove(kind.name)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{option} is an option of the verb" in err


def test_parameters_come_from_fields() -> None:
    noise, releases, rate = parameters_of(Laplace)
    assert (noise.name, noise.kind, noise.required) == ("noise_multiplier", float, True)
    assert (releases.kind, releases.default) == (int, 1)
    assert rate.option == "sample-rate"


def test_the_relaxed_attacker_composes_the_worst_case_once(capsys) -> None:
    forget()
    words = "risk dpsgd --noise-multiplier 6 --sample-rate 0.2 --steps 100 --adversary relaxed"  # others have its sign
    said(capsys, *words.split(" "))
    assert compose.cache_info().misses == 1


def test_all_leaves_out_what_is_kept_for_reproduction() -> None:
    """A published curve that errs on the unsafe side appears where it is named, and nowhere else."""
    everyone, _ = adversaries_named(["all"])
    assert "norm-only" not in {who.name for who in everyone}
    named, _ = adversaries_named(["all", "norm-only"])
    assert [who.name for who in named] == [*(who.name for who in everyone), "norm-only"]
