"""A table of one's own: from a csv to a certificate in two commands, and back to the records."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.build import public
from reticent.certificates.document.rounding import leaves
from reticent.certificates.document.schema import Certificate
from reticent.data.own import load_table
from reticent.io import yaml
from reticent.kernel.errors import ArtifactError, DataError
from reticent.training import load_run, parse_config, train

pytestmark = pytest.mark.usefixtures("quick_documents")

CONFIG = "model: {kind: logistic}\nnoise_multiplier: 3.0\nbatch_size: 10\nsteps: 4\nlearning_rate: 0.1\n"
TABLE = ("--data", "people.csv", "--label", "income")
TRAIN = ("train", "small.yaml", *TABLE)
SCHEMED = ("--schema", "schema.yaml")
SCHEMA = """
age: {low: 17, high: 90}
job: {values: [clerk, cook, pilot]}
income: {values: [low, high]}
"""


def rows(count: int = 60) -> list[str]:
    draw = np.random.default_rng(3)
    jobs, income = draw.choice(["clerk", "cook"], count), draw.choice(["low", "high"], count)
    return [f"{age},{job},{pay}" for age, job, pay in zip(draw.integers(20, 70, count), jobs, income, strict=True)]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(["age,job,income", *rows()]) + "\n")
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    (tmp_path / "small.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    return tmp_path


@pytest.fixture
def trained(folder, command):
    """A run on the table, as the command trains it."""

    def made(*more: object, out: str = "run"):
        assert command(*TRAIN, *more, "--out", out)[0] == 0
        return load_run(folder / out)

    return made


def test_a_csv_goes_to_a_certificate_with_two_commands(folder, command):
    assert command("train", *TABLE, "--sensitive", "age", "--out", "run")[0] == 0
    code, told = command("certify", "run")
    assert code == 0
    assert "attribute (proven)" not in told
    assert " ".join(told.split()).count("This number rests on private data: do not publish it.") == 1
    found = rt.verify(folder / "run-certificate" / "certificate.public.json")
    assert found.accepted
    run = load_run(folder / "run")
    assert run.ledger.data.name == "people"
    assert run.ledger.data.dataset_size == 49
    assert facts.SCHEMA_FROM_RECORDS in run.ledger.faults
    worst = Certificate.load(folder / "run-certificate" / "certificate.json").assessments[0]
    assert worst.epsilon_at_delta["1e-05"].value <= 3.0
    assert run.sensitivity() is not None
    assert run.dataset().content_hash == run.ledger.data.content_hash
    assert "people.csv" not in json.dumps(run.ledger.public()["data"]["feature_shape"])


def test_a_declared_schema_needs_no_warning_and_sets_the_columns(trained):
    run = trained(*SCHEMED)
    assert facts.SCHEMA_FROM_RECORDS not in run.ledger.faults
    assert run.ledger.data.feature_shape == (4,)  # age and three jobs, of which the records show two
    assert run.config.data.table.derived == ()
    records = run.dataset()
    assert records.group("job").values == ("clerk", "cook", "pilot")
    assert records.features[:, 0].min() >= 2 * (20 - 17) / 73 - 1 - 1e-6


def test_persons_are_kept_whole_from_the_schema_to_the_certificate(folder, command):
    """Several rows per person, counted and capped: the numbers are about persons, and the column is no feature."""
    lines = [f"P{i % 25},{row}" for i, row in enumerate(rows())]
    (folder / "people.csv").write_text("\n".join(["patient,age,job,income", *lines]) + "\n")
    code, told = command(*TRAIN, *SCHEMED, "--dry-run")
    assert code == 2
    assert "'patient' has 25 different texts in 60 records" in told
    (folder / "schema.yaml").write_text(SCHEMA + "person: patient\nrecords_per_user: 2\n")
    code, told = command(*TRAIN, *SCHEMED, "--out", "run")
    run = load_run(folder / "run")
    assert "! 10 records left out: beyond 2 of one person" in told
    assert "always naming the largest class" in told
    assert run.ledger.records_per_user == run.ledger.mechanism().records_per_user == 2
    assert run.ledger.data.feature_shape == (4,)
    assert run.dataset().content_hash == run.ledger.data.content_hash
    shares = np.bincount(run.dataset().labels[run.dataset().test]) / run.ledger.data.test_size
    assert run.ledger.utility.largest_class == pytest.approx(shares.max(), rel=1e-12, abs=0)
    (folder / "small.yaml").write_text(CONFIG + "records_per_user: 1\n")
    code, told = command(*TRAIN, *SCHEMED, "--dry-run")
    assert code == 2
    assert "records_per_user must be left out, or 2, as the schema of --data says" in told


def test_passes_by_place_over_a_table_say_that_another_record_may_move_others(folder, trained):
    """Each record has its place by a hash of itself, so one in place of another changes who shares a batch."""
    for sampler, said in (("cyclic", True), ("poisson", False), ("random-allocation", False)):
        (folder / "small.yaml").write_text(CONFIG + f"sampler: {sampler}\n")
        found = rt.assess(trained(*SCHEMED, out=sampler).ledger, "worst-case", neighbouring="replace")[0]
        assert any(one.key == "kept-places" for one in found.conditions) is said


def test_a_run_finds_its_table_and_says_when_it_changed(folder, trained, monkeypatch):
    run = trained()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert run.dataset().content_hash == run.ledger.data.content_hash  # beside the run
    (folder / "people.csv").rename(folder / "elsewhere" / "people.csv")
    assert run.dataset() is not None  # in the current folder
    (folder / "people.csv").write_text("age,job,income\n1,cook,low\n2,cook,high\n")
    assert run.dataset() is not None  # the changed copy is passed over
    (folder / "elsewhere" / "people.csv").unlink()
    with pytest.raises(DataError, match=r"people.csv has changed since the run"):
        run.dataset()
    (folder / "people.csv").unlink()
    with pytest.raises(DataError, match="put it there"):
        run.dataset()


@pytest.mark.parametrize("file", ["../people.csv", "/etc/passwd", "a/b.csv", ".."])
def test_a_run_names_no_folder(file):
    table = {"file": file, "file_sha256": "0" * 64, "schema_sha256": "0" * 64}
    with pytest.raises(ArtifactError, match="table"):
        parse_config(yaml.loads(CONFIG, "c") | {"data": {"name": "own", "table": table}})


def test_records_in_memory_are_given_back_to_the_run(folder):
    mine = load_table("people.csv", "income").dataset
    config = parse_config(yaml.loads(CONFIG, "c") | {"data": {"name": "own"}})
    run = train(config, folder / "memory", dataset=mine)
    with pytest.raises(DataError, match=r"call run.dataset\(mine\)"):
        run.dataset()
    assert run.dataset(mine) is mine
    with pytest.raises(DataError, match="differ from those of the run"):
        run.dataset(mine.subset(5))
    with pytest.raises(DataError, match=r"train\(dataset=mine\)"):
        train(config, folder / "nothing")


class Net(nn.Module):
    """Somebody's own model."""

    def __init__(self, feature_shape, classes):
        super().__init__()
        self.layer = nn.Linear(feature_shape[0], classes)

    def forward(self, features):
        return self.layer(features)


