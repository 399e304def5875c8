"""The run directory: written whole or not at all, read with suspicion. Torch is loaded for weights only."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field

from reticent.data import Dataset
from reticent.data.own import SCHEMA_FILE, Schema, find_table
from reticent.io import strict
from reticent.io.files import new_folder, read_bytes, sha256_file, write_atomic, writing
from reticent.io.models import Closed, Sha256, Whole, validated
from reticent.io.outputs import refuse_overwriting, signature_of
from reticent.kernel.errors import ArtifactError, DataError, ParameterError
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.records.ledger import RunLedger
from reticent.signing.envelope import LEDGER as OF_LEDGER
from reticent.signing.envelope import RUN
from reticent.signing.provenance import SIGNATURE, sealed
from reticent.tasks.files import parse_tensors
from reticent.training.config import TrainConfig, parse_config
from reticent.training.config_data import OWN
from reticent.training.config_models import CustomConfig

if TYPE_CHECKING:
    import torch
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from torch import nn

    from reticent.training.trace import Trace

MANIFEST = "manifest.json"
LEDGER = "ledger.json"
WEIGHTS = "weights.safetensors"
SENSITIVITY = "sensitivity.json"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}){0,3}")
_LARGEST_MANIFEST = 8 << 20
_LARGEST_LEDGER = 64 << 20
_LARGEST_INDEX = 8 << 20
_HEADER_BYTES = 1 << 20
_LARGEST_SCHEMA = 8 << 20
_MOST_FILES = 50_000


class FileRecord(Closed):
    """One file of a run."""

    bytes: Whole
    sha256: Sha256


class Manifest(Closed):
    """What a complete run holds; written last, so its presence marks completeness."""

    model_config = ConfigDict(populate_by_name=True)
    schema_: Literal["reticent.run/1"] = Field(default="reticent.run/1", alias="schema")
    files: Annotated[dict[str, FileRecord], Field(max_length=_MOST_FILES)]


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        path: the directory.
        ledger: what really ran.
        manifest: the files with their checksums.
    """

    path: Path
    ledger: RunLedger
    manifest: Manifest

    @property
    def config(self) -> TrainConfig:
        """The configuration that the run was asked for."""
        return parse_config(self.ledger.asked, f"{self.path}/{LEDGER}: config")

    def weights(self) -> dict[str, torch.Tensor]:
        """The final weights by parameter name, in the order of ``ledger.parameters``, checked against it.

        Raises:
            ArtifactError: the file is corrupt or disagrees with the ledger.
        """
        import torch

        shapes = {p.name: (p.shape, "float32") for p in self.ledger.parameters}
        content = self.file(WEIGHTS, 4 * sum(math.prod(shape) for shape, _ in shapes.values()) + _HEADER_BYTES)
        found = parse_tensors(content, WEIGHTS, shapes)
        return {name: torch.from_numpy(found[name]) for name in shapes}

    def model(self, build: Callable[[tuple[int, ...], int], nn.Module] | None = None) -> nn.Module:
        """The trained model, in evaluation mode.

        Args:
            build: the class of a model of your own, which is called as in training. The name in the run is not
                imported: the run may be untrusted.

        Raises:
            ArtifactError: configuration and weights do not fit each other, or the model is somebody's own.
        """
        import torch

        from reticent.training.models import build_model

        weights, data, config = self.weights(), self.ledger.own_data, self.config.model
        if own := isinstance(config, CustomConfig):
            if build is None:
                raise ArtifactError(f"{self.path}: the model is {config.name}: import it and call run.model(build=...)")
            model, which = build(data.feature_shape, data.classes), "this model"
        else:
            # Shapes first, without memory: a forged configuration may name a model that no machine holds.
            with torch.device("meta"):
                model = build_model(config, data.feature_shape, data.classes, seed=0)
            which = "the model of the configuration"
        if {name: p.shape for name, p in model.named_parameters()} != {name: w.shape for name, w in weights.items()}:
            raise ArtifactError(f"{self.path}: the weights do not fit {which}")
        model.load_state_dict(weights, strict=not own, assign=not own)
        return model.eval()

    def dataset(self, mine: Dataset | None = None) -> Dataset:
        """The data set with the split of the run.

        A table of one's own is looked for by its name under ``$RETICENT_DATA``, in the current folder and next to the
        run, and must have the fingerprint of the run.

        Args:
            mine: a data set of your own that was handed to ``train``; it is compared with the run.

        Raises:
            DataError: it is not the one that the run used, or is not found; the text says what to do.
        """
        from reticent.training.setup import find_dataset

        wanted, config = self.ledger.own_data.content_hash, self.config.data
        found = mine if mine is not None else self._own() if config.name == OWN else find_dataset(config, wanted)
        if found is None or found.content_hash != wanted:
            hint = "" if mine is not None else "; if you handed them to train(dataset=mine), call run.dataset(mine)"
            raise DataError(f"{config.name}: records or split differ from those of the run {self.path}{hint}")
        return found

    def _own(self) -> Dataset:
        from reticent.training.setup import divided

        table = self.config.data.table
        if table is None:
            raise DataError(
                "the records were given to train(dataset=mine) and are not in a file: call run.dataset(mine)"
            )
        content = self.file(SCHEMA_FILE, _LARGEST_SCHEMA)
        if hashlib.sha256(content).hexdigest() != table.schema_sha256:
            raise ArtifactError(f"{self.path}/{SCHEMA_FILE}: is not the schema of the configuration")
        schema = Schema.from_json(content, f"{self.path}/{SCHEMA_FILE}")
        root = os.environ.get("RETICENT_DATA")
        folders = [*([Path(root).expanduser()] if root else []), Path.cwd(), self.path.resolve().parent]
        found = find_table(table.file, table.file_sha256, schema, folders).dataset
        return divided(found, self.config.data)

    def trace(self) -> Trace | None:
        """Weights and released gradients per step, or None where none were recorded.

        Raises:
            ArtifactError: the trace does not belong to the ledger of this run.
        """
        from reticent.training.trace import INDEX, Trace, TraceIndex

        if INDEX not in self.manifest.files:
            return None
        index = validated(TraceIndex, strict.loads(self.file(INDEX, _LARGEST_INDEX), INDEX), INDEX)
        if index.num_parameters != self.ledger.num_parameters or index.dataset_size != self.ledger.dataset_size:
            raise ArtifactError(f"{INDEX}: does not fit the ledger")
        return Trace(index, self.file)

    def sensitivity(self) -> SensitivityRecord | None:
        """What was recorded about one attribute, or None where nothing was.

        Private, record by record and small numbers too: docs/theory/auditing.md says why.
        """
        if SENSITIVITY not in self.manifest.files:
            return None
        return parse_sensitivity(self.file(SENSITIVITY, _HEADER_BYTES).decode("utf-8", "replace"), SENSITIVITY)

    def file(self, name: str, limit: int) -> bytes:
        """The bytes of a file, after checking size and checksum.

        Raises:
            ArtifactError: there is none, or it is larger than ``limit`` bytes, or corrupt.
        """
        record = self.manifest.files.get(name)
        if record is None:
            raise ArtifactError(f"{self.path}: has no file {name}")
        if record.bytes > limit:
            raise ArtifactError(f"{self.path}/{name}: {record.bytes} bytes, more than the {limit} that are allowed")
        return _checked(self.path, name, record)


