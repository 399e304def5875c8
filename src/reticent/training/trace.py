"""Record weights and released gradients of each step, for attacks that read a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import ConfigDict, Field
from safetensors.torch import save as save_tensors

from reticent.io import strict
from reticent.io.models import Closed, Count
from reticent.kernel.errors import ArtifactError
from reticent.tasks.files import parse_tensors
from reticent.training.config import TraceConfig
from reticent.training.hooks import RunContext, Step, StepHook, Update, flat
from reticent.training.models import trained_parameters

FOLDER = "trace"
INDEX = f"{FOLDER}/trace.json"
SHARD_BYTES = 64 << 20
"""Size of a file of the trace."""
_HEADER_BYTES = 1 << 16


class ShardRecord(Closed):
    """One file of a trace: ``count`` recorded steps."""

    file: Annotated[str, Field(pattern=r"^trace/steps-\d{5,}\.safetensors$")]
    count: Count


class TraceIndex(Closed):
    """What a trace holds; the file ``trace/trace.json``."""

    model_config = ConfigDict(populate_by_name=True)
    schema_: Literal["reticent.trace/1"] = Field(default="reticent.trace/1", alias="schema")
    every: Count
    num_parameters: Count
    dataset_size: Count
    masks: bool
    shards: tuple[ShardRecord, ...]

    def largest_shard(self, count: int) -> int:
        """Bytes that a shard of ``count`` steps may have."""
        row = 8 * self.num_parameters + 8 + (-(-self.dataset_size // 8) if self.masks else 0)
        return count * row + _HEADER_BYTES


@dataclass(frozen=True)
class TraceShard:
    """Consecutive recorded steps.

    Attributes:
        steps: step numbers, int64, shape (k,).
        weights: weights at which the gradients of each step were computed, float32, shape (k, d), in
            the order of ``model.parameters()``.
        gradients: what each step released: (sum of clipped gradients + noise) / divisor, shape (k, d).
        masks: which training records each step used, bool, shape (k, N), or None if not recorded.
    """

    steps: np.ndarray
    weights: torch.Tensor
    gradients: torch.Tensor
    masks: np.ndarray | None


class TraceRecorder(StepHook):
    """The hook that writes ``trace/`` into a run directory."""

    def __init__(self, config: TraceConfig) -> None:
        self._config = config
        self._rows: list[tuple[int, torch.Tensor, torch.Tensor, np.ndarray | None]] = []
        self._before: torch.Tensor | None = None
        self._shards: list[ShardRecord] = []

    def start(self, context: RunContext) -> None:
        """Make the folder.

        Raises:
            ArtifactError: the run has no folder.
        """
        if context.directory is None:
            raise ArtifactError("a trace needs a run directory")
        self._directory, self._context = context.directory, context
        (self._directory / FOLDER).mkdir()
        self._size = trained_parameters(context.model)
        self._rows_per_shard = max(1, SHARD_BYTES // (8 * self._size))

    def before_step(self, step: Step) -> None:
        if step.index % self._config.every == 0:
            self._before = flat([p for p in self._context.model.parameters() if p.requires_grad]).cpu()

    def after_step(self, step: Step, update: Update) -> None:
        if self._before is None:
            return
        self._rows.append((step.index, self._before, update.gradient.cpu(), self._mask(step.indices)))
        self._before = None
        if len(self._rows) == self._rows_per_shard:
            self._flush()

    def finish(self) -> None:
        self._flush()
        index = TraceIndex(
            every=self._config.every,
            num_parameters=self._size,
            dataset_size=len(self._context.train_features),
            masks=self._config.masks,
            shards=tuple(self._shards),
        )
        text = strict.dumps(index.model_dump(mode="json", by_alias=True))
        (self._directory / INDEX).write_text(text, encoding="utf-8")

    def _mask(self, indices: np.ndarray) -> np.ndarray | None:
        if not self._config.masks:
            return None
        bits = np.zeros(len(self._context.train_features), dtype=bool)
        bits[indices] = True
        return np.packbits(bits)

    def _flush(self) -> None:
        if not self._rows:
            return
        steps, weights, gradients, masks = zip(*self._rows, strict=True)
        tensors = {
            "steps": torch.tensor(steps, dtype=torch.int64),
            "weights": torch.stack(weights),
            "gradients": torch.stack(gradients),
        }
        if self._config.masks:
            tensors["masks"] = torch.from_numpy(np.stack(masks))
        name = f"{FOLDER}/steps-{len(self._shards):05d}.safetensors"
        (self._directory / name).write_bytes(save_tensors(tensors))
        self._shards.append(ShardRecord(file=name, count=len(self._rows)))
        self._rows = []


class Trace:
    """A recorded run, read shard by shard by ``read``, which takes the name of a file and the most bytes it may have.

    Iterating yields ``TraceShard`` objects in the order of training; each file's checksum is compared
    when it is read.

    Raises:
        ArtifactError: on reading, where a shard is missing, corrupt or not what the index says.
    """

    def __init__(self, index: TraceIndex, read: Callable[[str, int], bytes]) -> None:
        self.index, self._read = index, read

    def __len__(self) -> int:
        """Number of recorded steps."""
        return sum(shard.count for shard in self.index.shards)

    def __iter__(self) -> Iterator[TraceShard]:
        d, n = self.index.num_parameters, self.index.dataset_size
        for shard in self.index.shards:
            k, masks = shard.count, None
            expected = {"steps": ((k,), "int64"), "weights": ((k, d), "float32"), "gradients": ((k, d), "float32")}
            if self.index.masks:
                expected["masks"] = ((k, -(-n // 8)), "uint8")
            found = parse_tensors(self._read(shard.file, self.index.largest_shard(k)), shard.file, expected)
            if self.index.masks:
                masks = np.unpackbits(found["masks"], axis=1, count=n).astype(bool)
            weights, gradients = (torch.from_numpy(found[name]) for name in ("weights", "gradients"))
            yield TraceShard(found["steps"], weights, gradients, masks)
