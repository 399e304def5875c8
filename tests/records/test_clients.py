"""Clients instead of records: they are what is drawn, clipped, counted and spoken of."""

from __future__ import annotations

import re

import pytest

import reticent as rt
from reticent.certificates.document.schema import Certificate
from reticent.certificates.page.page import render_html
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.units import Unit
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
    from tests.watching.programs import private

    model, optimizer, loader, _ = private()
    with pytest.raises(ParameterError, match="Opacus's optimizer clips records"):
        rt.watch(model, optimizer, loader, unit="client")
