"""The example package is built, installed and imported by nobody; each door shows what it adds by itself."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.risk import advantage
from tests.docs.follow import ROOT

pytest.importorskip("setuptools", "77")
pytestmark = pytest.mark.docs

DOORS = """
import json, runpy, sys
from datetime import UTC, datetime
import reticent as rt
from reticent.kernel.adversaries import style_of, ADVERSARIES
from reticent.attacks import AttackSettings, find_attack
from reticent.auditing import audit
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import render_html
from reticent.certificates.gate import check
from reticent.certificates.document.policy import Policy
from reticent.certificates.verify import verify
from reticent.certificates.document.schema import Certificate
from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import MECHANISMS
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import SAMPLERS

def drawn_by_its_sampler():
    # Its own condition is accepted and shown by who never heard of the sampler; its sentences stay English, marked so.
    run = rt.dpsgd(noise_multiplier=1.0, sample_rate=0.02, steps=9, sampler=SAMPLERS["alternating"](0.25))
    made = rt.certify(run, created="2026-01-01").certificate
    page = render_html(made, language_of("de"))
    return ["alternating-draws" in [c.key for c in made.assessments[0].conditions], verify(made).accepted,
            '<span lang="en">Each record is included in each batch independently' in page,
            '<span lang="en">Each record is drawn by chance, more rarely' in page]

accepting = {"schema": "reticent.policy/1", "limits": [{"measure": "mu", "at_most": 9}],
             "accept_conditions": ["alternating-draws"]}
assert Policy.model_validate(accepting).accept_conditions == ("alternating-draws",)
release = MECHANISMS["geometric"](0.5, releases=12)
certificate = rt.certify(release, adversary="all", created="2026-01-01").certificate
again = Certificate.parse(certificate.model_dump(mode="json", by_alias=True))
limit = {"measure": "advantage", "at_most": 0.45, "adversary": "every-kth"}
policy = Policy.model_validate({"schema": "reticent.policy/1", "limits": [limit]})
checked = check(again, verify(again), policy, now=datetime(2026, 2, 1, tzinfo=UTC))
scores = find_attack("coin").scores("run", AttackSettings(records=200))
report = audit(scores)
found = {
    "certified": {r.adversary: r.advantage.value for r in certificate.assessments},
    "theorems": sorted(map(str, certificate.theorems)),
    "title on the page": str(ADVERSARIES["every-kth"].title) in render_html(certificate),
    "verified": verify(again).accepted,
    "gate": [c.passed for c in checked if "every-kth" in c.name],
    "bounds": len(report.bounds),
    "largest": max(b.value for b in report.bounds),
    "drawn": drawn_by_its_sampler(),
    "routes": [one.name for one in compose(release, Neighbouring.ADD_REMOVE).trace],
    "styles": len({style_of(name).colour for name in ADVERSARIES}) == len(ADVERSARIES),
}
try:
    from reticent.dashboard.catalogue import ATTACKERS, PARAMETERS, RELEASED
    from reticent.dashboard.layout import made_styles
    from reticent.dashboard.requests import assess_of
    from reticent.dashboard.state import State
    drawn = State.of({"sampler": "alternating", "quiet": "0.25"})
    state = State.of({"mechanism": "geometric", "attackers": "every-kth", "stride": "3", "epsilon_per_unit": "0.5"})
    request = assess_of(state)
    found["page"] = [repr(request.mechanism), repr(request.adversary.each[1]), ".s-every-kth{" in made_styles(),
                     ".in-geometric{" in made_styles(), repr(assess_of(drawn).mechanism.sampler),
                     "[data-sampler=alternating]) .f-quiet{" in made_styles()]
except ImportError:
    pass
found["catalogue"] = runpy.run_path(sys.argv[1])["catalogue"]()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the example in it, built from a copy of its source without the network."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(ROOT / "examples" / "reticent-geometric", folder / "source")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder / "site")]
    built = subprocess.run([sys.executable, "-m", "pip", *words, str(source)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / "site"


def run(site: Path, *words: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(site)])
    variables = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def exact(releases: int) -> float:
    """The advantage by hand: one count shows a sign, wrong with probability e^-1/2 / (1 + e^-1/2)."""
    wrong = 1.0 / (1.0 + math.exp(0.5))
    law = [math.comb(releases, k) * wrong**k * (1.0 - wrong) ** (releases - k) for k in range(releases + 1)]
    return sum(max(here - there, 0.0) for here, there in zip(law, reversed(law), strict=True))


def test_doors_show_it(site: Path) -> None:
    found = json.loads(run(site, "-c", DOORS, str(ROOT / "docs/pages.py")))
    assert "### geometric\n" in found["catalogue"]
    assert "### every-kth: attacker who sees every k-th release\n" in found["catalogue"]
    certified = found["certified"]
    assert certified["every-kth"] == pytest.approx(exact(6), rel=1e-3, abs=0)
    assert certified["worst-case"] == pytest.approx(exact(12), rel=1e-3, abs=0)
    assert {"GHOSH2012:Definition 2.1", "GEOMETRIC:unseen-releases"} <= set(found["theorems"])
    assert found["title on the page"]
    assert found["verified"]
    assert found["gate"] == [True]
    assert found["bounds"] == 5  # four of every design, and its own
    assert found["largest"] == 0.0  # the control finds nothing
    assert found["drawn"] == [True] * 4
    assert found["styles"]
    assert found["routes"] == ["bounds", "coins"]  # its own counts exactly, so no lattice is asked
    if "page" in found:
        geometric, every_kth, *styled, alternating, shown = found["page"]
        assert (geometric, every_kth) == ("Geometric(epsilon_per_unit=0.5)", "EveryKth(stride=3)")
        assert (alternating, *styled, shown) == ("Alternating(quiet=0.25)", True, True, True)


def test_the_command_line_shows_it(site: Path) -> None:
    """Its own mechanism and attacker are a case of the corpus."""
    words = "risk dpsgd --noise-multiplier 1 --sample-rate 0.02 --steps 9 --sampler alternating --quiet 0.25 --json"
    answer = json.loads(run(site, "-m", "reticent", *words.split()))
    assert answer["mechanism"] | {"sampler": "alternating", "quiet": 0.25} == answer["mechanism"]
    schedule = Ledger((DPSGD(1.0, 0.02, 5), DPSGD(1.0, 0.005, 4)))
    worst = WorstCase().assess(schedule).measure(advantage).value
    assert answer["assessments"][0]["advantage"]["value"] == pytest.approx(worst, rel=1e-6, abs=0)
    words = "calibrate samplers --target mu=1 --dataset-size 1000 --epochs 2 --batch-size 50 --sampler alternating"
    assert "alternating" in run(site, "-m", "reticent", *words.split())