def test_a_model_of_ones_own_is_named_and_never_imported_from_a_run(folder, command, trained, monkeypatch):
    module = types.ModuleType("my_nets")
    module.Net = Net
    monkeypatch.setitem(sys.modules, "my_nets", module)
    (folder / "small.yaml").write_text(CONFIG.replace("{kind: logistic}", "my_nets:Net"))
    run = trained()
    assert run.config.model.name == "my_nets:Net"
    with pytest.raises(ArtifactError, match="my_nets:Net"):
        run.model()
    weights = run.model(build=Net).layer.weight
    assert torch.equal(weights, run.weights()["layer.weight"])
    with pytest.raises(ArtifactError, match="do not fit"):
        run.model(build=lambda shape, classes: nn.Linear(1, 1))
    (folder / "small.yaml").write_text(CONFIG.replace("{kind: logistic}", "my_nets:Nothing"))
    assert command(*TRAIN, "--out", "other")[0] == 2


PEOPLE = ["--data", "people.csv", "--label", "income", "--out", "run"]
WRONG_FILES = {
    "nobody.csv": ["--data", "nobody.csv", "--label", "y", "--out", "run"],
    "people.txt": ["--data", "people.txt", "--label", "income", "--out", "run"],
    "nothing.yaml": ["nothing.yaml", "--out", "run"],
    "--data people.csv": ["--out", "run"],
    "--label must be given": ["--data", "people.csv", "--out", "run"],
    "label must be one of": ["--data", "wrong.csv", "--label", "z", "--out", "run"],
    "no.yaml": [*PEOPLE, "--schema", "no.yaml"],
    "wrong.csv": [*PEOPLE, "--schema", "wrong.csv"],
    "people.csv": [*PEOPLE[:-1], "people.csv"],
}
WRONG = {
    "--out must be given": PEOPLE[:-2],
    "--sensitive must be one of age, ": [*PEOPLE, "--sensitive", "height"],
    "data.name must be left out": ["digits.yaml", *PEOPLE],
    "batch_size must be at most": ["large.yaml", *PEOPLE, "--dry-run"],
}


@pytest.mark.parametrize("wanted", WRONG)
def test_wrong_commands_end_in_one_line(folder, command, wanted):
    (folder / "digits.yaml").write_text(CONFIG + "data: {name: digits}\n")
    (folder / "large.yaml").write_text(CONFIG.replace("batch_size: 10", "batch_size: 1000"))
    code, told = command("train", *WRONG[wanted])
    assert (code, told.count("\n"), told[:10]) == (2, 1, "reticent: ")
    assert wanted in told
    assert not (folder / "run").exists()


