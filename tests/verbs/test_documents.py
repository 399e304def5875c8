"""What a verb printed can be read again, and keeps the schema that is published for it; what is saved is not lost."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent import verbs
from reticent.kernel.errors import ArtifactError
from reticent.verbs.loops import LoopCheck, LoopDocument
from reticent.verbs.reading import documents
from reticent.verbs.sealing import AuditCheck, SealedPlan
from reticent.verbs.table import in_json

SCHEMAS = Path(__file__).parents[2] / "docs/schema"
RUN = rt.dpsgd(noise_multiplier=1.1, sample_rate=0.01, steps=50)
POLICY = "schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage, at_most: 0.01}]\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A document of each kind, by its schema."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "policy.yaml").write_text(POLICY)
    certificate = rt.certify(rt.Gaussian(2.0), subject="sums")
    key = folder / "key"
    opened = {"register": folder / "r", "name": "clinic", "budget": "mu=1", "sign": key}
    answers = [
        rt.assess(RUN, "all", epsilon=1, prior=0.2, secret_bits=13),
        rt.assess(rt.Gaussian(0.0)),
        rt.assess_each([rt.Gaussian(2.0), RUN]),
        rt.differences(rt.Gaussian(2.0), RUN, "worst-case"),
        rt.calibrate(rt.Gaussian(1.0), mu=1),
        rt.compare(rt.Gaussian(1.0), mu=1),
        rt.calibrate_samplers(mu=1, dataset_size=600, epochs=2, batch_size=20, sampler=["poisson", "shuffled"]),
        certificate,
        certificate.verify(),
        rt.gate(certificate, folder / "policy.yaml"),
        rt.gate([certificate, folder / "absent.json"], folder / "policy.yaml"),
        rt.lint(RUN),
        verbs.Keygen.of(private=key).answer(),
        verbs.OpenRegister.of(**opened).answer(),
        verbs.PlanAudit.of(claimed_mu=0.5, true_mu=1.5).answer(),
    ]
    check = LoopCheck(name="noise", p_value=0.1, finding="as claimed", failed=False)
    said = {"function": "a:b", "significance": 0.01, "refuted": False, "p_value": 0.2, "likely_fault": None}
    loop = LoopDocument(**said, checks=[check], tests=1, runs=25, planned_runs=25)
    plan = SealedPlan.of({"verb": "audit"})
    kept = AuditCheck(accepted=True, plan=plan.digest, problems=[])
    written = [*(one.to_json() for one in answers), *map(in_json, (loop, plan, kept))]
    named = [(json.loads(text)["schema"], text) for text in written]
    return {f"{schema} infinite" if place == 1 else schema: text for place, (schema, text) in enumerate(named)}


def test_there_is_one_of_each_kind(texts) -> None:
    assert {schema.split()[0] for schema in texts} == {*documents()}


@pytest.mark.parametrize("schema", [*documents(), "reticent.risk/2 infinite"])
def test_a_document_is_read_as_it_was_written(texts, schema: str, tmp_path: Path) -> None:
    text = texts[schema]
    (tmp_path / "found.json").write_text(text)
    for what in (text, tmp_path / "found.json", str(tmp_path / "found.json")):
        found = verbs.read(what)
        assert type(found) is documents()[schema.split()[0]]
        again = found.to_json() if schema == "reticent.certificate/4" else in_json(found)
        assert json.loads(again) == json.loads(text)
    name = schema.split()[0].removeprefix("reticent.").replace("/", "-")
    published = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    assert published == json.loads(json.dumps(type(found).model_json_schema(by_alias=True))), "docs/schema/generate.py"
    jsonschema.validate(json.loads(text), published)


@pytest.mark.parametrize("schema", [*documents()])
def test_what_was_changed_is_one_line(texts, schema: str) -> None:
    document = json.loads(texts[schema])
    for edit, words in (
        ({"more": 1}, "unknown key 'more'"),
        ({"schema": f"{schema}0"}, "did you mean"),
        ({"schema": ["x"]}, "its schema"),
    ):
        with pytest.raises(ArtifactError, match=words) as caught:
            verbs.read(json.dumps({**document, **edit}))
        assert "\n" not in str(caught.value)
    for name in document.keys() - {"schema"}:
        with pytest.raises(ArtifactError, match=name):
            verbs.read(json.dumps({**document, name: 3 if isinstance(document[name], (list, dict, str)) else ["x"]}))


def test_another_certificate_is_replaced_with_its_signature_only_where_that_is_said(tmp_path):
    one, other = (rt.certify(rt.Gaussian(noise), created="2026-01-01", adversary="worst-case") for noise in (2.0, 3.0))
    key = Ed25519PrivateKey.generate()
    for _ in range(2):  # the same is written anew
        assert one.save(tmp_path, key=key).signature.exists()
    with pytest.raises(ArtifactError, match="holds a different certificate"):
        other.save(tmp_path)
    assert rt.verify(tmp_path / "certificate.json").accepted
    files = other.save(tmp_path, overwrite=True)
    assert json.loads(files.complete.read_text())["mechanism"]["noise_multiplier"] == 3
    assert rt.verify(files.page).accepted
    assert not files.signature.exists()
