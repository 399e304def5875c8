"""The sensitivity recorder on somebody else's loop of Opacus: what the model saw, measured before each noisy step.

Features are those that the model's forward pass was given; labels are those that the loader handed out with them;
positions are those that the sampler drew. What does not fit together spoils the record: it is then refused, with the
reason, and never guessed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import distributed, nn

from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.mechanisms.sensitivity import SensitivityRecord
from reticent.sensitivity import SensitiveAttribute
from reticent.sensitivity.brute import borrowed, cross_entropy, gradients
from reticent.sensitivity.recorder import AttributeRecorder
from reticent.watching import models, optimisers
from reticent.watching.detectors.base import Detector, Fields, Loop, Undos
from reticent.watching.detectors.draws import Drawing, Draws
from reticent.watching.detectors.moves import Moves
from reticent.watching.events import batches_of
from reticent.watching.sensitive import Sensitive

_KEPT = 64
"""Batches of the loader that may wait for their forward pass."""
_CHECKED_FIRST, _CHECKED_LATER = 3, 0.02
_RELATIVE, _ABSOLUTE = 2e-3, 1e-5


@dataclass(frozen=True)
class _Batch:
    """One batch as the loader handed it out; positions where the sampler was seen to draw them."""

    features: torch.Tensor
    labels: torch.Tensor
    positions: np.ndarray | None


class SensitiveWatch(Detector):
    """How far one attribute of the records moves their gradients, where the program asks for it.

    Follows one loop and feeds an ``AttributeRecorder``.

    Kind: form and size of gradients.

    Seen: features as the model reads them, labels and positions as the loader hands them out
    ([above](#how-far-one-attribute-moves-the-gradients)).
    """

    @classmethod
    def fits(cls, loop: Loop) -> bool:
        """Where the program asks for it."""
        return loop.said.sensitive is not None

    def __init__(self, loop: Loop) -> None:
        """Prepare; nothing is observed before ``attach``.

        Raises:
            ParameterError: what the program wants is of another type.
            UnsupportedError: labels or gradients of this loop cannot be seen, or its clipping is not flat.
        """
        super().__init__(loop)
        wanted, model, optimizer, loader = loop.said.sensitive, loop.model, loop.optimizer, loop.loader
        if isinstance(wanted, SensitiveAttribute):
            wanted = Sensitive(wanted)
        if not isinstance(wanted, Sensitive):
            raise ParameterError(
                "sensitive", type(wanted).__name__, "a SensitiveAttribute, or watch.sensitive.Sensitive"
            )
        if not optimisers.is_private(optimizer):
            raise UnsupportedError(
                "sensitive needs a loop of Opacus; other loops call reticent.sensitivity.AttributeRecorder"
            )
        kind = optimisers.clipping_of(optimizer)
        if kind != "flat":
            raise UnsupportedError(f"sensitive needs flat clipping, and this optimizer clips {kind}")
        if not hasattr(loader, "collate_fn") or getattr(loader, "num_workers", None) != 0:
            raise UnsupportedError("sensitive reads labels from the loader: give a DataLoader with num_workers=0")
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            raise UnsupportedError("sensitive works in one process, and several train together")
        self._wanted = wanted
        self._bare = models.bare(model)
        self._loss = wanted.loss or cross_entropy
        self._waiting: deque[_Batch] = deque(maxlen=_KEPT)
        self._seen: list[torch.Tensor] = []
        self._pieces: list[_Batch] = []
        self._recorder: AttributeRecorder | None = None
        self._settings: tuple[float, float] | None = None
        self._rng = np.random.default_rng(0)
        self.refused: str | None = None
        """Why nothing is answered, once something did not fit."""

    def attach(self) -> Undos:
        """Follow features and labels."""
        draws = self._loop.of(Drawing).draws
        draws.keep_positions()

        def saw(module: nn.Module, inputs: Any) -> None:
            if module.training and torch.is_grad_enabled() and inputs and isinstance(inputs[0], torch.Tensor):
                self._seen.append(inputs[0])

        yield self._model.register_forward_pre_hook(self.hook(saw)).remove
        yield batches_of(self._loop.loader, lambda batch: self._try(lambda: self._remember(batch, draws)))

    def on_clip(self, size: int | None, batches: int) -> None:
        """Find the features and labels of these records."""
        seen, self._seen = self._seen, []
        self._measuring(lambda: self._match(seen, size))

    def recorded(self, noise: float, norm: float, differ: bool, batches: int) -> None:
        """Noise is about to be added to what was clipped since the last step: measure at the weights of now."""
        pieces, self._pieces = self._pieces, []
        self._measuring(lambda: self._measure(pieces, noise, norm, differ, batches))

    def record(self) -> SensitivityRecord:
        """What was recorded.

        Raises:
            UnsupportedError: something did not fit together; the text says what.
        """
        if self.refused is not None:
            raise UnsupportedError(f"sensitive: {self.refused}")
        if self._recorder is None:
            raise UnsupportedError("sensitive: no step was measured")
        return self._recorder.record()

    def diagnostics(self) -> Fields:
        """What was recorded, where it is whole and finite."""
        try:
            found = self.record()
        except UnsupportedError:
            return {}
        return {"sensitivity": found} if math.isfinite(found.mask_term) else {}

    def _try(self, what: Callable[[], None]) -> None:
        """Training goes on whatever happens here; the record does not."""
        try:
            if self.refused is None:
                what()
        except Exception as error:
            self.refused = " ".join(str(error).split()) or type(error).__name__
            self._waiting.clear()

    def _measuring(self, what: Callable[[], None]) -> None:
        """Weights that are borrowed meanwhile are not weights that somebody wrote."""
        self._loop.of(Moves).borrowed(lambda: self._try(what))

    def _remember(self, batch: Any, draws: Draws) -> None:
        pair = batch[:2] if isinstance(batch, (list, tuple)) and len(batch) >= 2 else ()
        if len(pair) != 2 or not all(isinstance(part, torch.Tensor) for part in pair):
            self.refused = "the loader's batches do not begin with a tensor of features and a tensor of labels"
            return
        features, labels = pair
        self._waiting.append(_Batch(features, labels, draws.next_positions(len(features))))

    def _match(self, seen: list[torch.Tensor], size: int | None) -> None:
        if size is None or sum(map(len, seen)) != size:
            got = sum(map(len, seen))
            raise UnsupportedError(f"{got} records went through the model, and gradients of {size} were clipped")
        found = [self._handed_out(features) for features in seen]
        if self._due():
            self._compare(found)
        self._pieces += found

    def _handed_out(self, features: torch.Tensor) -> _Batch:
        """The loader's batch whose features went through the model; older ones were never used."""
        for index, batch in enumerate(self._waiting):
            if _same(batch.features, features):
                for _ in range(index + 1):
                    self._waiting.popleft()
                labels = batch.labels.to(features.device)
                return _Batch(features.detach(), labels, batch.positions)
        raise UnsupportedError(
            "the model was given other features than the loader handed out (augmentation, or a batch made in the loop)"
        )

    def _due(self) -> bool:
        steps = 0 if self._recorder is None else self._recorder.steps
        return steps < _CHECKED_FIRST or self._rng.random() < _CHECKED_LATER

    def _compare(self, pieces: list[_Batch]) -> None:
        """The gradient of one record by the stated loss, against what the loop is about to clip."""
        first = 0
        for piece in pieces:
            if len(piece.labels):
                k = int(self._rng.integers(len(piece.labels)))
                with borrowed(self._bare, None):
                    _, rows = gradients(self._bare, self._loss, piece.features[k : k + 1], piece.labels[k : k + 1])
                if not self._agrees(rows[0], first + k):
                    raise UnsupportedError(
                        "the gradient of a record is not that of the stated loss (cross-entropy where none is given)"
                    )
            first += len(piece.labels)

    def _agrees(self, own: torch.Tensor, row: int) -> bool:
        trained = [p for p in self._bare.parameters() if p.requires_grad]
        if optimisers.is_ghost(self._optimizer):
            squares = [float(p._norm_sample[row]) ** 2 for p in trained]  # type: ignore[attr-defined]
            norm = float(own.norm())
            return bool(abs(sum(squares) ** 0.5 - norm) <= _RELATIVE * norm + _ABSOLUTE)
        parts = []
        for p in trained:
            found = p.grad_sample  # type: ignore[attr-defined]
            whole = torch.cat(found) if isinstance(found, list) else found
            parts.append(whole[row].flatten())
        gap = float((torch.cat(parts) - own).norm())
        return gap <= _RELATIVE * float(own.norm()) + _ABSOLUTE

    def _measure(self, pieces: list[_Batch], noise: float, norm: float, differ: bool, batches: int) -> None:
        if differ:
            raise UnsupportedError("gradients were clipped to a norm that is not that of the noise")
        if batches > 1:
            raise UnsupportedError("several batches were added up in one step, and a record may be in more than one")
        if self._settings is None:
            self._settings = noise, norm
            self._recorder = AttributeRecorder(
                self._bare,
                self._wanted.attribute,
                noise_multiplier=noise,
                max_grad_norm=norm,
                audit=self._wanted.audit,
                loss=self._wanted.loss,
                precision=self._wanted.precision,
                every=self._wanted.every,
            )
        if self._settings != (noise, norm) or self._recorder is None:
            raise UnsupportedError("noise or clip norm changed along the run: the record is for equal steps")
        filled = [piece for piece in pieces if len(piece.labels)]
        if not filled:
            shape = tuple(pieces[0].features.shape[1:]) if pieces else (1,)
            self._recorder.observe(torch.zeros((0, *shape)), torch.zeros(0, dtype=torch.long), np.zeros(0, dtype=int))
            return
        features = torch.cat([piece.features for piece in filled])
        labels = torch.cat([piece.labels for piece in filled])
        known = [piece.positions for piece in filled]
        at = np.concatenate([p for p in known if p is not None]) if all(p is not None for p in known) else None
        self._recorder.observe(features, labels, at)


def _same(handed_out: torch.Tensor, used: torch.Tensor) -> bool:
    if handed_out is used:
        return True
    if len(handed_out) != len(used) or handed_out.numel() != used.numel():
        return False
    return torch.equal(handed_out.flatten(), used.detach().to(handed_out.device, handed_out.dtype).flatten())