def test_what_is_wrong_with_files_is_said_before_torch_is_loaded(folder):
    """One process after the other command: torch is in none, and no data set needs it."""
    (folder / "wrong.csv").write_text("x,y\n1,low\nold,\n3,high\n")
    code = (
        "import json, sys\n"
        "from reticent.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(['train', *words])\n"
        "    except SystemExit as stop:\n        assert stop.code == 2, stop.code\n"
        "    assert 'torch' not in sys.modules, words\n"
        "    print('end', file=sys.stderr)\n"
        "import reticent.data\n"
        "reticent.data.load('generated-baskets')\n"
        "assert not {'torch', 'opacus'} & sys.modules.keys()\n"
    )
    started = [sys.executable, "-c", code, json.dumps([*WRONG_FILES.values()])]
    done = subprocess.run(started, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stderr.split("end\n")
    for wanted, said in zip(WRONG_FILES, told, strict=False):
        assert (said.count("\n"), said[:10]) == (1, "reticent: "), said
        assert wanted in said
    assert told[len(WRONG_FILES) :] == [""]
    assert not (folder / "run").exists()


def test_a_dry_run_shows_columns_model_cost_and_risk_and_writes_nothing(folder, command, trained):
    before = sorted(path.name for path in folder.iterdir())
    code, told = command(*TRAIN, *SCHEMED, "--dry-run")
    shown = " ".join(told.split())
    assert code == 0
    for part in (
        "age numbers 17 to 90 refuse declared 1",
        "model: kind logistic, bias True; 10 trained parameters; 2 classes",
        "cost: 4 steps of about 10 of 49 records, 40 gradients",
        "worst-case bound",
    ):
        assert part in shown
    (folder / "small.yaml").write_text(CONFIG.replace("3.0", "3.00000987"))
    assert "noise multiplier 3," in command(*TRAIN, *SCHEMED, "--dry-run")[1]  # not 3.00001: no more than there is
    (folder / "small.yaml").write_text(CONFIG)
    code, told = command(*TRAIN, *SCHEMED, "--dry-run", "--json")
    assert sorted(path.name for path in folder.iterdir()) == before
    run, document = trained(*SCHEMED), json.loads(told)
    found = rt.assess(run.ledger, "worst-case")[0].measure(rt.advantage)
    assert document["risk"]["assessments"][0]["advantage"]["value"] == pytest.approx(found.value, rel=1e-9, abs=0)
    assert document["cost"]["num_parameters"] == run.ledger.num_parameters


def test_numbers_that_may_be_missing_are_trained_on_and_not_measured(folder, command, trained):
    (folder / "people.csv").write_text("\n".join(["age,job,income", ",cook,low", *rows()]) + "\n")
    (folder / "schema.yaml").write_text(SCHEMA.replace("high: 90}", "high: 90, missing: indicator}"))
    assert trained(*SCHEMED).ledger.data.feature_shape == (5,)
    for group in ("age", "age (missing)"):
        code, told = command("train", *TABLE, *SCHEMED, "--out", "other", "--sensitive", group)
        assert code == 2
        assert "a column of numbers without missing: indicator" in told


def test_training_on_neighbouring_tables_shows_in_the_public_certificate_only_through_the_weights(folder, command):
    """One person is another; schema and all seeds are the same. Every leaf that differs is accounted for.

    Both are for training: else the number of records, which is public, would differ by one.
    """
    lines = (folder / "people.csv").read_text().splitlines()
    documents = []
    for place, line in (("one", lines[6]), ("two", "69,pilot,high")):
        (folder / place).mkdir()
        (folder / place / "people.csv").write_text("\n".join([*lines[:6], line, *lines[7:]]) + "\n")
        (folder / "seeded.yaml").write_text(CONFIG + "randomness: reproducible\nseed: 3\n")
        table = ("--data", f"{place}/people.csv", "--label", "income", *SCHEMED)
        assert command("train", "seeded.yaml", *table, "--out", f"{place}/run")[0] == 0
        run = load_run(folder / place / "run")
        documents.append(public(rt.certify(run, publish=[]).certificate))
    one, two = (leaves(json.loads(document.to_json())) for document in documents)
    found = {".".join(path) for path in one.keys() | two.keys() if one.get(path) != two.get(path)}
    through_the_mechanism = {"declared.weights_sha256"}
    salted = {f"ledger.config.data.table.{name}_commitment" for name in ("file", "schema")} | {"ledger.data.commitment"}
    of_the_clock = {"declared.created", "ledger.created"}
    of_all_that = {"ledger.digest", "content_sha256", "pages.en", "pages.de", "pages.fr"}
    assert found - of_the_clock == through_the_mechanism | salted | of_all_that
