"""Score files: npz, parquet and csv, read as untrusted input and written atomically.

npz holds two one-dimensional numeric arrays ``member`` and ``non_member``, and optionally ``meta``, a
text scalar with a flat JSON object. parquet and csv hold one row per record with the columns
``score`` and ``member`` (true/false or 1/0). No format can run code: npz is parsed header first with
``allow_pickle=False``, and every size is checked against the file before memory is taken.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import numpy as np

from reticent.auditing.scores import ONE, Design, MetaValue, Scores
from reticent.io import files, strict
from reticent.io.npz import read_arrays
from reticent.kernel.errors import ArtifactError, ParameterError, needing

_MOST_BYTES = 1 << 28
MOST_SCORES = 10_000_000
"""Scores that are read of one file."""
_MOST_META = 1 << 16
_TRUE, _FALSE = {"1", "true", "True", "TRUE"}, {"0", "false", "False", "FALSE"}


def load_scores(path: str | os.PathLike[str], design: Design | None = None) -> Scores:
    """Read a score file; the ending of its name says which format.

    Args:
        path: a .npz, .parquet or .csv file of at most 256 MiB and ten million scores.
        design: how the scores came about; by default what the file says under ``design``, else
            ``Design.POPULATION``.

    Raises:
        ArtifactError: the file is missing, too large, damaged, hostile, or not laid out as above; or
            its scores are empty or not finite.
    """
    file = _named(path)
    if not file.is_file():
        raise ArtifactError(f"{file}: no such file")
    if file.stat().st_size > _MOST_BYTES:
        raise ArtifactError(f"{file}: larger than {_MOST_BYTES} bytes")
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}
    member, non_member, meta = readers[file.suffix](file)
    stated = meta.pop("design", None)
    try:
        chosen = design or (Design.POPULATION if stated is None else Design(str(stated)))
        return Scores(member, non_member, meta, chosen)
    except (ParameterError, ValueError) as error:
        raise ArtifactError(f"{file}: {error}") from error


def check_score_path(path: str | os.PathLike[str]) -> Path:
    """The path, if scores can be written there.

    Raises:
        ArtifactError: the ending of the name is none of the three, or the folder is missing or not writable.
    """
    file = _named(path)
    files.refuse_no_folder(file)
    return file


def _named(path: str | os.PathLike[str]) -> Path:
    """The path, if the ending of its name says which format."""
    file = Path(path)
    if file.suffix not in (".npz", ".parquet", ".csv"):
        raise ArtifactError(f"{file}: scores must be a .npz, .parquet or .csv file")
    return file


def save_scores(path: str | os.PathLike[str], scores: Scores) -> None:
    """Write ``scores`` to a .npz, .parquet or .csv file, whole or not at all; only its owner may read it.

    csv keeps neither ``meta`` nor ``design``.

    Raises:
        ArtifactError: the ending of the name is none of the three, or the folder does not exist.
    """
    file = check_score_path(path)
    writers = {".npz": _npz_bytes, ".parquet": _parquet_bytes, ".csv": _csv_bytes}
    with files.writing(file):
        files.write_atomic(file, writers[file.suffix](scores), private=True)


def _read_npz(file: Path) -> tuple[np.ndarray, np.ndarray, dict[str, MetaValue]]:
    with file.open("rb") as stream:
        most = 8 * MOST_SCORES + 8 * _MOST_META
        arrays = read_arrays(stream, str(file), ("member", "non_member"), most, also=("meta",))
    _check_count(file, arrays["member"].size + arrays["non_member"].size)
    meta = arrays.get("meta", np.array("{}"))
    if meta.dtype.kind != "U" or meta.shape != ():
        raise ArtifactError(f"{file}: meta must be one short text")
    return arrays["member"], arrays["non_member"], _meta(file, str(meta))


def _check_count(file: Path, scores: int) -> None:
    if scores > MOST_SCORES:
        raise ArtifactError(f"{file}: holds {scores} scores, at most {MOST_SCORES} are read")


def _meta(file: Path, text: str) -> dict[str, MetaValue]:
    if len(text) > _MOST_META:
        raise ArtifactError(f"{file}: its meta is too long")
    meta = strict.loads(text, f"{file}: meta")
    if not isinstance(meta, dict):
        raise ArtifactError(f"{file}: meta must be a flat JSON object")
    return meta


def _read_csv(file: Path) -> tuple[np.ndarray, np.ndarray, dict[str, MetaValue]]:
    scores: list[float] = []
    members: list[bool] = []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:  # with a byte order mark, as Excel writes it
            rows = csv.reader(stream, strict=True)
            names = next(rows, [])
            if sorted(names) != ["member", "score"]:
                raise ArtifactError(f"{file}: the columns must be score and member, are {names[:8]}; a score is {ONE}")
            score, member = names.index("score"), names.index("member")
            for row in rows:
                if len(row) > 2:
                    raise ArtifactError(f"{file}: line {rows.line_num} has more than two fields")
                if row:
                    scores.append(_number(file, rows.line_num, row[score] if len(row) > score else None))
                    members.append(_truth(file, rows.line_num, row[member] if len(row) > member else None))
                    _check_count(file, len(scores))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArtifactError(f"{file}: not a csv text file ({error})") from error
    return (*_divide(np.array(scores), np.array(members, dtype=bool)), {})


def _number(file: Path, line: int, text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        several = f"; a score is {ONE}" if text and text.strip()[:1] in "[(" else ""
        raise ArtifactError(f"{file}: line {line}: score {text!r} is not a number{several}") from None
    if not np.isfinite(number):
        raise ArtifactError(f"{file}: line {line}: score {text!r} is not finite, and no row may be left out")
    return number


def _truth(file: Path, line: int, text: str | None) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ArtifactError(f"{file}: line {line}: member must be true, false, 1 or 0, is {text!r}")


def _read_parquet(file: Path) -> tuple[np.ndarray, np.ndarray, dict[str, MetaValue]]:
    with needing("reading a .parquet file", "train"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as source:
            schema, groups = source.schema_arrow, source.metadata.num_row_groups
            if sorted(schema.names) != ["member", "score"]:
                known = f"must have the columns score and member, has {schema.names[:8]}; a score is {ONE}"
                raise ArtifactError(f"{file}: {known}")
            _check_count(file, sum(source.metadata.row_group(i).num_rows for i in range(groups)))
            kind = schema.field("score").type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise ArtifactError(f"{file}: score must be a number, is {kind}; a score is {ONE}")
            if not (pa.types.is_boolean(schema.field("member").type)):
                raise ArtifactError(f"{file}: member must be true or false, is {schema.field('member').type}")
            table = source.read(columns=["score", "member"])
    except (pa.ArrowException, OSError) as error:
        raise ArtifactError(f"{file}: not a readable parquet file ({type(error).__name__})") from error
    if any(table.column(name).null_count for name in ("score", "member")):
        raise ArtifactError(f"{file}: holds missing values")
    text = (schema.metadata or {}).get(b"reticent", b"{}")
    score, member = table.column("score").to_numpy(), table.column("member").to_numpy()
    return (*_divide(score.astype(float), member), _meta(file, text.decode("utf-8", "replace")))


def _divide(score: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return score[member], score[~member]


def _meta_text(scores: Scores) -> str:
    return json.dumps({**scores.meta, "design": str(scores.design)}, allow_nan=False, sort_keys=True)


def _npz_bytes(scores: Scores) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, member=scores.member, non_member=scores.non_member, meta=np.array(_meta_text(scores)))
    return stream.getvalue()


def _parquet_bytes(scores: Scores) -> bytes:
    with needing("writing a .parquet file", "train"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    value = np.concatenate([scores.member, scores.non_member])
    table = pa.table({"score": value, "member": np.arange(len(scores)) < len(scores.member)})
    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"reticent": _meta_text(scores)}), stream)
    return stream.getvalue()


def _csv_bytes(scores: Scores) -> bytes:
    sides = (scores.member, 1), (scores.non_member, 0)
    rows = [f"{value!r},{member}" for side, member in sides for value in side.tolist()]
    return ("score,member\n" + "\n".join(rows) + "\n").encode()
