"""A content-addressed run directory.

    ROOT/manifest.json                what was asked for, in words and parameters; marks the folder as ours
    ROOT/lock                         held (flock) by the one process that hands out work
    ROOT/blobs/<sha256>.safetensors   inputs shared by tasks
    ROOT/tasks/<sha256>/task.json     the task and the digest of its result
    ROOT/tasks/<sha256>/result.safetensors

The name of a task's folder is the digest of its parameters, so that a task is done exactly when its folder
exists: a folder appears by one rename, after its files are on the disk. A process killed at any moment loses
at most the tasks that it was working on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reticent.io.files import new_folder, remove_strays, take, write_atomic
from reticent.io.strict import canonical, portable
from reticent.kernel.errors import ArtifactError, needing
from reticent.tasks.files import inside, read_json, read_tensors, tensors_bytes, write_json

_MANIFEST_SCHEMA = "reticent.run-manifest/1"
_TASK_SCHEMA = "reticent.task/1"
_FOLDERS = ("blobs", "tasks")


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
        return hashlib.sha256(canonical(portable(self.document()))).hexdigest()


class Store:
    """A run directory on a file system that every worker sees.

    Nothing is written before the first ``put``, ``save`` or ``exclusive``, and never into a folder that holds
    something else: only an absent or empty folder is taken, and only one with a manifest of ours is gone on with.

    Args:
        root: the folder; made when it is first needed.

    Raises:
        ArtifactError: the folder holds something that is not of reticent's, or lies in a finished run.
        MissingError: safetensors is not installed.
    """

    def __init__(self, root: Path | str) -> None:
        with needing("work that is kept in a folder, or done by several processes,", "distributed"):
            import safetensors  # noqa: F401
        self.root = Path(root)
        self._ready = False
        self._refuse_foreign()

    def read_manifest(self) -> dict[str, Any] | None:
        """The plan that was last asked for, or None in a new directory.

        Raises:
            ArtifactError: the manifest has another form.
        """
        path = inside(self.root, "manifest.json")
        if not path.exists():
            return None
        manifest = read_json(path)
        if manifest.get("schema") != _MANIFEST_SCHEMA or not isinstance(manifest.get("plan"), dict):
            raise ArtifactError(f"{path}: is not a manifest of the form {_MANIFEST_SCHEMA}")
        return manifest["plan"]

    @contextlib.contextmanager
    def exclusive(self, plan: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Hold the directory for handing out work; the kernel releases it even after a kill.

        Args:
            plan: what is asked for, written to the manifest once the directory is held.

        Raises:
            ArtifactError: another process holds it, it is not ours, or it cannot be written.
        """
        self._refuse_foreign()
        with _one_line(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(inside(self.root, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            try:
                take(descriptor)
            except BlockingIOError:
                raise ArtifactError(f"{self.root}: another process is working in this directory") from None
            self._begin(plan)
            for folder in (self.root, *(self.root / name for name in _FOLDERS)):
                remove_strays(folder)
            yield
        finally:
            os.close(descriptor)

    def _begin(self, plan: Mapping[str, Any] | None) -> None:
        """Make the folder ours; the lock is held."""
        if plan is not None or self.read_manifest() is None:
            write_json(self.root / "manifest.json", {"schema": _MANIFEST_SCHEMA, "plan": dict(plan or {})})
        with _one_line(self.root):
            for name in _FOLDERS:
                inside(self.root, name).mkdir(exist_ok=True)
        self._ready = True

    def _prepare(self) -> None:
        """Make sure that the folder is ours before something is put into it."""
        if not self._ready and not all(inside(self.root, name).is_dir() for name in _FOLDERS):
            with self.exclusive():
                pass
        self._ready = True

    def _refuse_foreign(self) -> None:
        try:
            content = {entry.name for entry in self.root.iterdir()} if self.root.exists() else set()
        except OSError as error:
            raise ArtifactError(f"{self.root}: cannot be read: {error.strerror}") from None
        if "manifest.json" in content:
            self.read_manifest()
        elif not all(_just_begun(self.root / name) for name in content):
            raise ArtifactError(
                f"{self.root}: holds files that are not of an earlier attack (no manifest.json): name another folder"
            )
        for folder in self.root.resolve().parents:
            if _is_finished_run(folder):
                raise ArtifactError(f"{self.root}: lies inside the run {folder}: name a folder outside it")

    def put(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Keep arrays as a blob; the digest is its name. Equal arrays are kept once."""
        self._prepare()
        data = tensors_bytes(arrays)
        digest = hashlib.sha256(data).hexdigest()
        path = inside(self.root, "blobs", f"{digest}.safetensors")
        if not path.exists():
            with _one_line(self.root):
                write_atomic(path, data, private=True)
        return digest

    def get(self, digest: str) -> dict[str, np.ndarray]:
        """The arrays of a blob.

        Raises:
            ArtifactError: it is absent or its bytes do not have this digest.
        """
        return read_tensors(inside(self.root, "blobs", f"{digest}.safetensors"), digest)

    def has(self, task: Task) -> bool:
        """Whether the task's result is there."""
        return inside(self.root, "tasks", task.key).is_dir()

    def save(self, task: Task, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a result; the first one wins, so that running a task twice does no harm."""
        self._prepare()
        data = tensors_bytes(arrays)
        digest = hashlib.sha256(data).hexdigest()
        with _one_line(self.root):
            try:
                with new_folder(inside(self.root, "tasks", task.key), private=True) as folder:
                    write_atomic(folder / "result.safetensors", data, private=True)
                    record = {"schema": _TASK_SCHEMA, "task": task.document(), "result": digest}
                    write_json(folder / "task.json", record)
            except OSError:
                if not self.has(task):
                    raise

    def task(self, key: str) -> Task:
        """The task whose result lies in the folder ``key``.

        Raises:
            ArtifactError: there is none, or it belongs elsewhere.
        """
        path = inside(self.root, "tasks", key, "task.json")
        found = read_json(path).get("task")
        if not isinstance(found, dict) or set(found) != {"kind", "inputs"} or not isinstance(found["inputs"], dict):
            raise ArtifactError(f"{path}: holds no task")
        task = Task(str(found["kind"]), found["inputs"])
        if task.key != key:
            raise ArtifactError(f"{path}: does not describe the task that its folder is named after")
        return task

    def load(self, task: Task) -> dict[str, np.ndarray]:
        """The result of a task.

        Raises:
            ArtifactError: it is absent, was made by another task, or its bytes have changed since.
        """
        path = inside(self.root, "tasks", task.key, "task.json")
        record = read_json(path)
        if record.get("schema") != _TASK_SCHEMA or record.get("task") != task.document():
            raise ArtifactError(f"{path}: does not describe the task that its folder is named after")
        return read_tensors(inside(self.root, "tasks", task.key, "result.safetensors"), str(record.get("result")))


class Kept(Store):
    """Results in the memory of this process, for work that nobody goes on with: nothing is written."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, np.ndarray]] = {}

    @contextlib.contextmanager
    def exclusive(self, plan: Mapping[str, Any] | None = None) -> Iterator[None]:
        yield

    def has(self, task: Task) -> bool:
        return task.key in self._found

    def save(self, task: Task, arrays: Mapping[str, np.ndarray]) -> None:
        self._found[task.key] = dict(arrays)

    def load(self, task: Task) -> dict[str, np.ndarray]:
        return self._found[task.key]


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """The name that ``Store.put`` would give to the arrays; nothing is written."""
    return hashlib.sha256(tensors_bytes(arrays)).hexdigest()


def _just_begun(path: Path) -> bool:
    """Whether an entry is what a process leaves that was killed before it could write the manifest."""
    if path.name == "lock":
        return path.is_file() and not path.is_symlink() and path.stat().st_size == 0
    return re.fullmatch(r"\.manifest\.json\.partial-\w{16}", path.name) is not None


def _is_finished_run(folder: Path) -> bool:
    manifest = folder / "manifest.json"
    if not manifest.is_file() or manifest.is_symlink():
        return False
    try:
        return str(read_json(manifest).get("schema", "")).startswith("reticent.run/")
    except ArtifactError:
        return False


@contextlib.contextmanager
def _one_line(root: Path) -> Iterator[None]:
    """Disk full, no permission and their like end in one line."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{root}: cannot be written: {error.strerror or error}") from None
