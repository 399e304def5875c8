"""A verb is asked in Python, by options, or by a file: one request, and one answer."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import reticent as rt
from reticent import verbs
from reticent.adversaries import FinalModel
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.verbs.request import SCHEMA, Request
from tests.cli.calling import document, refused, run

pytestmark = pytest.mark.usefixtures("quick_documents")

SCHEMAS = json.loads((Path(__file__).parents[2] / "docs/schema/request-1.schema.json").read_text())
RUN = {"noise_multiplier": 8.0, "sample_rate": 1.0, "steps": 50}  # no composition
WORDS = "dpsgd --noise-multiplier 8 --sample-rate 1 --steps 50"
RELEASES = {
    WORDS: rt.dpsgd(**RUN),
    "dpsgd --noise-multiplier 2 --batch-size 10 --dataset-size 1000 --epochs 1 --sampler shuffled": rt.dpsgd(
        noise_multiplier=2.0, batch_size=10, dataset_size=1000, epochs=1, sampler="shuffled"
    ),
    "gaussian --noise-multiplier 2 --releases 3": rt.Gaussian(2.0, 3),
    "gaussian --noise-multiplier 3 --dimension 40": rt.Gaussian(3.0, 1, 40),
    "laplace --noise-multiplier 2": rt.Laplace(2.0),
    "randomised-response --flip-probability 0.3": rt.RandomisedResponse(0.3),
    "guarantee --stated-epsilon 1 --stated-delta 1e-6": rt.Guarantee(1.0, 1e-6),
    "zcdp --rho 0.5": rt.ZCDP(0.5),
    "rdp --orders 2,8 --stated-epsilons 0.1,0.4 --releases 2": rt.RDP([2, 8], [0.1, 0.4], 2),
    "privacy-profile --stated-epsilons 0.5,1 --stated-deltas 1e-3,1e-6": rt.PrivacyProfile([0.5, 1], [1e-3, 1e-6]),
}
QUESTIONS = {
    "": {},
    " --adversary relaxed --adversary worst-case": {"adversary": ["relaxed", "worst-case"]},
    " --neighbouring replace --delta 1e-6": {"neighbouring": "replace", "delta": 1e-6},
    " --fpr 0.05 --fpr 0.1 --prior 0.2": {"fpr": [0.05, 0.1], "prior": 0.2},
    " --epsilon 0.5": {"epsilon": 0.5},
    " --secret-bits 13.29 --guesses 10": {"secret_bits": 13.29, "guesses": 10},
    " --adversary all": {"adversary": "all"},
}
ASSESSED = [
    (f"risk {release}{asked}", lambda one=one, how=how: rt.assess(one, **how))
    for release, one in RELEASES.items()
    for asked, how in QUESTIONS.items()
    if release == WORDS or not asked
]
OTHERS = [
    (
        "calibrate gaussian --releases 2 --target tpr=0.05@0.01",
        lambda: rt.calibrate(rt.Gaussian(1.0, 2), tpr=0.05, fpr=0.01),
    ),
    (
        "calibrate gaussian --noise-multiplier 20 --unknown releases --target mu=1",
        lambda: rt.calibrate(rt.Gaussian(20.0), mu=1, unknown="releases"),
    ),
    (
        "calibrate dpsgd --sample-rate 1 --steps 2 --target mu=1 --adversary relaxed --dimension 4",
        lambda: rt.calibrate(rt.DPSGD(1.0, 1.0, 2), rt.Relaxed(dimension=4), mu=1),
    ),
    ("calibrate ledger parts.json --target mu=1", lambda: rt.calibrate("parts.json", mu=1, unknown="noise_scale")),
    (
        "compare gaussian --target advantage=0.1 --adversary relaxed",
        lambda: rt.compare(rt.Gaussian(1.0), "relaxed", advantage=0.1),
    ),
    (
        "calibrate samplers --dataset-size 600 --epochs 2 --batch-size 20..40 --sampler poisson --target mu=1",
        lambda: rt.calibrate_samplers(mu=1, dataset_size=600, epochs=2, batch_size=[20, 40], sampler="poisson"),
    ),
    (
        "risk gaussian --noise-multiplier 2 --selection geometric --mean-runs 5",
        lambda: rt.assess(rt.Selection(rt.Gaussian(2.0), rt.Geometric(5.0))),
    ),
    (
        "risk dpsgd --noise-multiplier 10 --sample-rate 1 --steps 50 --adversary final-model --contraction 0.9",
        lambda: rt.assess(rt.DPSGD(10.0, 1.0, 50), FinalModel(0.9)),
    ),
    ("risk ledger parts.json", lambda: rt.assess("parts.json")),
    ("risk ledger parts.json --adversary all", lambda: rt.assess("parts.json", "all")),
    ("lint parts.json", lambda: rt.lint("parts.json")),
    (
        f"certify {WORDS} --out made --expires 2999-01-01 --secret-bits 20",
        lambda: rt.certify(rt.dpsgd(**RUN), expires="2999-01-01", secret_bits=20),
    ),
    ("certify parts.json --out made --subject sums", lambda: rt.certify("parts.json", subject="sums")),
    ("verify made/certificate.json", lambda: rt.verify("made/certificate.json")),
    (
        "gate made/certificate.json made/certificate.public.json --policy policy.yaml",
        lambda: rt.gate(["made/certificate.json", "made/certificate.public.json"], policy="policy.yaml"),
    ),
    (
        "plan-audit --claimed-mu 0.5 --true-mu 1.5 --unit models",
        lambda: verbs.PlanAudit.of(claimed_mu=0.5, true_mu=1.5, unit="models").answer(),
    ),
    (
        "audit scores.npz --noise-multiplier 2 --fpr 0.05 --against-mu 0.2 --rule ranks:0.1 --confidence 0.9",
        lambda: verbs.Audit.of(
            source="scores.npz", noise_multiplier=2, fpr=0.05, against_mu=0.2, rule="ranks:0.1", confidence=0.9
        ).answer(),
    ),
    (
        "audit scores.npz --noise-multiplier 2 --sample-rate 1 --steps 9 --dimension 1 --against relaxed",
        lambda: verbs.Audit.of(
            source="scores.npz",
            noise_multiplier=2,
            sample_rate=1,
            steps=9,
            dimension=1,
            against=rt.Relaxed(dimension=1),
        ).answer(),
    ),
]
WRITE = {
    "keygen k": verbs.Keygen.of(private="k"),
    "keygen k --public p --encrypt": verbs.Keygen.of(private="k", public="p", encrypt=True),
    "register open r --name clinic --budget mu=1 --sign k": verbs.OpenRegister.of(
        register="r", name="clinic", budget="mu=1", sign="k"
    ),
    "register add r a.json b.json --sign k --key p --anyway --head 0": verbs.AddToRegister.of(
        register="r", certificate=["a.json", "b.json"], sign="k", key="p", anyway=True, head="0"
    ),
    "register show r --key p --key q": verbs.ShowRegister.of(register="r", key=["p", "q"]),
    "audit-loop loop:train --claim claim.yaml --workers 1": verbs.AuditLoop.of(
        function="loop:train", claim="claim.yaml", workers=1
    ),
    "audit scores.npz --guesses 3,4 --design one-run --claim parts.json --against relaxed": verbs.Audit.of(
        source="scores.npz", guesses="3,4", design="one-run", claim="parts.json", against="relaxed"
    ),
    "gate a b.html --policy p --key k --register r --register-key k --register-head 0": verbs.Gate.of(
        certificate=["a", "b.html"], policy="p", key="k", register="r", register_key="k", register_head="0"
    ),
    "verify c.html --key a --key b --threshold 1": verbs.Verify.of(certificate="c.html", key=["a", "b"], threshold=1),
}
"""What is typed, and its request; some would write files, or run for long."""
EVERY = [*ASSESSED, *OTHERS]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = [{"kind": "dpsgd", **RUN}, {"kind": "gaussian", "noise_multiplier": 5.0}]
    Path("parts.json").write_text(json.dumps({"kind": "ledger", "parts": parts}))
    limits = "limits: [{measure: advantage, at_most: 0.9}]"
    accepted = "accept_conditions: [clipped, start-weights, public-divisor, poisson-draws, planned-steps]"
    Path("policy.yaml").write_text(f"schema: reticent.policy/1\nper: record\n{limits}\n{accepted}\n")
    draw = np.random.default_rng(0)
    np.savez("scores.npz", member=draw.normal(0.5, 1, 60), non_member=draw.normal(0, 1, 60))


def said(capsys, *words: str) -> str:
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, ""), words
    return out


def same(one, other, where="") -> None:
    """Equal documents; numbers to ten digits."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for name in one:
            same(one[name], other[name], f"{where}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            same(a, b, f"{where}/{place}")
    elif isinstance(one, float):
        slack = where.endswith(("/slack", "/evaluations"))
        assert slack or math.isclose(one, other, rel_tol=1e-10), (where, one, other)
    elif not where.endswith("/evaluations"):
        assert one == other, where


@pytest.mark.parametrize(("words", "in_python"), EVERY, ids=[words for words, _ in EVERY])
def test_every_door_gives_one_answer(capsys, words, in_python):
    if words.startswith(("verify", "gate")):
        rt.certify(rt.dpsgd(**RUN), adversary="worst-case").save("made")
    typed = words.split()
    request = said(capsys, *typed, "--dry-run")
    Path("request.json").write_text(request)
    answers = [document(capsys, *typed)]
    also = ("--out", "again") if typed[0] == "certify" else ()
    answers.append(document(capsys, typed[0], "--request", "request.json", *also))
    kind = next(one for one in KINDS if one.verb == json.loads(request)["verb"])
    answers.append(json.loads(kind.from_json(request).answer().to_json()))
    answers.append(json.loads(in_python().to_json()))
    for other in answers[1:]:
        same(answers[0], other)


@pytest.mark.parametrize(("words", "request_"), WRITE.items(), ids=list(WRITE))
def test_a_door_a_file_and_python_make_one_request(capsys, words, request_):
    written = request_.to_json()
    jsonschema.validate(json.loads(written), SCHEMAS)
    assert type(request_).from_json(written) == request_
    assert said(capsys, *words.split(), "--dry-run") == written + "\n"
    assert not Path("k").exists()


def test_what_writes_files_is_asked_by_a_file_as_well(capsys):
    for words in ("keygen k", "register open r --name clinic --budget mu=1 --sign k"):
        Path("request.json").write_text(said(capsys, *words.split(), "--dry-run"))
        made = document(capsys, words.split()[0], "--request", "request.json")
        again = document(capsys, *words.replace(" k", " l").replace(" r ", " s ").split())
        assert made.keys() == again.keys()
        assert "exists" in refused(capsys, *words.split())
    shown = verbs.ShowRegister.of(register="r", key="k.pub").answer()
    same(document(capsys, "register", "show", "r", "--key", "k.pub"), json.loads(shown.to_json()))


KINDS: list[type[Request]] = [
    kind for name in verbs.__all__ if hasattr(kind := getattr(verbs, name), "verb") and kind is not Request
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.verb)
def test_the_published_schema_has_every_field(kind):
    (published,) = [one for one in SCHEMAS["oneOf"] if one["properties"]["verb"]["const"] == kind.verb]
    assert published == json.loads(json.dumps(kind.schema())), "python docs/schema/generate.py"
    assert {one.name for one in fields(kind)} - {"run_signed_by"} < set(published["properties"])
    assert all(part.get("description", True) for part in published["properties"].values())


def test_what_a_file_cannot_say_is_refused():
    from reticent.calibration import NoiseMultiplier

    bounded = verbs.Calibrate.of(release=rt.Gaussian(1.0), target="mu=1", unknown=NoiseMultiplier(low=0.5))
    with pytest.raises(UnsupportedError, match="bounds of your own"):
        bounded.to_json()
    with pytest.raises(UnsupportedError, match="save it first"):
        verbs.Verify.of(certificate=rt.certify(rt.Gaussian(2.0))).to_json()


@pytest.mark.parametrize(
    "target",
    ["success=0.5000035@0.5", "advantage=0.9999999", "tpr=0.0010000026@0.001", "secret=0.01@13.2987654321,3", "mu=1"],
)
def test_a_target_keeps_every_digit(target):
    request = verbs.Calibrate.of(release=rt.Gaussian(1.0), target=target)
    assert verbs.Calibrate.from_json(request.to_json()) == request
    assert request.document()["target"] == target


@pytest.mark.parametrize(
    "who",
    [
        ["all", rt.Mixed(relaxed_probability=0.9), rt.Mixed()],
        ["all", rt.Relaxed(), rt.Relaxed(dimension=10)],
        ["all", rt.Relaxed(dimension=10), rt.Relaxed(dimension=20)],
        ["relaxed", rt.Relaxed(dimension=10)],
    ],
)
def test_two_attackers_of_one_name_are_both_answered_in_every_way(who):
    found = rt.assess(rt.DPSGD(2.0, 0.1, 5, num_parameters=100), who)
    named = [one for one in who if not isinstance(one, str)]
    assert set(named) <= {one.adversary for one in found}
    again = verbs.Assess.from_json(found.request.to_json())
    assert again == found.request
    same(json.loads(found.to_json()), json.loads(again.answer().to_json()))


@pytest.fixture(scope="module")
def watched():
    """A watched loop whose ledger is seen to be shuffled, so that it has warnings."""
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(3, 1)
    loader = DataLoader(TensorDataset(torch.zeros(40, 3)), batch_size=10, shuffle=True)
    with rt.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), loader) as ledger:
        for _ in loader:
            ledger.step(noise_multiplier=1.5, max_grad_norm=1.0)
    return ledger