def check_run_folder(path: Path) -> None:
    """Refuse the folder that ``certify CONFIG`` writes: the run is one deeper.

    Raises:
        ArtifactError: it is that folder; the text names the run.
    """
    if (path / "run" / MANIFEST).is_file() and not (path / MANIFEST).exists():
        raise ArtifactError(f"{path} is the folder of a certificate; its run is {path / 'run'}")


def signer_of(what: Path, keys: Sequence[Ed25519PrivateKey], run_key: Path | None) -> str | None:
    """The id of the key that signed a run or a watched ledger when it ended; None without a signature.

    Every file of a run is compared first. Nothing is compared where nothing is to be signed.

    Args:
        what: the folder of a run, or the file of a ledger.
        keys: that sign the certificate: one of them must have signed.
        run_key: the public key that must have signed, instead.

    Raises:
        ArtifactError: a file is not as it was recorded, or the signature is of none of the keys.
    """
    from reticent.signing.keys import load_public_key
    from reticent.signing.provenance import signer

    if not keys and run_key is None:
        return None
    if what.is_dir():
        check_files(what)
        signed, envelope, kind = what / MANIFEST, what / SIGNATURE, RUN
    else:
        signed, envelope, kind = what, signature_of(what), OF_LEDGER
    trusted = [key.public_key() for key in keys] if run_key is None else [load_public_key(run_key)]
    return signer(signed, envelope, kind, trusted, required=run_key is not None)


def load_run(path: Path | str) -> Run:
    """Open a run directory.

    Manifest, ledger and the presence and size of every file are checked here; checksums of weights and
    trace are compared when they are read. Nothing in the directory is executed or unpickled, and no
    file outside it is opened.

    Raises:
        ArtifactError: no complete run lies there, or something in it is corrupt or hostile.
    """
    path = Path(path)
    manifest = _load_manifest(path)
    if not {LEDGER, WEIGHTS} <= set(manifest.files):
        raise ArtifactError(f"{path}: {MANIFEST} lacks {LEDGER} or {WEIGHTS}")
    if manifest.files[LEDGER].bytes > _LARGEST_LEDGER:
        raise ArtifactError(f"{path}/{LEDGER}: too large")
    ledger = RunLedger.from_json(_checked(path, LEDGER, manifest.files[LEDGER]), f"{path}/{LEDGER}")
    return Run(path, ledger, manifest)


