"""Several releases from the same records, certified together: what each rests on is cited, and noise is their own."""

from __future__ import annotations

import pytest
import torch

import reticent as rt
from reticent.certificates.build import public
from reticent.certificates.page.facts import facts
from reticent.certificates.page.page import render_html
from reticent.kernel.errors import ArtifactError
from reticent.mechanisms import MatrixMechanism
from reticent.training import parse_config, train

pytestmark = pytest.mark.usefixtures("quick_documents")

CONFIG = {
    "data": {"name": "breast-cancer"},
    "model": {"kind": "logistic"},
    "noise_multiplier": 4.0,
    "batch_size": 57,
    "steps": 3,
    "learning_rate": 0.1,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [train(parse_config(CONFIG | {"noise_multiplier": noise}), folder / str(noise)) for noise in (4.0, 6.0)]


def test_each_ledger_is_cited_by_what_its_own_public_certificate_shows(runs) -> None:
    plan = rt.DPSGD(8.0, 0.1, 5)
    both = rt.certify([*runs, plan], adversary="worst-case")
    assert [part["noise_multiplier"] for part in both.certificate.mechanism["parts"]] == [4.0, 6.0, 8.0]
    cited = both.certificate.declared.releases
    assert cited[2] is None
    for run, release in zip(runs, cited, strict=False):
        alone = public(rt.certify(run, adversary=None).certificate)
        assert release.ledger == alone.ledger.digest
        assert release.training_data == alone.ledger.data.commitment
        assert release.warnings == ("size-treated-as-public",)
    assert cited[0].ledger != cited[1].ledger
    assert "drawn-anew" in {one.key for one in both.certificate.assessments[0].conditions}
    assert both.verify().accepted
    shown = {str(label): str(value) for _, (label, value) in facts(public(both.certificate))}
    assert cited[1].ledger in shown["release 2"]
    assert "no ledger of a run was read" in shown["release 3"]
    assert any("! " in line and "size-treated-as-public" in line for line in both.alone)


def test_files_are_cited_as_runs_are_and_a_plan_cites_nothing(runs, tmp_path) -> None:
    paths = [run.path / "ledger.json" for run in runs]
    by_file, by_run = (rt.certify(what, adversary="worst-case").certificate.declared for what in (paths, runs))
    assert by_file.releases == by_run.releases
    plans = rt.certify([rt.DPSGD(8.0, 0.1, 5), rt.Gaussian(2.0)], adversary="worst-case").certificate
    assert plans.declared.releases == ()
    assert "releases" not in plans.model_dump(mode="json")["declared"]


def test_recorded_runs_are_no_plan(runs) -> None:
    plan = rt.Gaussian(20.0)
    for what, says in (
        (runs, "Several recorded runs, as the issuer declares"),
        ([*runs, plan], "Several releases, and not all are of recorded runs"),
        ([plan, plan], "Plan: nobody saw a run."),
    ):
        both = rt.certify(what, adversary="worst-case")
        page = render_html(both.certificate)
        assert says in page
        assert ("Plan: nobody saw a run." in page) == ("What is planned" in page) == (what == [plan, plan])
        assert any(says.split(",")[0] in note for note in both.notes()) != (what == [plan, plan])
        assert any(says.split(",")[0] in note for note in both.verify().notes()) != (what == [plan, plan])


def test_one_run_is_not_two_releases(runs, tmp_path) -> None:
    copied, path = tmp_path / "copy.json", runs[0].path / "ledger.json"
    copied.write_bytes(path.read_bytes())
    for same in ([path, path], [path, copied], [runs[0], runs[1], path]):
        with pytest.raises(ArtifactError, match="are the same run: name it once"):
            rt.certify(same)
    assert rt.certify([rt.Gaussian(2.0)] * 2, adversary="worst-case").alone  # a plan may be carried out twice


def test_a_ledger_that_contradicts_itself_is_no_release(runs) -> None:
    (steps,) = runs[0].ledger.segments
    noisier = steps.model_copy(update={"noise_multiplier": 40.0})
    changed = runs[0].ledger.model_copy(update={"segments": (noisier,)})
    with pytest.raises(ArtifactError, match="contradicts itself"):
        rt.certify([changed, runs[1]])


def test_two_runs_with_one_seed_share_their_noise(tmp_path) -> None:
    seeded = CONFIG | {"randomness": "reproducible"}
    same = [train(parse_config(seeded | {"learning_rate": rate}), tmp_path / str(rate)) for rate in (0.1, 0.2)]
    with pytest.raises(ArtifactError, match="drew their noise from one seed"):
        rt.certify(same)
    other = train(parse_config(seeded | {"seed": 1}), tmp_path / "other")
    found = rt.certify([same[0], other], adversary="worst-case")
    assert "reproducible-noise" in found.certificate.declared.releases[0].warnings


def test_together_they_rest_on_no_less_than_each_alone(tmp_path) -> None:
    """A policy that a loop breaches by itself is not met by two of them: nobody saw where either began."""
    loops = []
    for noise in (4.0, 6.0):
        with rt.watch(torch.nn.Linear(2, 2), sampler="poisson") as seen:
            for _ in range(3):
                seen.step(noise_multiplier=noise, sample_rate=0.1)
        loops.append(tmp_path / f"{noise}.json")
        seen.save(loops[-1])
    shown = [rt.certify(what).certificate.assessments[0] for what in (loops[0], loops)]
    alone, both = ({one.key for one in found.conditions if one.known.open} for found in shown)
    assert "start-weights" in alone
    assert alone <= both


@pytest.mark.parametrize(
    ("what", "begins"),
    [
        (rt.dpsgd(noise_multiplier=4.0, sample_rate=0.1, steps=3), True),
        (MatrixMechanism(4.0, 3), True),
        (rt.Ledger((rt.dpsgd(noise_multiplier=4.0, sample_rate=0.1, steps=3), rt.Gaussian(2.0))), True),
        (rt.Gaussian(2.0), False),
    ],
)
def test_a_plan_with_steps_rests_on_where_it_begins(what, begins: bool) -> None:
    """One training as much as several: weights that were trained on the same records show these records."""
    (record,) = rt.certify(what, adversary="worst-case").certificate.assessments
    found = [one.status for one in record.conditions if one.key == "start-weights"]
    assert found == (["assumed"] if begins else [])
