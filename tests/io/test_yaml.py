"""The one YAML loader: each text has one meaning, and none takes long."""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reticent.io.yaml import Limits, load_file, loads
from reticent.kernel.errors import ArtifactError

ONE_MEANING = {
    "1": 1,
    "0.5": 0.5,
    ".5": 0.5,
    "1e-5": 1e-5,
    "1.": 1.0,
    "true": True,
    "null": None,
    "~": None,
    "yes": "yes",
    "2024-10-10": "2024-10-10",
    "'1:00'": "1:00",
    '"010"': "010",
    "0ab4": "0ab4",
    ".inf": math.inf,
}


@pytest.mark.parametrize("text", ONE_MEANING)
def test_a_plain_value_has_one_meaning(text: str) -> None:
    found = loads(f"a: {text}", "c")["a"]
    assert found == ONE_MEANING[text]
    assert type(found) is type(ONE_MEANING[text])


def test_every_key_is_a_text() -> None:
    assert loads("1: a\ntrue: b\nnull: c", "c") == {"1": "a", "true": "b", "null": "c"}
    assert loads("", "c") is None
    assert loads("- 1\n- [2, {a: 3}]", "c") == [1, [2, {"a": 3}]]


REFUSED = {
    "a key twice": ("a: 1\na: 2", "the key 'a' is repeated in line 2"),
    "a key twice, once in quotes": ("1: x\n'1': y", "the key '1' is repeated"),
    "base 60": ("a: 1:00", "'1:00' has several meanings"),
    "octal": ("a: 010", "several meanings"),
    "hexadecimal": ("a: 0x1F", "several meanings"),
    "a number without end": ("a: 1e999", "too large"),
    "an anchor": ("a: &b 1", "an anchor or alias"),
    "an alias": ("a: *b", "an anchor or alias"),
    "a merge key": ("<<: {a: 1}", "a merge key"),
    "a tag": ("a: !!int 3", "a tag such as !!int"),
    "Python": ("!!python/object/apply:os.system ['touch hacked']", "a tag"),
    "a list as a key": ("? [a, b]\n: 1", "a list or mapping as a key"),
    "two documents": ("a: 1\n---\na: 2", "more than one document"),
    "half a character": (r'a: "\ud800"', "half a character"),
    "deep": ("a: " + "[" * 400, "nested more than 16 deep"),
    "large": ("#" * 70_000, "more than 65536 bytes"),
    "many": ("[" + "1," * 20_000 + "]", "more than 10000 values"),
    "no YAML": ("{{{", "not valid YAML"),
    "no text": ("\x00", "not valid YAML"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_one_line(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(ArtifactError) as caught:
        loads(text, "c.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("c.yaml: ")
    assert "\n" not in str(caught.value)


def laughs(levels: int) -> str:
    """Lists of lists by name: each level is ten of the one before."""
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    """Mappings merged into each other twice: reading takes twice as long with each line."""
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, levels))]
    return "\n".join(lines)


BOMBS = {
    "801 bytes of laughs": laughs(16)[:801],
    "2 kB of merges": merges(60)[:2048],
    "brackets": "[" * 65_000,
    "questions": "? " * 32_000,
    "escapes": '"' + r"\x41" * 16_000 + '"',
    "lines": "a\n\n" * 21_000,
}


@pytest.mark.parametrize("case", BOMBS)
def test_no_text_takes_long(case: str) -> None:
    begun = time.process_time()
    with suppress(ArtifactError):
        loads(BOMBS[case], "c")
    assert time.process_time() - begun < 2.0


def test_limits_are_those_that_were_asked_for() -> None:
    assert loads("[1, 2, 3]", "c", Limits(nodes=4)) == [1, 2, 3]
    with pytest.raises(ArtifactError, match="more than 3 values"):
        loads("[1, 2, 3]", "c", Limits(nodes=3))
    assert loads("[[1]]", "c", Limits(depth=2)) == [[1]]
    with pytest.raises(ArtifactError, match="nested more than 1 deep"):
        loads("[[1]]", "c", Limits(depth=1))


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ArtifactError, match="not a plain file"):
        load_file(tmp_path / "pipe.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ArtifactError, match="is not UTF-8 text"):
        load_file(tmp_path / "bytes.yaml")
    with pytest.raises(ArtifactError, match="cannot be read"):
        load_file(tmp_path / "none.yaml")
    (tmp_path / "large.yaml").write_text("#" * 70_000)
    with pytest.raises(ArtifactError, match="more than the 65536"):
        load_file(tmp_path / "large.yaml")
