"""A content-addressed run directory.

    ROOT/manifest.json                what was asked for, in words and parameters
    ROOT/lock                         held (flock) by the one process that hands out work
    ROOT/blobs/<sha256>.safetensors   inputs shared by tasks
    ROOT/tasks/<sha256>/task.json     the task and the digest of its result
    ROOT/tasks/<sha256>/result.safetensors
    ROOT/partial/                     half-written results; removed when work is resumed

The name of a task's folder is the digest of its parameters, so that a task is done exactly when its folder
exists: a folder appears by one rename, after its files are on the disk. A process killed at any moment loses
at most the tasks that it was working on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import ArtifactError
from reticent.tasks.readers import DATA_LIMIT, inside, read_bytes, read_json, read_tensors
from reticent.tasks.writers import canonical_json, sync_folder, tensors_bytes, write_bytes, write_json

_MANIFEST_SCHEMA = "reticent.run-manifest/1"
_TASK_SCHEMA = "reticent.task/1"


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of work: everything that its result depends on, and nothing else.

    Attributes:
        kind: what is to be done, a word known to the code that runs it (a file never names code).
        inputs: strict JSON values; digests of blobs where the input is large.
    """

    kind: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The task as a JSON object."""
        return {"kind": self.kind, "inputs": dict(self.inputs)}

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the task, in hexadecimal."""
        return hashlib.sha256(canonical_json(self.document())).hexdigest()


class Store:
    """A run directory on a file system that every worker sees.

    Args:
        root: the folder; made if absent.

    Raises:
        ArtifactError: the folder holds a manifest that is not one of reticent's.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        for name in ("blobs", "tasks", "partial"):
            folder = inside(self.root, name)
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ArtifactError(f"{folder}: cannot be made: {error.strerror}") from None

    def read_manifest(self) -> dict[str, Any] | None:
        """The plan that was last asked for, or None in a new directory."""
        path = inside(self.root, "manifest.json")
        if not path.exists():
            return None
        manifest = read_json(path)
        if manifest.get("schema") != _MANIFEST_SCHEMA or not isinstance(manifest.get("plan"), dict):
            raise ArtifactError(f"{path}: is not a manifest of the form {_MANIFEST_SCHEMA}")
        return manifest["plan"]

    def write_manifest(self, plan: Mapping[str, Any]) -> None:
        """Record the plan."""
        write_json(self.root / "manifest.json", {"schema": _MANIFEST_SCHEMA, "plan": dict(plan)})

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the directory for handing out work; the kernel releases it even after a kill.

        Raises:
            ArtifactError: another process holds it.
        """
        descriptor = os.open(inside(self.root, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArtifactError(f"{self.root}: another process is working in this directory") from None
            self._remove_partial()
            yield
        finally:
            os.close(descriptor)

    def put(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Keep arrays as a blob; the digest is its name. Equal arrays are kept once."""
        data = tensors_bytes(arrays)
        digest = hashlib.sha256(data).hexdigest()
        path = inside(self.root, "blobs", f"{digest}.safetensors")
        if not path.exists():
            write_bytes(path, data)
        return digest

    def get(self, digest: str) -> dict[str, np.ndarray]:
        """The arrays of a blob.

        Raises:
            ArtifactError: it is absent or its bytes do not have this digest.
        """
        path = inside(self.root, "blobs", f"{digest}.safetensors")
        _verify(path, digest)
        return read_tensors(path)

    def has(self, task: Task) -> bool:
        """Whether the task's result is there."""
        return inside(self.root, "tasks", task.key).is_dir()

    def save(self, task: Task, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a result; the first one wins, so that running a task twice does no harm."""
        data = tensors_bytes(arrays)
        folder = Path(tempfile.mkdtemp(prefix="task-", dir=self.root / "partial"))
        write_bytes(folder / "result.safetensors", data)
        digest = hashlib.sha256(data).hexdigest()
        write_json(folder / "task.json", {"schema": _TASK_SCHEMA, "task": task.document(), "result": digest})
        try:
            folder.rename(self.root / "tasks" / task.key)
        except OSError:
            if not self.has(task):
                raise
            shutil.rmtree(folder, ignore_errors=True)
        sync_folder(self.root / "tasks")

    def load(self, task: Task) -> dict[str, np.ndarray]:
        """The result of a task.

        Raises:
            ArtifactError: it is absent, was made by another task, or its bytes have changed since.
        """
        path = inside(self.root, "tasks", task.key, "task.json")
        record = read_json(path)
        if record.get("schema") != _TASK_SCHEMA or record.get("task") != task.document():
            raise ArtifactError(f"{path}: does not describe the task that its folder is named after")
        result = inside(self.root, "tasks", task.key, "result.safetensors")
        _verify(result, record.get("result"))
        return read_tensors(result)

    def digest(self, tasks: list[Task]) -> str:
        """One digest of the results of ``tasks``, in their order: equal runs have equal digests."""
        total = hashlib.sha256()
        for task in tasks:
            total.update(tensors_bytes(self.load(task)))
        return total.hexdigest()

    def _remove_partial(self) -> None:
        for entry in inside(self.root, "partial").iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        for entry in [*self.root.glob(".manifest.json-*"), *(self.root / "blobs").glob(".*.safetensors-*")]:
            entry.unlink(missing_ok=True)


def _verify(path: Path, digest: object) -> None:
    found = hashlib.sha256(read_bytes(path, DATA_LIMIT)).hexdigest()
    if found != digest:
        raise ArtifactError(f"{path}: its SHA-256 is {found[:12]}..., not the recorded one; delete it and resume")