def test_a_request_holds_no_private_part_of_a_ledger(watched):
    salt = watched.ledger.diagnostics.start_salt
    assert salt
    assessed = rt.assess(watched)
    requests = [
        assessed.request,
        verbs.AssessEach.of(releases=(watched, watched.ledger)),
        verbs.Differ.of(a=watched, b=rt.Gaussian(1.0)),
        verbs.Calibrate.of(release=watched, target="mu=1"),
    ]
    for request in requests:
        assert salt not in request.to_json()
        assert '"diagnostics": {' not in request.to_json()
    same(
        json.loads(assessed.to_json()),
        json.loads(verbs.Assess.from_json(assessed.request.to_json()).answer().to_json()),
    )
    for whole in (verbs.Certify.of(release=watched.ledger), verbs.Lint.of(ledger=watched.ledger)):
        with pytest.raises(UnsupportedError, match="save it first"):
            whole.to_json()


def test_no_table_is_silent_about_the_warnings_of_a_ledger(watched):
    keys = [fact.key for fact in watched.ledger.faults]
    assert keys
    answers = [rt.assess(watched), rt.calibrate(watched, mu=1), rt.compare(watched, "worst-case", mu=1)]
    for found in answers:
        assert all(any(note.startswith(f"! {key}: ") for note in found.notes()) for key in keys)
        assert list(json.loads(found.to_json())["warnings"]) == keys


