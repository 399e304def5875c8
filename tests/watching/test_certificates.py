"""From a watched loop, parameters or a file to a certificate that verifies; lint; the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import reticent as rt
from reticent import facts
from reticent.certificates.document.schema import Certificate
from reticent.cli import main
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.records.ledger import RunLedger
from tests.watching.loops import BY_HAND, watched
from tests.watching.programs import NOISE, RATE, network, private, run

pytestmark = pytest.mark.usefixtures("quick_documents")


@pytest.fixture(scope="module")
def ledger():
    """Of a plan that was kept."""
    return watched(*private(), how={"epochs": 1}, planned_steps=6)


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def certified(ledger):
    return rt.certify(ledger, issuer="A clinic")


def test_a_watched_loop_ends_in_a_certificate_that_verifies(ledger, certified, tmp_path):
    certificate = certified
    assert certificate.verify().accepted
    document = certificate.certificate
    assert document.ledger.first.noise_multiplier == NOISE
    assert document.mechanism["sample_rate"] == RATE
    assert document.declared.weights_sha256 == ledger.ledger.weights_sha256
    files = certificate.save(tmp_path / "out")
    shown = Certificate.load(files.public)
    assert "diagnostics" not in shown.ledger
    assert rt.verify(files.public).accepted
    assert rt.verify(files.page).accepted
    page = files.page.read_text()
    assert "poisson (seen: UniformWithReplacementSampler)" in page
    assert re.search(r"planned steps</\w+>\s*<\w+>at most 6<", page)


def loop(steps_per_record=1, **options):
    def step(toy):
        toy.optimizer.step()
        if toy.step % steps_per_record == 0:
            toy.seen.step(noise_multiplier=NOISE)

    return BY_HAND.but(update=step, options=options).watched()[0]


def test_what_is_declared_must_not_contradict_what_is_seen():
    with pytest.raises(ParameterError, match="what the loader does, shuffled"):
        loop(sampler="poisson")
    made = private()
    with pytest.raises(ParameterError, match="as in the loader"), rt.watch(network(), None, made[2]) as seen:
        seen.step(noise_multiplier=1.0, sample_rate=0.5)


def test_without_a_loader_poisson_is_declared():
    with rt.watch(network(), sampler="poisson", start="declared") as told:
        for noise in (2.0, 2.0, 3.0):
            told.step(noise_multiplier=noise, sample_rate=0.1)
    assert [(p.noise_multiplier, p.sample_rate, p.steps) for p in told.mechanism().parts] == [
        (2.0, 0.1, 2),
        (3.0, 0.1, 1),
    ]
    assert facts.DECLARED in told.ledger.faults


def test_lint_names_each_fault_with_reason_and_mend(tmp_path, capsys):
    seen = loop(steps_per_record=2)
    found = rt.lint(seen)
    assert found.faults[0] is facts.UNRECORDED_STEPS
    words = " ".join(repr(found).split())
    for fault in found.faults:
        assert all(told in words for told in (f"{fault.severity}: {fault.key}", str(fault.reason), str(fault.remedy)))
    for name, watch, code in (("bad", seen, 1), ("good", loop(), 0)):
        watch.save(tmp_path / f"{name}.json")
        assert command("lint", str(tmp_path / f"{name}.json")) == code
    assert "unrecorded-steps" in capsys.readouterr().out


def test_what_a_notebook_shows_is_short_and_escaped(ledger, certified):
    """The facts of a run may hold thousands of steps, and words of a stranger."""
    told = (
        "watched loop: 6 noisy steps, batches poisson (seen), of at most 6 planned\n"
        "warning: may-begin-at-a-base-model\nwarning: size-treated-as-public\nnote: insecure-generator"
    )
    assert repr(ledger) == repr(ledger.ledger) == str(ledger.ledger) == told
    assert RunLedger.from_json(ledger.to_json()) == ledger.ledger
    document = certified.certificate
    declared = document.declared.model_copy(update={"subject": "<b>\x1b[2J"})
    forged = document.model_copy(update={"declared": declared})
    assert repr(forged).splitlines()[-1] == 'complete certificate, declared to be of "<b>\\x1b[2J"'
    assert "of &quot;&lt;b&gt;\\x1b[2J&quot;" in forged._repr_html_()
    assert document.headline in " ".join(repr(document).split())
    assert all(len(repr(shown)) < 600 for shown in (ledger, ledger.ledger, document))


def test_a_gradient_change_counts_against_the_smallest_clip_norm(tmp_path, capsys):
    """A change R moves a clipped gradient by R over the clip norm of its step: 0.2 counts as 0.8, not as 0.2."""
    made = private()

    def smaller(step: int) -> None:
        made[1].max_grad_norm = 0.25 if step == 3 else 1.0

    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1, after=smaller)
    assert (seen.ledger.clipping.smallest, seen.ledger.clipping.largest) == (0.25, 1.0)
    seen.save(tmp_path / "ledger.json")
    words = ["--adversary", "attribute", "--gradient-change", "0.2", "--json"]
    assert command("risk", "ledger", str(tmp_path / "ledger.json"), *words) == 0
    (shown,) = [one for one in json.loads(capsys.readouterr().out)["assessments"] if one["adversary"] == "attribute"]
    release = DPSGD(NOISE, RATE, 6, max_grad_norm=0.25)
    exact = rt.assess(release, rt.Attribute(0.2))[0].measure(rt.advantage).value
    assert shown["advantage"]["value"] == pytest.approx(exact, rel=1e-6, abs=0)


def test_a_person_is_spoken_of_only_where_the_records_of_a_person_are_stated(ledger, certified, tmp_path, capsys):
    stated = watched(*private(), how={"epochs": 1}, records_per_user=3)
    assert stated.mechanism() == replace(ledger.mechanism(), records_per_user=3)
    risks = [rt.assess(found)["worst-case"].measure(rt.advantage).value for found in (ledger, stated)]
    assert risks[1] > 2.0 * risks[0]
    stated.save(tmp_path / "loop.json")
    assert rt.lint(tmp_path / "loop.json").faults == stated.ledger.faults
    assert command("certify", str(tmp_path / "loop.json")) == 0
    shown = Certificate.load(tmp_path / "loop-certificate" / "certificate.public.json")
    assert shown.ledger.records_per_user == 3
    assert "person's records" in shown.headline
    assert rt.verify(shown).accepted
    assert "person" not in certified.certificate.headline
    assert "records_per_user" not in certified.certificate.ledger
    with pytest.raises(ParameterError, match="records_per_user"):
        rt.watch(network(), records_per_user=0)


def test_records_of_a_person_in_passes_over_shuffled_data():
    """Two passes, three records of a person: in each pass they move the sums by three clip norms at most."""
    seen = watched(*private(poisson_sampling=False), records_per_user=3)
    exact = rt.assess(rt.Gaussian(NOISE / 3.0, 2))[0].curve
    assert rt.epsilon_at_delta(rt.assess(seen)[0].curve, 1e-5) == pytest.approx(
        rt.epsilon_at_delta(exact, 1e-5), rel=1e-6, abs=0
    )
