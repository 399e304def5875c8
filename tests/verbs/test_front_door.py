"""``import reticent as rt``: names, laziness, adversaries by name, tables."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

import reticent as rt
from reticent import verbs
from reticent.auditing import Scores
from reticent.calibration import EpsilonAtDelta
from reticent.kernel.errors import ParameterError, ReticentError, UnsupportedError
from reticent.kernel.text import digits
from reticent.verbs import Table
from tests.certificates.ledgers import poisson

pytestmark = pytest.mark.usefixtures("quick_documents")

RUN = rt.dpsgd(noise_multiplier=2.0, batch_size=10, dataset_size=1000, epochs=1)
PLAIN = rt.Gaussian(2.0, 3)  # where what is tested does not depend on the release: no composition


def test_what_is_not_there_is_answered_with_the_nearest_name():
    assert 20 <= len(rt.__all__) <= 52
    for package in (rt, verbs):
        with pytest.raises(AttributeError, match=r"no attribute 'asess'.*did you mean assess"):
            _ = package.asess


@pytest.fixture(scope="module")
def first() -> list[str]:
    """What a process of its own says: of the import, of an assessment, and of packages with the names of verbs."""
    code = (
        "import time; started = time.process_time(); import reticent as rt; spent = time.process_time() - started\n"
        "import importlib, pkgutil, sys; modules = set(sys.modules)\n"
        "print(spent, *modules)\n"
        "rt.assess(rt.Gaussian(2.0)).to_json()\n"
        "print(*sys.modules)\n"
        "packages = {m.name for m in pkgutil.iter_modules(rt.__path__)}\n"
        "for package in ('calibration', 'auditing', 'watching'): importlib.import_module(f'reticent.{package}')\n"
        "verbs = {type(getattr(rt, verb)).__name__ for verb in ('calibrate', 'audit', 'watch')}\n"
        "print(*verbs, *packages & set(rt.__all__))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_import_loads_nothing_and_costs_little(first: list[str]) -> None:
    spent, *modules = first[0].split()
    assert "reticent" in modules
    assert not {"numpy", "scipy", "torch", "pydantic", "matplotlib", "click", "rich", "jinja2", "yaml"} & set(modules)
    assert float(spent) < 0.15


def test_an_assessment_loads_no_other_verb(first: list[str]) -> None:
    others = ("calibration", "auditing", "watching", "certificates.document.schema", "verbs.documents", "verbs.noise")
    assert not {f"reticent.{name}" for name in others} & set(first[1].split())


@pytest.mark.parametrize("package", ["reticent", "reticent.verbs", "reticent.attacks", "reticent.training"])
def test_the_stub_is_the_one_list_of_names(package: str) -> None:
    """What type checkers read is what is loaded, and nothing is loaded that is not listed."""
    module = importlib.import_module(package)
    lines = Path(f"{module.__file__}i").read_text().splitlines()
    listed = {line.rpartition(" ")[2]: line.split()[1] for line in lines if line.startswith("from ")}
    assert sorted({*listed, "__version__"} if package == "reticent" else listed) == module.__all__ == dir(module)
    for name, where in listed.items():
        assert getattr(module, name) is getattr(importlib.import_module(where), name) is not None


def test_verbs_are_functions_and_packages_are_nouns(first: list[str]) -> None:
    """A package that bears the name of a verb would take its place as soon as anything imports it."""
    assert first[2].split() == ["function"]


def test_dpsgd_from_what_people_know():
    assert (RUN.sample_rate, RUN.steps, RUN.dataset_size) == (0.01, 100, 1000)
    assert rt.dpsgd(noise_multiplier=1.0, sample_rate=0.3, epochs=1).steps == 4  # rounded up
    assert rt.dpsgd(noise_multiplier=1.0, batch_size=3, dataset_size=10, epochs=10).steps == 34
    for wrong in (
        {"batch_size": 11, "dataset_size": 10, "epochs": 1},
        {"batch_size": 10, "dataset_size": 1000, "epochs": 1, "steps": 5},
        {"batch_size": 10, "dataset_size": 1000},
        {"batch_size": 10, "dataset_size": 1000, "sample_rate": 0.5, "steps": 5},
        {"steps": 5},
    ):
        with pytest.raises(ParameterError):
            rt.dpsgd(noise_multiplier=1.0, **wrong)


def test_an_adversary_can_be_an_object_a_name_or_a_list():
    for who in (rt.Relaxed(), "relaxed", ["relaxed"], [rt.Relaxed(), "worst-case"]):
        found = rt.assess(RUN, who)
        assert [a.adversary.name for a in found] == ["relaxed", "worst-case"]
    assert [a.adversary.name for a in rt.assess(RUN)] == ["worst-case"]
    assert rt.assess(RUN, "relaxed")["relaxed"].measure(rt.advantage).value < 1.0


def test_all_lists_who_cannot_be_answered():
    found = rt.assess(PLAIN, "all")
    assert "attribute" in found.skipped
    assert "attribute left out" in repr(found)


def test_an_assessment_prints_as_a_short_table():
    found = rt.assess(RUN, "relaxed", fpr=(0.01,), delta=(1e-5,))
    lines = repr(found).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == ["attacker", "neighbouring", "claim", "advantage", "TPR@0.01", "epsilon@1e-05"]
    worst = found["worst-case"]
    assert lines[3].split()[-1] == digits(rt.epsilon_at_delta(worst.curve, 1e-5), up=True)


def test_a_table_keeps_to_80_columns_and_names_its_rows_in_every_block():
    found = rt.assess(PLAIN, "relaxed", fpr=[0.1, 0.01, 0.001, 0.0001], delta=[1e-5, 1e-6])
    found.skipped["somebody"] = "a reason of many words, " * 8
    lines = repr(found).splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if line.startswith("attacker")]
    assert len(heads) == 2
    assert all(head.split()[:2] == ["attacker", "neighbouring"] for head in heads)
    shown = [name for head in heads for name in head.split()[2:]]
    assert shown == list(found.columns()[2:])  # every column once, in its order
    worst = [line.split() for line in lines if line.startswith("worst-case")]
    assert worst[1][-1] == digits(rt.epsilon_at_delta(found["worst-case"].curve, 1e-6), up=True)


def test_html_is_escaped_and_carries_no_colours():
    found = rt.assess(RUN, "relaxed")
    found.skipped["<script>alert(1)</script>"] = "& more"
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "style" not in page
    assert page.count("<tr>") == 3
    assert "<li>declared: Each record is included in each batch independently" in page  # of all attackers
    assert "<li>relaxed: The attacker does not know in which direction" in page


def test_to_pandas_has_full_precision_or_says_what_to_install(monkeypatch):
    found = rt.assess(RUN)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pandas", None)
        with pytest.raises(UnsupportedError, match="pip install pandas"):
            found.to_pandas()
    pandas = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["advantage"][0] == found[0].measure(rt.advantage).value


def test_a_target_is_an_object_a_text_as_on_the_command_line_or_keywords():
    target, text = EpsilonAtDelta(2.0, 1e-5), "epsilon=2@1e-5"
    found = [rt.calibrate(PLAIN, epsilon=2.0, delta=1e-5), rt.calibrate(PLAIN, target=target)]
    found += [rt.calibrate(PLAIN, said) for said in (target, text)] + [rt.calibrate(PLAIN, "worst-case", text)]
    assert {(one.target, one.value) for one in found} == {(target, found[0].value)}
    reached = rt.assess(found[0].mechanism, delta=1e-5)["worst-case"].curve
    assert rt.epsilon_at_delta(reached, 1e-5) <= 2.0
    assert [one.adversary.name for one in rt.compare(PLAIN, ["worst-case"], text)] == ["worst-case"]
    for wrong in (
        {},
        {"epsilon": 2.0},
        {"advantage": 0.1, "mu": 1.0},
        {"advantge": 0.1},
        {"advantage": 0.1, "fpr": 0.1},
    ):
        with pytest.raises(ParameterError, match=r"(target|keyword) must be"):
            rt.calibrate(PLAIN, **wrong)
    with pytest.raises(ParameterError, match="noise-multiplier"):
        rt.calibrate(PLAIN, advantage=0.1, unknown="noise")


def test_a_certificate_is_true_where_it_is_accepted():
    found = rt.certify(rt.Gaussian(2.0), adversary="relaxed", subject="a sum")
    assert "no ledger of a run supports it" in repr(found)
    assert found.verify()
    first, *others = found.certificate.assessments
    wrong = first.model_copy(update={"claim": "estimate"})
    forged = found.certificate.model_copy(update={"assessments": [wrong, *others]})
    assert not rt.verify(forged)
    assert "REFUSED" in repr(rt.verify(forged))


def test_no_two_rows_of_an_audit_have_one_name():
    found = rt.audit([3.0, 2.0, 2.5] * 40, [0.0, 1.0, 0.5] * 40)
    names = [row[0] for row in found.rows()]
    assert len(set(names)) == len(names)
    assert "epsilon at delta 1e-05, if the curve is Gaussian" in names
    assert found.rows()[0][:2] == ("AUC", found.report.auc.value)


def test_every_answer_is_short_in_text_and_a_table_in_a_notebook():
    found = rt.calibrate(PLAIN, "relaxed", advantage=0.1)
    assert repr(found[0]).startswith(f"noise multiplier {digits(found.value, 6, up=True)} for ")
    assert "for advantage=0.1 against relaxed (add-remove, exact)" in repr(found[0])
    assert len(repr(found[0])) < 160
    page = rt.Ledger((PLAIN, rt.dpsgd(noise_multiplier=1.0, sample_rate=0.1, steps=30)))._repr_html_()
    assert page.count("<table>") == 2
    assert "<td>epochs</td><td>3</td>" in page
    assert "None" not in page
    from matplotlib.figure import Figure

    (axes,) = found.plot(Figure().subplots(1, 1), "linear")
    assert len(axes.get_lines()) >= 1


def test_the_annotations_are_for_users_too() -> None:
    """PEP 561: without this empty file type checkers take every name of an installed package for Any."""
    assert (files("reticent") / "py.typed").is_file()


def test_a_notebook_shows_long_text_whole_and_no_table_without_rows() -> None:
    class Long(Table):
        def title(self):
            return "one title"

        def columns(self):
            return ("name", "reason")

        def rows(self):
            return [("a", "word " * 50)] * self.count

    one, none = Long(), Long()
    one.count, none.count = 1, 0
    assert ("word " * 50).strip() in one._repr_html_()
    assert "<table" not in none._repr_html_()
    assert "one title" in none._repr_html_()


PLAN = partial(rt.DPSGD, noise_multiplier=1.0, sample_rate=0.1, steps=10)
SCORES = partial(rt.audit, [1.0, 2.0], [0.0, 1.0])
OF_DATA = partial(rt.calibrate_samplers, advantage=0.1, dataset_size=9, epochs=1)
POISSON = re.escape("Poisson()")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        # the nearest name
        (lambda: rt.assess(PLAIN, "relaxd"), r"did you mean relaxed\?"),
        (lambda: rt.assess(PLAIN, "Worst Case"), r"did you mean worst-case\?"),
        (lambda: rt.assess(PLAIN, rt.Relaxed), r"rt.Relaxed\(\)"),
        (lambda: rt.calibrate(PLAIN, "eps=3"), "epsilon=3@1e-5"),
        (lambda: rt.calibrate(PLAIN, "bayes_securty=0.9"), "bayes-security=0.9"),
        (lambda: rt.calibrate(PLAIN, "epsilon=3"), "write epsilon=3@1e-5"),
        (lambda: rt.calibrate(PLAIN, "power=0.1"), "tpr=0.1@0.01"),
        (lambda: rt.calibrate(PLAIN, "gdp=1"), "mu=1"),
        (lambda: rt.calibrate(PLAIN, eps=0.5), r"did you mean epsilon\?"),
        (lambda: rt.calibrate(PLAIN, **{"bayes-security": 0.5}), r"did you mean bayes_security\?"),
        (lambda: rt.calibrate(PLAIN, unknwon="steps"), r"did you mean unknown\?"),
        (lambda: rt.dpsgd(noise_multipler=1, sample_rate=0.1, steps=5), r"did you mean noise_multiplier\?"),
        (lambda: rt.dpsgd(noise_multiplier=1, q=0.1, steps=5), r"did you mean sample_rate\?"),
        (lambda: rt.DPSGD(noise_multiplier=1, samplerate=0.1, steps=5), r"did you mean sample_rate\?"),
        (lambda: rt.Gaussian(noise_multiplier=1, dimensions=3), r"did you mean dimension\?"),
        (lambda: rt.Gaussian(sigma=1), r"did you mean noise_multiplier\?"),
        (lambda: rt.Relaxed(dimenson=3), r"did you mean dimension\?"),
        (lambda: rt.assess(PLAIN, adversry="relaxed"), r"did you mean adversary\?"),
        (lambda: rt.certify(PLAIN, subjekt="x"), r"did you mean subject\?"),
        (lambda: SCORES(confidnce=0.9), r"did you mean confidence\?"),
        # what to write
        (lambda: PLAN(sampler="fixed"), r"^sampler must be .*write sampler=FixedSize\(\), got 'fixed'"),
        (lambda: PLAN(sampler="dice"), f"^sampler must be one of {POISSON}, .*, got 'dice'"),
        (lambda: PLAN(unit="client"), "^unit must be .*units.Unit: write unit=Unit.CLIENT, got"),
        (lambda: rt.Relaxed(gradients="linear-head"), "write gradients=Gradients.LINEAR_HEAD, got"),
        (lambda: Scores([1.0], [0.0], design="poplation"), "write design=Design.POPULATION, got"),
        (lambda: SCORES(rule="rank"), "rule must be a rule of reticent.auditing, .* got 'rank'"),
        (lambda: rt.compare(advantage=0.1), r"mechanism must be a mechanism such as rt\.dpsgd"),
        (lambda: rt.advantage(rt.assess(PLAIN, "relaxed")), r"one assessment, such as found\['relaxed'\]"),
        (lambda: rt.tpr_at_fpr(0.3, 0.01), r"a mechanism such as rt\.dpsgd"),
        (lambda: rt.Ledger(PLAIN), r"Ledger\(\(one, other\)\)"),
        (lambda: rt.Ledger(PLAIN, PLAIN), r"parts must be in one tuple: Ledger\(\(one, other\)\), got '2 arguments'"),
        # a value of another kind
        (lambda: rt.assess(PLAIN, delta="1e-5"), "delta must be a finite number, got '1e-5'"),
        (lambda: rt.certify(PLAIN, subject=3), "subject must be a text, got 3"),
        (lambda: rt.certify(poisson(), issuer=3), "issuer must be a text, got 3"),
        (lambda: rt.certify(PLAIN, policy=3), "policy must be a path, got 3"),
        (lambda: rt.verify(3), "certificate must be a certificate, or the path of its file or page, got 'int'"),
        (lambda: rt.verify("c.json", key=3), "key must be a path, got 3"),
        (lambda: rt.verify(rt.certify(PLAIN), tolerance=1.0), "tolerance must be a number from 0 to 1e-05, got 1.0"),
        (lambda: rt.certify(PLAIN).save("x", overwrite="yes"), "overwrite must be True or False, got 'yes'"),
        (lambda: rt.Ledger((PLAIN, "x")), "parts must be mechanisms, got 'x'"),
        (lambda: rt.Ledger(3), "parts must be a tuple of mechanisms, got 3"),
        (lambda: rt.assess(PLAIN).plot("x"), "ax must be"),
        (lambda: rt.assess(PLAIN).plot(panels=[]), "panels must be"),
        (lambda: rt.assess_each([PLAIN], engine="dask"), "engine must be Local, Dask or Ray .* got 'dask'"),
        (lambda: rt.assess_each([PLAIN], progress=3), "progress must be a function, or None, got 3"),
        (lambda: SCORES(fprs=[None]), "fprs must be a finite number"),
        (lambda: SCORES(claim={"a": 1}), "claim must be curves by name"),
        (lambda: rt.calibrate(PLAIN, advantage=0.1, unknown=3), "unknown must be one of .* got 3"),
        (lambda: OF_DATA(batch_size="nine"), "batch_size must be"),
        (lambda: OF_DATA(sampler=3), "sampler must be one of"),
        (lambda: rt.secret_success(PLAIN, 9.0, "1"), "guesses must be a finite number, got '1'"),
        (lambda: rt.watch("model", None, "x"), "loader must be a loader of batches, got 'x'"),
        (lambda: rt.watch("model"), "model must be a torch module, bare or wrapped by Opacus, got 'str'"),
        # what is missing
        (lambda: rt.audit([1.0, 2.0]), "non_member_scores must be given"),
        (lambda: rt.Gaussian(), "missing 1 required positional argument: 'noise_multiplier'"),
        (lambda: rt.dpsgd(noise_multiplier=1.0, epochs=3), r"^(?!.*None).*given"),
        (lambda: rt.dpsgd(noise_multiplier=-1, sample_rate=0.1, steps=3), "got -1"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_was_meant(call, told):
    with pytest.raises((ReticentError, TypeError), match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_what_is_not_known_is_not_got() -> None:
    skipped = rt.assess(rt.DPSGD(1.1, 0.01, 10), "all").skipped
    assert "known" in skipped["membership-game"]
    assert "None" not in skipped["membership-game"]
