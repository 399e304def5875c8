"""A table of one's own: from a csv to a certificate in two commands, and back to the records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.cli import main
from reticent.data.own import Schema, load_table
from reticent.kernel.errors import ArtifactError, DataError, ParameterError
from reticent.training import load_run, parse_config, train

pytestmark = pytest.mark.usefixtures("quick_documents")

CONFIG = "model: {kind: logistic}\nnoise_multiplier: 3.0\nbatch_size: 10\nsteps: 4\nlearning_rate: 0.1\n"
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


def command(*words: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def test_a_csv_goes_to_a_certificate_with_two_commands(folder, capsys):
    assert command("train", "--data", "people.csv", "--label", "income", "--sensitive", "age", "--out", "run") == 0
    assert command("certify", "run") == 0
    told = capsys.readouterr().out
    assert "attribute (proven)" not in told
    assert " ".join(told.split()).count("This number rests on private data: do not publish it.") == 1
    found = rt.verify(folder / "run-certificate" / "certificate.public.json")
    assert found.accepted
    run = load_run(folder / "run")
    assert run.ledger.data.name == "people"
    assert run.ledger.data.dataset_size == 49
    assert facts.SCHEMA_FROM_RECORDS in run.ledger.faults
    assert rt.epsilon_at_delta(rt.assess(run.ledger)[0].curve, 1e-5) <= 3.0
    assert run.sensitivity() is not None
    assert run.dataset().content_hash == run.ledger.data.content_hash
    assert "people.csv" not in json.dumps(run.ledger.public()["data"]["feature_shape"])


def trained(folder: Path, *more: str) -> Path:
    words = ("train", "small.yaml", "--data", "people.csv", "--label", "income", "--out", "run", *more)
    assert command(*words) == 0
    return folder / "run"


def test_a_declared_schema_needs_no_warning_and_sets_the_columns(folder):
    run = load_run(trained(folder, "--schema", "schema.yaml"))
    assert facts.SCHEMA_FROM_RECORDS not in run.ledger.faults
    assert run.ledger.data.feature_shape == (4,)  # age and three jobs, of which the records show two
    assert run.config.data.table.derived == ()
    records = run.dataset()
    assert records.group("job").values == ("clerk", "cook", "pilot")
    assert records.features[:, 0].min() >= 2 * (20 - 17) / 73 - 1 - 1e-6


def test_persons_are_kept_whole_from_the_schema_to_the_certificate(folder, capsys):
    """Several rows per person, counted and capped: the numbers are about persons, and the column is no feature."""
    lines = [f"P{i % 25},{row}" for i, row in enumerate(rows())]
    (folder / "people.csv").write_text("\n".join(["patient,age,job,income", *lines]) + "\n")
    words = ("small.yaml", "--data", "people.csv", "--label", "income", "--schema", "schema.yaml")
    assert command("train", *words, "--dry-run") == 2
    assert "'patient' has 25 different texts in 60 records" in capsys.readouterr().err
    (folder / "schema.yaml").write_text(SCHEMA + "person: patient\nrecords_per_user: 2\n")
    run = load_run(trained(folder, "--schema", "schema.yaml"))
    told = capsys.readouterr().out
    assert "! 10 records left out: beyond 2 of one person" in told
    assert "always naming the largest class" in told
    assert run.ledger.records_per_user == run.ledger.mechanism().records_per_user == 2
    assert run.ledger.data.feature_shape == (4,)
    assert run.dataset().content_hash == run.ledger.data.content_hash
    shares = np.bincount(run.dataset().labels[run.dataset().test]) / run.ledger.data.test_size
    assert run.ledger.utility.largest_class == pytest.approx(shares.max(), rel=1e-12, abs=0)
    (folder / "small.yaml").write_text(CONFIG + "records_per_user: 1\n")
    assert command("train", *words, "--dry-run") == 2
    assert "records_per_user must be left out, or 2, as the schema of --data says" in capsys.readouterr().err


def test_passes_by_place_over_a_table_say_that_another_record_may_move_others(folder):
    """Each record has its place by a hash of itself, so one in place of another changes who shares a batch."""
    for sampler, said in (("cyclic", True), ("poisson", False), ("random-allocation", False)):
        (folder / "small.yaml").write_text(CONFIG + f"sampler: {sampler}\n")
        run = load_run(trained(folder, "--schema", "schema.yaml"))
        found = rt.assess(run.ledger, neighbouring="replace")[0]
        assert any(one.key == "kept-places" for one in found.conditions) is said
        (folder / "run").rename(folder / sampler)


def test_one_record_changes_one_row_of_a_declared_encoding(folder):
    declared = {"age": {"low": 17, "high": 90}, "job": ["clerk", "cook"], "income": ["low", "high"]}
    before = load_table(folder / "people.csv", "income", declared).dataset
    lines = ["age,job,income", "500,cook,low", *rows()[1:]]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    after = load_table(folder / "people.csv", "income", declared).dataset
    assert (before.features != after.features).any(axis=1).sum() == 1
    assert after.features[0, 0] == 1.0  # clipped to the bound


def test_a_run_finds_its_table_and_says_when_it_changed(folder, monkeypatch):
    run = load_run(trained(folder))
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
def test_a_run_names_no_folder(folder, file):
    run = load_run(trained(folder))
    document = run.config.model_dump(mode="json")
    document["data"]["table"]["file"] = file
    with pytest.raises(ArtifactError, match="table"):
        parse_config(document)


def test_records_in_memory_are_given_back_to_the_run(folder):
    mine = load_table("people.csv", "income").dataset
    config = parse_config(
        {
            "data": {"name": "own"},
            "model": {"kind": "logistic"},
            "noise_multiplier": 2.0,
            "sample_rate": 0.2,
            "steps": 2,
        }
        | {"learning_rate": 0.1}
    )
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


def test_a_model_of_ones_own_is_named_and_never_imported_from_a_run(folder, monkeypatch):
    import sys
    import types

    module = types.ModuleType("my_nets")
    module.Net = Net
    monkeypatch.setitem(sys.modules, "my_nets", module)
    (folder / "small.yaml").write_text(CONFIG.replace("{kind: logistic}", "my_nets:Net"))
    run = load_run(trained(folder))
    assert run.config.model.name == "my_nets:Net"
    with pytest.raises(ArtifactError, match="my_nets:Net"):
        run.model()
    weights = run.model(build=Net).layer.weight
    assert torch.equal(weights, run.weights()["layer.weight"])
    with pytest.raises(ArtifactError, match="do not fit"):
        run.model(build=lambda shape, classes: nn.Linear(1, 1))
    (folder / "small.yaml").write_text(CONFIG.replace("{kind: logistic}", "my_nets:Nothing"))
    words = ("train", "small.yaml", "--data", "people.csv", "--label", "income", "--out", "other")
    assert command(*words) == 2


def test_parquet_and_npz_give_the_same_records(folder):
    from pyarrow import csv, parquet

    whole = load_table("people.csv", "income").dataset
    parquet.write_table(csv.read_csv("people.csv"), "people.parquet")
    assert np.array_equal(load_table("people.parquet", "income").dataset.features, whole.features)
    np.savez("people.npz", features=whole.features, labels=whole.labels)
    same = load_table("people.npz", "label", {f"x{i}": {"low": -1, "high": 1} for i in range(3)}).dataset
    assert np.allclose(same.features, whole.features * [1, 1, 1], atol=1e-6)
    assert np.array_equal(same.labels, whole.labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,job,income\n1,cook,low\n,cook,high\n", r"1 empty cell \(first: line 3\)"),
        ("age,job,income\n1,cook,low\nnan,cook,high\n", "not finite|empty"),
        ("age,age,income\n1,2,low\n2,2,high\n", "two columns"),
        ("income\nlow\nhigh\n", "schema"),
        ("age,job,income\n1,cook,low\n", "at least two records"),
        ("age,job,pay\n1,cook,low\n2,cook,high\n", "label"),
        ("", "not a table"),
    ],
)
def test_a_table_that_cannot_be_used_ends_in_one_line(folder, text, message):
    (folder / "people.csv").write_text(text)
    with pytest.raises((DataError, ParameterError), match=message):
        load_table("people.csv", "income")


@pytest.mark.parametrize(
    "declared",
    [
        {"height": {"low": 0, "high": 1}},
        {"age": {"low": 5}},
        {"age": {"low": 5, "high": 5}},
        {"job": []},
        {"income": {"low": 0, "high": 1}},
    ],
)
def test_declarations_that_make_no_sense_are_refused(folder, declared):
    with pytest.raises(ParameterError, match="schema"):
        load_table("people.csv", "income", declared)


def test_a_category_that_was_not_declared_is_named(folder):
    with pytest.raises(DataError, match="'cook', which its schema does not list"):
        load_table("people.csv", "income", {"job": ["clerk"]})


def test_wrong_commands_end_in_one_line(folder, capsys):
    assert command("train", "--out", "run") == 2
    assert command("train", "--data", "people.csv", "--out", "run") == 2
    assert command("train", "--data", "people.txt", "--label", "income", "--out", "run") == 2
    assert command("train", "--data", "people.csv", "--label", "income", "--sensitive", "height", "--out", "run") == 2
    assert command("train", "--data", "people.csv", "--label", "income") == 2
    (folder / "small.yaml").write_text(CONFIG + "data: {name: digits}\n")
    assert command("train", "small.yaml", "--data", "people.csv", "--label", "income", "--out", "run") == 2
    told = capsys.readouterr().err
    assert "--sensitive must be one of age, " in told
    assert all(line.startswith("reticent: ") for line in told.splitlines())
    assert not (folder / "run").exists()


def test_a_dry_run_shows_columns_model_cost_and_risk_and_writes_nothing(folder, capsys):
    before = sorted(path.name for path in folder.iterdir())
    words = ("train", "small.yaml", "--data", "people.csv", "--label", "income", "--schema", "schema.yaml", "--dry-run")
    assert command(*words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "age numbers 17 to 90 refuse declared 1" in shown
    assert "model: kind logistic, bias True; 10 trained parameters; 2 classes" in shown
    assert "cost: 4 steps of about 10 of 49 records, 40 gradients" in shown
    assert "worst-case bound" in shown
    (folder / "small.yaml").write_text(CONFIG.replace("3.0", "3.00000987"))
    assert command(*words) == 0
    assert "noise multiplier 3," in capsys.readouterr().out  # not 3.00001: no more than there is
    (folder / "small.yaml").write_text(CONFIG)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert command(*words, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    run = load_run(trained(folder, "--schema", "schema.yaml"))
    found = rt.assess(run.ledger)[0].measure(rt.advantage)
    assert document["risk"]["assessments"][0]["advantage"]["value"] == pytest.approx(found.value, rel=1e-9, abs=0)
    assert document["cost"]["num_parameters"] == run.ledger.num_parameters


def test_a_dry_run_refuses_what_training_would_refuse(folder, capsys):
    (folder / "small.yaml").write_text(CONFIG.replace("batch_size: 10", "batch_size: 1000"))
    assert command("train", "small.yaml", "--data", "people.csv", "--label", "income", "--dry-run") == 2
    assert command("train", "small.yaml", "--sweep", "seed=1,2", "--dry-run") == 2
    assert "batch_size" in capsys.readouterr().err


def test_numbers_that_may_be_missing_are_trained_on_and_not_measured(folder, capsys):
    (folder / "people.csv").write_text("\n".join(["age,job,income", ",cook,low", *rows()]) + "\n")
    (folder / "schema.yaml").write_text(SCHEMA.replace("high: 90}", "high: 90, missing: indicator}"))
    assert load_run(trained(folder, "--schema", "schema.yaml")).ledger.data.feature_shape == (5,)
    words = ("train", "--data", "people.csv", "--label", "income", "--schema", "schema.yaml", "--out", "other")
    for group in ("age", "age (missing)"):
        assert command(*words, "--sensitive", group) == 2
        assert "a column of numbers without missing: indicator" in capsys.readouterr().err


def test_a_target_may_name_the_attacker(folder):
    noises = {}
    for who in ("worst-case", "relaxed"):  # with every record in each batch both are known in closed form
        text = CONFIG.replace("batch_size: 10", "batch_size: 49").replace(
            "noise_multiplier: 3.0", f"target: {{advantage: 0.1, adversary: {who}}}"
        )
        (folder / "small.yaml").write_text(text)
        words = ("train", "small.yaml", "--data", "people.csv", "--label", "income", "--out", who)
        assert command(*words) == 0
        noises[who] = load_run(folder / who).ledger.first.noise_multiplier
    assert noises["relaxed"] < noises["worst-case"]


def test_a_schema_survives_its_file(folder):
    schema = load_table("people.csv", "income").schema
    assert Schema.from_json(schema.to_json(), "x") == schema
    assert schema.derived == ("age", "job", "income")


def test_training_on_neighbouring_tables_shows_in_the_public_certificate_only_through_the_weights(folder, monkeypatch):
    """One person is another; schema and all seeds are the same. Every leaf that differs is accounted for.

    Both are for training: else the number of records, which is public, would differ by one.
    """
    from reticent.certificates.build import public
    from reticent.certificates.document.rounding import leaves

    lines = (folder / "people.csv").read_text().splitlines()
    documents = []
    for place, line in (("one", lines[6]), ("two", "69,pilot,high")):
        (folder / place).mkdir()
        (folder / place / "people.csv").write_text("\n".join([*lines[:6], line, *lines[7:]]) + "\n")
        (folder / "seeded.yaml").write_text(CONFIG + "randomness: reproducible\nseed: 3\n")
        table = ("--data", f"{place}/people.csv", "--label", "income", "--schema", "schema.yaml")
        assert command("train", "seeded.yaml", *table, "--out", f"{place}/run") == 0
        run = load_run(folder / place / "run")
        documents.append(public(rt.certify(run, publish=[]).certificate))
        assert rt.verify(documents[-1]).accepted
    one, two = (leaves(json.loads(document.to_json())) for document in documents)
    found = {".".join(path) for path in one.keys() | two.keys() if one.get(path) != two.get(path)}
    through_the_mechanism = {"declared.weights_sha256"}
    salted = {f"ledger.config.data.table.{name}_commitment" for name in ("file", "schema")} | {"ledger.data.commitment"}
    of_the_clock = {"declared.created", "ledger.created"}
    of_all_that = {"ledger.digest", "content_sha256", "pages.en", "pages.de", "pages.fr"}
    assert found - of_the_clock == through_the_mechanism | salted | of_all_that
