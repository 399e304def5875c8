"""Checkpoints: a training that was killed goes on as if nothing had happened.

One file holds weights, optimizer, what the ledger will say of the steps done, averages, and random state; it is
replaced in one rename. With fresh randomness no random state is kept, because a stored state would be a key to the
noise: the resumed run draws anew, and steps that were lost were never released, so the ledger counts each step once.
With reproducible randomness the resumed run is bit-identical. The file is private, like the ledger's diagnostics.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors
from torch import nn
from torch.optim import Optimizer

from reticent.io import files
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.training.hooks import StepHook
from reticent.training.randomness import SeededSource, Source


@dataclass
class Moving:
    """Everything that changes along a run, by reference.

    Attributes:
        model: the bare module.
        optimizer: the plain optimizer inside the private one.
        sources: of batches and of noise.
        hooks: those that keep something have ``tensors`` and ``restore``.
        batch_sizes, clipped: of the steps done: records, and those whose gradient norm exceeded the clip norm.
    """

    model: nn.Module
    optimizer: Optimizer
    sources: tuple[Source, Source]
    hooks: Sequence[StepHook]
    batch_sizes: list[int] = field(default_factory=list)
    clipped: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is kept.

    Attributes:
        path: the file; an existing one is resumed from.
        every: steps between two writes, >= 1.
        belongs_to: anything that must be the same when the run goes on (configuration, data, versions).
    """

    path: Path
    every: int = 100
    belongs_to: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One process at a time: two that go on from one file would release two runs and count one.

        Raises:
            ArtifactError: another process holds it, or the folder cannot be written.
            ParameterError: the path names no file.
        """
        if not self.path.name:
            raise ParameterError("checkpoint", str(self.path), "the name of a file")
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ArtifactError(f"{self.path}: cannot be locked ({error.strerror})") from None
        try:
            try:
                files.take(descriptor)
                if not lock.exists() or not os.path.samestat(lock.stat(), os.fstat(descriptor)):
                    raise BlockingIOError  # its owner has just removed it
            except BlockingIOError:
                raise ArtifactError(f"{self.path}: another process is training with this checkpoint") from None
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def restore(self, moving: Moving) -> int:
        """Put back what was kept; the number of steps done, 0 without a file.

        Raises:
            ArtifactError: the file is damaged, or belongs to another configuration, data or version.
            UnsupportedError: a hook cannot be resumed.
        """
        for hook in moving.hooks:
            if not (hasattr(hook, "tensors") and hasattr(hook, "restore")):
                raise UnsupportedError(f"a run with {type(hook).__name__} cannot be resumed: leave out the checkpoint")
        if not self.path.exists():
            return 0
        try:
            with safe_open(self.path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
                kept = json.loads((file.metadata() or {})["run"])
            if kept["belongs_to"] != self._fingerprint():
                raise ArtifactError(f"{self.path}: belongs to another configuration, data set or version")
            self._put(moving, tensors, kept)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, IndexError, RuntimeError) as error:
            text = " ".join(str(error).split())
            raise ArtifactError(f"{self.path}: not a checkpoint of this run ({type(error).__name__}: {text})") from None
        return len(moving.batch_sizes)

    def save(self, moving: Moving) -> None:
        """Replace the file by the present state, whole or not at all."""
        groups = moving.optimizer.state_dict()
        tensors = {f"model/{name}": p.detach() for name, p in moving.model.state_dict().items()}
        tensors |= {
            f"optimizer/{k}/{name}": value
            for k, state in groups["state"].items()
            for name, value in state.items()
            if isinstance(value, torch.Tensor)
        }
        for place, hook in enumerate(moving.hooks):
            tensors |= {f"hook/{place}/{name}": value for name, value in hook.tensors().items()}  # type: ignore[attr-defined]
        sources = [s.state() if isinstance(s, SeededSource) else None for s in moving.sources]
        if any(sources):
            tensors["torch"] = torch.get_rng_state()  # of dropout and the like
        kept = {
            "belongs_to": self._fingerprint(),
            "batch_sizes": moving.batch_sizes,
            "clipped": moving.clipped,
            "groups": groups["param_groups"],
            "sources": sources,
        }
        ready = {name: value.cpu().contiguous().clone() for name, value in tensors.items()}
        files.write_atomic(self.path, save_tensors(ready, metadata={"run": json.dumps(kept)}), private=True)

    def _put(self, moving: Moving, tensors: dict[str, torch.Tensor], kept: dict[str, Any]) -> None:
        moving.model.load_state_dict(_under(tensors, "model"))
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in _under(tensors, "optimizer").items():
            place, _, key = name.partition("/")
            state.setdefault(int(place), {})[key] = value
        moving.optimizer.load_state_dict({"state": state, "param_groups": kept["groups"]})
        for index, hook in enumerate(moving.hooks):
            hook.restore(_under(tensors, f"hook/{index}"))  # type: ignore[attr-defined]
        for source, there in zip(moving.sources, kept["sources"], strict=True):
            if isinstance(source, SeededSource):
                source.restore(there)
        if "torch" in tensors:
            torch.set_rng_state(tensors["torch"])
        moving.batch_sizes[:], moving.clipped[:] = kept["batch_sizes"], kept["clipped"]

    def _fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.belongs_to, sort_keys=True).encode()).hexdigest()


def _under(tensors: dict[str, torch.Tensor], folder: str) -> dict[str, torch.Tensor]:
    """The tensors in a folder, without its name."""
    return {n.removeprefix(folder + "/"): value for n, value in tensors.items() if n.startswith(folder + "/")}