def test_a_ledger_that_contradicts_itself_is_not_written_as_one_that_agrees(watched):
    from reticent.records.ledger import ledger_of

    stated = json.loads(watched.ledger.to_json())
    stated["segments"][0]["noise_multiplier"] *= 10
    with pytest.raises(ArtifactError, match="digest"):
        rt.assess(ledger_of(stated, "x")).request.to_json()


@pytest.mark.parametrize(
    ("kind", "edit", "words"),
    [
        ("Assess", {"schema": "reticent.request/2"}, "its schema is not reticent.request/1"),
        ("Assess", {"verb": "calibrate"}, "a request to 'calibrate', not to 'assess'"),
        ("Assess", {"relase": 1}, "'relase' is not one of .*did you mean release"),
        ("Assess", {"release": None}, "release must be given"),
        ("Assess", {"release": {"kind": "gaussian", "noise_multiplier": -1}}, "noise_multiplier must be"),
        ("Assess", {"release": "nowhere.json"}, "nowhere.json"),
        ("Assess", {"release": 3}, "release must be a mechanism"),
        ("Assess", {"release": "a\0b"}, "release must be a path"),
        ("Assess", {"release": ""}, "release must be a path"),
        ("Assess", {"adversary": ["relaxt"]}, "did you mean relaxed"),
        ("Assess", {"adversary": [{"name": "relaxed", "dimensions": 2}]}, "dimensions"),
        ("Assess", {"adversary": [{"dimension": 2}]}, "unknown attacker"),
        ("Assess", {"fpr": ["much"]}, "fpr must be a finite number"),
        ("Assess", {"fpr": {}}, "fpr must be a finite number"),
        ("Assess", {"fpr": [2]}, "fpr must be"),
        ("Assess", {"method": "best"}, "method must be one of"),
        ("Assess", {"guesses": [2]}, "guesses must be given with secret_bits"),
        ("Assess", {"selection": "geometric"}, "selection must be a record"),
        ("AssessEach", {"releases": []}, "releases must be a list of one release or more"),
        ("AssessEach", {"releases": "a\0b"}, "releases must be a path"),
        ("AssessEach", {"releases": ["parts.json"], "selection": [1]}, "selection must be a record"),
        ("Differ", {"a": "a\0", "b": "parts.json"}, "a must be a path"),
        ("Lint", {"ledger": "\0"}, "ledger must be a path"),
        ("Verify", {"certificate": "\0"}, "certificate must be a path"),
        ("Verify", {"certificate": "made", "key": {}}, "key must be a path"),
        ("Certify", {"release": "parts.json", "policy": "\0"}, "policy must be a path"),
        ("Certify", {"release": "parts.json", "run_signed_by": "0" * 64}, "'run_signed_by' is not"),
        ("CalibrateSamplers", {"target": "mu=1", "dataset_size": 9, "epochs": 1, "sampler": [[1]]}, "sampler must be"),
    ],
)
def test_what_no_request_can_say_is_one_line(capsys, kind, edit, words):
    known = getattr(verbs, kind)
    stated = {"schema": SCHEMA, "verb": known.verb, "release": {"kind": "gaussian", "noise_multiplier": 1.0}}
    if "release" not in {one.name for one in fields(known)}:
        del stated["release"]
    text = json.dumps({**stated, **edit})
    with pytest.raises((ArtifactError, ParameterError), match=words) as caught:
        known.from_json(text)
    assert "\n" not in str(caught.value)
    if kind == "Assess":
        Path("request.json").write_text(text)
        refused(capsys, "risk", "--request", "request.json")


def test_what_has_no_file_is_no_request():
    from reticent.certificates.document.policy import Policy

    certificate = rt.certify(rt.Gaussian(2.0))
    with pytest.raises(UnsupportedError, match="save it first"):
        verbs.Differ.of(a=certificate, b=certificate).to_json()
    policy = Policy.model_validate({"schema": "reticent.policy/1", "limits": [{"measure": "mu", "at_most": 1.0}]})
    with pytest.raises(UnsupportedError, match="the file of a policy"):
        verbs.Certify.of(release=rt.Gaussian(2.0), policy=policy).to_json()


def test_of_all_attackers_one_may_be_named():
    found = rt.assess(rt.DPSGD(2.0, 0.1, 5), ["all", rt.Relaxed(dimension=9)])
    assert [one.adversary for one in found if one.adversary.name == "relaxed"] == [rt.Relaxed(dimension=9)]
    assert found.request == verbs.Assess.from_json(found.request.to_json())


def test_a_verb_without_requests_says_so(capsys):
    assert refused(capsys, "reproduce", "--request", "x.json") == "reticent: reproduce takes no --request\n"
