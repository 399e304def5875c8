"""Clients instead of records: they are what is drawn, clipped, counted and spoken of."""

from __future__ import annotations

import json
import re

import pytest

import reticent as rt
from reticent.certificates.document.schema import Certificate, content_hash
from reticent.certificates.document.sentences import persons
from reticent.certificates.page.page import render_html
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Message
from reticent.samplers import FixedSize


def run(**more) -> rt.DPSGD:
    return rt.dpsgd(**{"noise_multiplier": 2.0, "sample_rate": 0.1, "steps": 20, "unit": "client", **more})


def risk_of(mechanism) -> float:
    return rt.assess(mechanism)[0].measure(rt.advantage).value


def said(certificate: Certificate) -> str:
    return certificate.headline + " ".join(str(record.sentence) for record in certificate.assessments)


@pytest.mark.parametrize("sampler", ["poisson", "fixed-size", "shuffled"])
def test_the_numbers_are_those_of_as_many_records(sampler):
    of_records = rt.dpsgd(noise_multiplier=2.0, sample_rate=0.1, steps=20, sampler=sampler)
    assert risk_of(run(sampler=sampler)) == pytest.approx(risk_of(of_records), rel=1e-12, abs=0)


def test_the_certificate_speaks_of_clients():
    certificate = rt.certify(run(sampler="fixed-size"), adversary="worst-case", neighbouring="add-remove")
    document = certificate.certificate
    assert "hether a given client was used" in document.headline
    assert "record" not in said(document)
    assert document.mechanism["unit"] == "client"
    page = render_html(document)
    assert "What each attacker can learn about one client" in page
    assert "Was this client used at all?" in page
    assert "All numbers are about one client with all its records." in page
    assert "people with several clients" in page
    text = re.sub(r"<[^>]+>", " ", page.split("<main>")[1].split("<template")[0])
    assert not re.search(r"(this|one|each|every) record", text)
    assert certificate.verify().accepted


def test_a_document_that_makes_clients_of_records_is_rejected():
    of_records = rt.certify(rt.dpsgd(noise_multiplier=2.0, sample_rate=0.1, steps=20), adversary="worst-case")
    assert "unit" not in of_records.certificate.mechanism
    forged = json.loads(of_records.to_json())
    forged["mechanism"]["unit"] = "client"
    draft = Certificate.parse(forged)
    assert not rt.verify(draft.model_copy(update={"content_sha256": content_hash(draft)})).accepted


def test_words_of_every_attacker():
    assert str(Message("knows.others").about("client")) == (
        "all other clients and how far this one can move the result"
    )
    assert str(Message("condition.clipped").about("client")).startswith("No client moves the sum")
    parts = [{"unit": "client"}, {"unit": "client"}]
    assert persons({"kind": "ledger", "parts": parts}) is Unit.CLIENT
    assert persons({"kind": "ledger", "parts": [parts[0], {}]}) is None


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"unit": "clients"}, "unit must be one of record, client .did you mean client"),
        ({"unit": "user"}, "unit must be one of record, client"),
        ({"records_per_user": 2}, "left out with unit client"),
    ],
)
def test_mistakes(options, wanted):
    with pytest.raises(ParameterError, match=wanted):
        run(**options)


def test_a_ledger_is_about_one_kind():
    with pytest.raises(ParameterError, match="unit must be the same in all parts"):
        rt.Ledger((run(), rt.DPSGD(2.0, 0.1, 20)))
    assert risk_of(rt.Ledger((run(), run()))) == pytest.approx(risk_of(run(steps=40)), rel=1e-6, abs=0)


def server_loop(**more):
    torch = pytest.importorskip("torch")
    options = {"unit": "client", "sampler": "fixed-size", **more}
    with rt.watch(torch.nn.Linear(2, 1), **options) as seen:
        for _ in range(20):
            seen.step(noise_multiplier=2.0, sample_rate=0.1, max_grad_norm=1.0, batch_size=5)
    return seen.ledger


def test_a_server_loop_is_certified_for_clients():
    found = server_loop()
    release = found.mechanism()
    assert (release.unit, release.sampler) == (Unit.CLIENT, FixedSize())
    assert risk_of(found) == pytest.approx(risk_of(run(sampler="fixed-size")), rel=1e-12, abs=0)
    certificate = rt.certify(found)
    assert "hether a given client was used" in certificate.certificate.headline
    assert certificate.verify().accepted
    assert found.vouches()["fixed-size-draws"] == "declared"
    assert {fault.key for fault in found.faults} >= {"declared-not-seen", "fixed-size-not-poisson"}


def test_a_record_is_left_out_of_the_file():
    assert "unit" not in server_loop(unit="record").model_dump(mode="json", by_alias=True)
    assert server_loop().public()["unit"] == "client"


def test_draws_that_nobody_states_get_nothing_off():
    assert risk_of(server_loop(sampler=None)) == pytest.approx(risk_of(rt.DPSGD(2.0, 1.0, 20)), rel=1e-9, abs=0)


def test_opacus_clips_records():
    from tests.watching.loops import private

    model, optimizer, loader, _ = private()
    with pytest.raises(ParameterError, match="Opacus's optimizer clips records"):
        rt.watch(model, optimizer, loader, unit="client")


def test_the_command_line_certifies_clients(tmp_path, capsys):
    from reticent.cli import main

    words = "certify dpsgd --noise-multiplier 2 --sample-rate .1 --steps 20 --sampler fixed-size --unit client --out"
    with pytest.raises(SystemExit) as stop:
        main([*words.split(), str(tmp_path / "clients")])
    assert stop.value.code in (0, None)
    assert "hether a given client was used" in " ".join(capsys.readouterr().out.split())
    assert rt.verify(tmp_path / "clients" / "certificate.html").accepted
    with pytest.raises(SystemExit) as stop:
        main(["risk", *words.split()[1:8], "--unit", "clients"])
    assert stop.value.code == 2
    assert "--unit must be one of record, client (did you mean client?)" in capsys.readouterr().err