def parse_sensitivity(text: str, where: str) -> SensitivityRecord:
    """Read a record back.

    Raises:
        ArtifactError: the text is not strict JSON or not such a record.
    """
    document = strict.loads(text, where)
    try:
        fields = dict(document)
        if fields.pop("schema") != "reticent.sensitivity/1":
            raise ValueError("unknown schema")
        return SensitivityRecord(**{**fields, "scope": Scope(fields["scope"])})
    except (KeyError, TypeError, ValueError, ParameterError) as error:
        raise ArtifactError(f"{where}: not a sensitivity record ({error})") from None


def check_files(path: Path) -> None:
    """Compare every file of a run with its record.

    Raises:
        ArtifactError: a file differs, or is missing.
    """
    manifest = _load_manifest(path)
    for name, record in manifest.files.items():
        if sha256_file(path / name) != record.sha256:
            raise ArtifactError(f"{path}/{name}: checksum differs from the manifest: changed after the run")


@contextmanager
def new_run(path: Path, sign: Ed25519PrivateKey | None) -> Iterator[Path]:
    """A folder to write into, which becomes ``path`` in one rename once the block ends without error.

    After an error nothing is left behind; after a kill only a hidden ``.NAME.partial-*`` folder, which ``load_run``
    refuses because it has no manifest, and which the next success removes.

    Args:
        sign: signs the manifest, and so every file, when the run ends.

    Raises:
        ArtifactError: the folder cannot be made.
    """
    path = Path(os.path.abspath(path))
    refuse_overwriting(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot create run directory ({error.strerror})") from None
    try:
        with writing(path), new_folder(path, private=True) as partial:
            yield partial
            _write_manifest(partial)
            if sign is not None:
                write_atomic(partial / SIGNATURE, sealed((partial / MANIFEST).read_bytes(), RUN, sign))
            refuse_overwriting(path)
    except OSError:
        refuse_overwriting(path)
        raise


def write_run(directory: Path, ledger: RunLedger, model: nn.Module) -> None:
    """Write ledger and weights into the folder of ``new_run``."""
    from safetensors.torch import save as save_tensors

    tensors = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
    (directory / WEIGHTS).write_bytes(save_tensors(tensors))
    (directory / LEDGER).write_text(ledger.to_json(), encoding="utf-8")
    (directory / LEDGER).chmod(0o600)  # it holds the salt, and what was computed from the records


def _write_manifest(directory: Path) -> None:
    files = {}
    for file in sorted(p for p in directory.rglob("*") if p.is_file()):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        name = file.relative_to(directory).as_posix()
        files[name] = FileRecord(bytes=file.stat().st_size, sha256=sha256_file(file))
    text = strict.dumps(Manifest(files=files).model_dump(mode="json", by_alias=True))
    write_atomic(directory / MANIFEST, text.encode())


def _load_manifest(path: Path) -> Manifest:
    """What a run holds; all of it is there, in its size, and nothing is a link."""
    file = path / MANIFEST
    if not path.is_dir():
        raise ArtifactError(f"{path}: not a run directory")
    if not file.is_file() or file.is_symlink():
        raise ArtifactError(f"{path}: half written, or not a run: it has no {MANIFEST}")
    content = read_bytes(file, _LARGEST_MANIFEST, follow=False)
    document = strict.loads(content, str(file), keys=_MOST_FILES, objects=_MOST_FILES + 2)
    manifest = validated(Manifest, document, str(file))
    _refuse_links(path)
    for name, record in manifest.files.items():
        _check_entry(path, name, record)
    return manifest


def _refuse_links(path: Path) -> None:
    """Not even one that the manifest does not list: a copy or an archive of the folder would follow it."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(folder, name)):
                raise ArtifactError(f"{path}: {name} is a link, which a run must not hold")


def _check_entry(path: Path, name: str, record: FileRecord) -> None:
    if not _NAME.fullmatch(name) or ".." in name:
        raise ArtifactError(f"{path}/{MANIFEST}: {name!r} is not an allowed file name")
    try:
        found = (path / name).lstat()
    except OSError:
        raise ArtifactError(f"{path}: half written: {name} is missing") from None
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactError(f"{path}/{name}: is not a plain file")
    if found.st_size != record.bytes:
        raise ArtifactError(f"{path}/{name}: {found.st_size} bytes, the manifest says {record.bytes}")


def _checked(path: Path, name: str, record: FileRecord) -> bytes:
    """The bytes of a file, which are those of the manifest."""
    _check_entry(path, name, record)
    content = read_bytes(path / name, record.bytes, follow=False)
    if hashlib.sha256(content).hexdigest() != record.sha256:
        raise ArtifactError(f"{path}/{name}: checksum differs from the manifest: corrupt")
    return content
