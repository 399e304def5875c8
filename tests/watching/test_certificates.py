"""From a watched loop, parameters or a file to a certificate that verifies; lint; the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.document.schema import Certificate
from reticent.cli import main
from reticent.facts import Severity, all_facts
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.records.ledger import RunLedger
from tests.watching.loops import (
    BATCH,
    BY_HAND,
    NOISE,
    RATE,
    RECORDS,
    Loop,
    network,
    passes,
    plain_step,
    private,
    reading,
    run,
    watched,
)

pytestmark = pytest.mark.usefixtures("quick_documents")


@pytest.fixture(scope="module")
def ledger():
    made = private()
    with rt.watch(*made[:3]) as found:
        run(*made, epochs=1)
    return found


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
    assert "poisson (seen: UniformWithReplacementSampler)" in files.page.read_text()


def resealed(document: Certificate, change) -> Certificate:
    from reticent.certificates.document.schema import content_hash

    plain = json.loads(document.to_json())
    change(plain["ledger"])
    plain["ledger"] = RunLedger.model_validate(plain["ledger"]).sealed().model_dump(mode="json", by_alias=True)
    draft = Certificate.parse({**plain, "content_sha256": ""})
    return draft.model_copy(update={"content_sha256": content_hash(draft)})


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger: ledger["segments"][0].update(noise_multiplier=2 * NOISE),
        lambda ledger: ledger["environment"].update(randomness="secure generator"),
        lambda ledger: ledger["sampler"].update(drawn="shuffled", sample_rate=None),
    ],
)
def test_a_ledger_that_was_touched_is_refused(certified, change):
    """Sealed again, it is the ledger of another loop: the certificate does not follow from it."""
    document = certified.certificate
    assert not rt.verify(resealed(document, change)).accepted


def test_a_ledger_of_which_nothing_is_proven_makes_no_certificate(certified):
    mixed = resealed(certified.certificate, lambda ledger: ledger.update(facts={"mixes-records": ["1 (BatchNorm1d)"]}))
    with pytest.raises(ArtifactError, match="cannot be derived"):
        rt.verify(mixed)


def test_a_plain_loop_in_three_lines():
    """A shuffled loader that nobody wrote for reticent, and noise that only the loop knows."""

    def step(toy):
        toy.optimizer.step()
        toy.seen.step(noise_multiplier=NOISE, max_grad_norm=0.5)

    def adam():
        model = network()
        return model, torch.optim.Adam(model.parameters(), lr=0.01), reading(), None

    gradients = lambda toy: plain_step(toy.model, toy.features, toy.labels, NOISE, norm=0.5)  # noqa: E731
    seen, _ = Loop(made=adam, batches=passes(3), backward=gradients, update=step).check()
    release = seen.mechanism()
    assert (release.steps, release.sampler.batches_per_epoch, release.max_grad_norm) == (18, 6, 0.5)
    assert {facts.SHUFFLED, facts.DECLARED} <= set(seen.ledger.faults)


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


def test_without_a_loader_nothing_is_taken_off_unless_poisson_is_declared():
    model = network()
    with rt.watch(model) as seen:
        for _ in range(4):
            seen.step(noise_multiplier=2.0, sample_rate=0.1)
    assert seen.mechanism() == DPSGD(2.0, 1.0, 4, num_parameters=44)
    assert facts.UNKNOWN_SAMPLER in seen.ledger.faults
    with rt.watch(model, sampler="poisson", start="declared") as told:
        for noise in (2.0, 2.0, 3.0):
            told.step(noise_multiplier=noise, sample_rate=0.1)
    assert [(p.noise_multiplier, p.sample_rate, p.steps) for p in told.mechanism().parts] == [
        (2.0, 0.1, 2),
        (3.0, 0.1, 1),
    ]
    assert facts.DECLARED in told.ledger.faults


def test_layers_that_mix_records_void_the_guarantee():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    with rt.watch(model) as seen:
        seen.step(noise_multiplier=5.0)
    assert seen.ledger.facts[facts.MIXES_RECORDS.key] == ("1 (BatchNorm1d)",)
    assert rt.assess(seen)[0].measure(rt.advantage).value == 1.0
    with rt.watch(model.eval()) as frozen:
        frozen.step(noise_multiplier=5.0)
    assert facts.MIXES_RECORDS.key not in frozen.ledger.facts


def test_many_levels_of_noise_are_rounded_towards_more_risk():
    with rt.watch(network()) as seen:
        for step in range(200):
            seen.step(noise_multiplier=2.0 + step / 100.0)
    parts = seen.mechanism().parts
    assert len(parts) <= 32
    assert sum(part.steps for part in parts) == 200
    exact = sum((2.0 + step / 100.0) ** -2 for step in range(200))
    rounded = sum(part.steps * part.noise_multiplier**-2 for part in parts)
    assert exact <= rounded <= 1.1 * exact


def test_lint_names_each_fault_with_reason_and_mend(tmp_path, capsys):
    seen = loop(steps_per_record=2)
    found = rt.lint(seen)
    assert found.faults[0] is facts.UNRECORDED_STEPS
    for fault in found.faults:
        told = fault
        assert f"{told.severity}: {fault.key}" in repr(found)
        assert str(told.reason) in " ".join(repr(found).split())
        assert str(told.remedy) in " ".join(repr(found).split())
    seen.save(tmp_path / "ledger.json")
    assert command("lint", str(tmp_path / "ledger.json")) == 1
    assert "unrecorded-steps" in capsys.readouterr().out
    good = loop()
    good.save(tmp_path / "good.json")
    assert command("lint", str(tmp_path / "good.json"), "--json") == 0
    assert {row["severity"] for row in json.loads(capsys.readouterr().out)["faults"]} <= {"warning", "note"}
    (tmp_path / "bad.json").write_text('{"schema": "reticent.watch/1"}')
    assert command("lint", str(tmp_path / "bad.json")) == 2


def test_every_fault_is_explained():
    for fault in filter(lambda one: one.said, all_facts().values()):
        told = fault
        assert str(told.reason).endswith(".")
        assert str(told.remedy).endswith(".")
        assert fault.voids == (told.severity is Severity.ERROR)


def test_certify_parameters_says_that_nobody_saw_a_run(tmp_path, capsys):
    words = ["dpsgd", "--noise-multiplier", "30", "--batch-size", "1000", "--dataset-size", "1000", "--steps", "20"]
    assert command("certify", *words, "--records-per-user", "2", "--out", str(tmp_path / "out")) == 0
    said = capsys.readouterr().out
    assert "parameters only" in said
    assert "person's records" in said
    assert rt.verify(tmp_path / "out" / "certificate.html").accepted
    assert command("certify", "dpsgd", "--steps", "20") == 2
    assert "--noise-multiplier" in capsys.readouterr().err
    assert command("certify", str(tmp_path / "out"), "--steps", "20") == 2


@pytest.mark.parametrize(("name", "steps"), [("loop", 6), pytest.param("event", 9, marks=pytest.mark.slow)])
def test_certify_a_ledger_or_an_event_from_a_file(ledger, tmp_path, capsys, name, steps):
    from dp_accounting import dp_event

    from reticent.interop.documents import event_to_json

    ledger.save(tmp_path / "loop.json")
    event = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(2.0)), 9)
    (tmp_path / "event.json").write_text(json.dumps(event_to_json(event)))
    assert command("certify", str(tmp_path / f"{name}.json")) == 0
    folder = tmp_path / f"{name}-certificate"
    assert rt.verify(folder / "certificate.public.json").accepted
    assert Certificate.load(folder / "certificate.json").mechanism["steps"] == steps
    capsys.readouterr()
    assert rt.certify(tmp_path / "loop.json").certificate.ledger is not None


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"class_name": "system", "module_name": "os"}, ArtifactError),
        ({"class_name": "GaussianDpEvent", "noise": 1.0}, ArtifactError),
        ({"class_name": "GaussianDpEvent", "noise_multiplier": -1.0}, ArtifactError),
        ({"class_name": "ZCDpEvent", "rho": 1.0}, UnsupportedError),
        ({"class_name": "ComposedDpEvent", "events": [3]}, UnsupportedError),
        ({"schema": "reticent.watch/1"}, ArtifactError),
        ({"schema": "reticent.ledger/1"}, ArtifactError),
        ({"schema": "reticent.ledger/3"}, ArtifactError),
        ({}, ArtifactError),
        ([], ArtifactError),
    ],
)
def test_files_that_say_nothing_end_in_one_line(document, error, tmp_path):
    (tmp_path / "file.json").write_text(json.dumps(document))
    with pytest.raises(error):
        rt.certify(tmp_path / "file.json")


def test_a_ledger_without_diagnostics_is_public_only(ledger):
    shown = RunLedger.model_validate(ledger.ledger.public())
    assert shown.diagnostics is None
    assert shown.mechanism() == ledger.mechanism()
    with pytest.raises(ArtifactError, match="the public part of a ledger"):
        rt.certify(shown)


def test_sizes_are_read_where_the_loader_is_not_exact():
    """Ten records at a time, a data set of sixty: the ledger knows both from the loader alone."""
    seen = loop()
    assert seen.ledger.sampler.dataset_size == RECORDS
    assert seen.ledger.sampler.batch_size == BATCH


def test_a_page_says_how_many_steps_were_planned(tmp_path):
    seen = watched(*private(), planned_steps=12)
    page = rt.certify(seen).save(tmp_path / "made").page.read_text()
    assert re.search(r"planned steps</\w+>\s*<\w+>at most 12<", page)


def test_what_a_notebook_shows_is_short_and_escaped(ledger, certified):
    """The facts of a run may hold thousands of steps, and words of a stranger."""
    told = (
        "watched loop: 6 noisy steps, batches poisson (seen)\nwarning: size-treated-as-public\nnote: insecure-generator"
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
    made = private()
    with rt.watch(*made[:3], records_per_user=3) as stated:
        run(*made, epochs=1)
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
    assert not rt.verify(resealed(shown, lambda facts: facts.pop("records_per_user"))).accepted
    assert "person" not in certified.certificate.headline
    assert "records_per_user" not in certified.certificate.ledger
    with pytest.raises(ParameterError, match="records_per_user"):
        rt.watch(network(), records_per_user=0)


def test_records_of_a_person_in_passes_over_shuffled_data():
    """Two passes, three records of a person: in each pass they move the sums by three clip norms at most."""
    made = private(poisson_sampling=False)
    with rt.watch(*made[:3], records_per_user=3) as seen:
        run(*made, epochs=2)
    exact = rt.assess(rt.Gaussian(NOISE / 3.0, 2))[0].curve
    assert rt.epsilon_at_delta(rt.assess(seen)[0].curve, 1e-5) == pytest.approx(
        rt.epsilon_at_delta(exact, 1e-5), rel=1e-6, abs=0
    )
