"""How the gradient of one layer is kept: as factors, or explicitly where that is smaller."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import group_norm, layer_norm, pad

from reticent.sensitivity.gram import (
    Measured,
    linear_gram,
    row_squares,
    squared_distances,
    squares_to_mean,
)


def measured(parts: list[Factors], scale: torch.Tensor, norms: torch.Tensor, *, pairs: bool) -> Measured:
    """Distances from the parts of all gradients, which may be overwritten; of all pairs, or to the mean.

    Args:
        scale: what clips, (records, n), of ``clip_factors``, as ``norms`` is.
    """
    zero = norms.new_zeros(())
    if pairs:
        return Measured(squared_distances(sum((part.centred_gram(scale) for part in parts), zero)), norms)
    return Measured(sum((part.squares_to_mean(scale) for part in parts), zero).clamp_(min=0.0), norms)


def is_factored(module: nn.Module) -> bool:
    """Whether ``factors_of`` knows this type of layer and its settings."""
    if "forward" in module.__dict__:
        return False
    if type(module) in (nn.Linear, nn.LayerNorm, nn.GroupNorm):
        return True
    if isinstance(module, (nn.Conv1d, nn.Conv2d)) and type(module) in (nn.Conv1d, nn.Conv2d):
        return module.groups == 1 and module.padding_mode == "zeros" and not isinstance(module.padding, str)
    return type(module) is nn.Embedding and module.max_norm is None and not module.scale_grad_by_freq


def factors_of(module: nn.Module, inputs: torch.Tensor, error: torch.Tensor, records: int) -> list[Factors]:
    """Factors of the parts of a layer from the inputs and output errors of all completions, in order of the records."""
    match module:
        case nn.Linear():
            if inputs.dim() == 2:
                return [VectorLinear(inputs, error, records, bias=module.bias is not None)]
            return _sequence(inputs.flatten(1, -2), error.flatten(1, -2), records, module.bias is not None)
        case nn.Conv1d() | nn.Conv2d():
            return _convolution(module, inputs, error, records)
        case nn.Embedding():
            return [_embedding(module, inputs, error, records)]
        case nn.LayerNorm():
            flat = layer_norm(inputs, module.normalized_shape, eps=module.eps)
            lead = inputs.dim() - len(module.normalized_shape)
            return [_affine(flat, error, tuple(range(1, lead)), module.bias is not None, records)]
        case nn.GroupNorm():
            flat = group_norm(inputs, module.num_groups, eps=module.eps)
            return [_affine(flat, error, tuple(range(2, inputs.dim())), True, records)]
    raise TypeError(f"no factors for {type(module).__name__}")


class VectorLinear:
    """A linear layer on one vector, e a^T, for a block of records with n completions each."""

    def __init__(self, a: torch.Tensor, e: torch.Tensor, records: int, *, bias: bool) -> None:
        self._a, self._e, self._bias = a.reshape(records, -1, a.shape[-1]), e.reshape(records, -1, e.shape[-1]), bias

    def squared_norms(self) -> torch.Tensor:
        """(records * n,), from ``|e|^2 (|a|^2 + 1)``; no gradient is formed."""
        return ((row_squares(self._a) + float(self._bias)) * row_squares(self._e)).flatten()

    def scale(self, factors: torch.Tensor) -> torch.Tensor:
        """The longest input, bias included, times the longest error, (records,).

        Args:
            factors: what clips, (records, n).
        """
        sizes, squares = row_squares(self._a) + float(self._bias), row_squares(self._e) * factors.square()
        return sizes.amax(1) * squares.amax(1)

    def centred_gram(self, scale: torch.Tensor) -> torch.Tensor:
        """Products of scaled, centred gradients, (records, n, n), from centred factors: nothing large cancels.

        Args:
            scale: what clips, (records, n).
        """
        return linear_gram(self._a, self._e * scale[:, :, None], bias=self._bias)

    def squares_to_mean(self, scale: torch.Tensor) -> torch.Tensor:
        """Squared distances of scaled gradients to their mean, (records, n), from centred factors too."""
        first = self._a[:, 0]
        size = row_squares(first)[:, None] + float(self._bias)
        return squares_to_mean(self._a - first[:, None], first, size, self._e * scale[:, :, None])

    def bytes(self) -> int:
        """Of both factors."""
        return self._a.nbytes + self._e.nbytes


class Explicit:
    """The gradient itself, (records * n, parameters), contiguous, asked as ``VectorLinear`` is.

    ``centred_gram`` and ``squares_to_mean`` overwrite it: one of them is called, once, last.
    """

    def __init__(self, g: torch.Tensor, records: int) -> None:
        self._g = g.view(records, len(g) // records, -1)

    def squared_norms(self) -> torch.Tensor:
        """From the gradient itself."""
        return row_squares(self._g).flatten()

    def scale(self, factors: torch.Tensor) -> torch.Tensor:
        """At most 1: nothing but clipped gradients is multiplied."""
        return factors.new_ones(len(factors))

    def centred_gram(self, scale: torch.Tensor) -> torch.Tensor:
        """Overwrites the gradient: memory for one copy only."""
        moves = self._moves(scale)
        return torch.bmm(moves, moves.transpose(1, 2))

    def squares_to_mean(self, scale: torch.Tensor) -> torch.Tensor:
        """Overwrites the gradient too."""
        moves = self._moves(scale)
        return row_squares(moves.sub_(moves.mean(1, keepdim=True)))

    def _moves(self, scale: torch.Tensor) -> torch.Tensor:
        """Scaled gradients less the first of each record, in place."""
        self._g *= scale[:, :, None]
        return self._g.sub_(self._g[:, :1].clone())

    def bytes(self) -> int:
        """Of the gradient."""
        return self._g.nbytes


Factors = VectorLinear | Explicit
"""Gradients of a part of one layer."""


def _sequence(a: torch.Tensor, e: torch.Tensor, records: int, bias: bool) -> list[Factors]:
    """Weight and bias of sum_t e_t a_t^T."""
    g = torch.bmm(e.mT, a)
    return [Explicit(part.flatten(1), records) for part in ((g, e.sum(1)) if bias else (g,))]


def _convolution(
    module: nn.Conv1d | nn.Conv2d, inputs: torch.Tensor, error: torch.Tensor, records: int
) -> list[Factors]:
    """A convolution is a linear layer over the sequence of its patches."""
    flat = isinstance(module, nn.Conv1d)

    def plane(setting: object, fill: int) -> tuple[int, ...]:
        numbers = tuple(int(v) for v in setting) if isinstance(setting, tuple) else (int(str(setting)),)
        return (fill, *numbers) if flat else numbers

    down, across = plane(module.padding, 0)
    x = pad(inputs[:, :, None, :] if flat else inputs, (across, across, down, down))
    patches = _patches(x, plane(module.kernel_size, 1), plane(module.stride, 1), plane(module.dilation, 1))
    errors = (error[:, :, None, :] if flat else error).permute(0, 2, 3, 1).flatten(1, 2)
    return _sequence(patches, errors, records, module.bias is not None)


def _patches(
    x: torch.Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> torch.Tensor:
    """(images, positions, channels * kernel): one strided copy, several times faster than im2col."""
    images, channels, height, width = x.shape
    x = x.contiguous()
    places = [
        (extent - d * (k - 1) - 1) // s + 1
        for extent, k, s, d in zip((height, width), kernel, stride, dilation, strict=True)
    ]
    of_image, of_channel, of_row, of_column = x.stride()
    between = of_image, of_row * stride[0], of_column * stride[1]
    within = of_channel, of_row * dilation[0], of_column * dilation[1]
    view = x.as_strided((images, *places, channels, *kernel), (*between, *within))
    return view.reshape(images, places[0] * places[1], -1)


def _embedding(module: nn.Embedding, tokens: torch.Tensor, error: torch.Tensor, records: int) -> Factors:
    """Rows of the table that a record touches, per record; padding rows have no gradient."""
    tokens, error = tokens.reshape(len(tokens), -1), error.reshape(len(tokens), -1, error.shape[-1])
    if module.padding_idx is not None:
        error = error * (tokens != module.padding_idx)[:, :, None]
    n, width = len(tokens) // records, error.shape[2]
    blocks = []
    for r in range(records):
        used, index = torch.unique(tokens[r * n : (r + 1) * n], return_inverse=True)
        g = error.new_zeros(n, len(used), width)
        g.scatter_add_(1, index[:, :, None].expand(-1, -1, width), error[r * n : (r + 1) * n])
        blocks.append(g.flatten(1))
    return Explicit(
        nn.utils.rnn.pad_sequence([b.T for b in blocks], batch_first=True).transpose(1, 2).flatten(0, 1), records
    )


def _affine(normal: torch.Tensor, error: torch.Tensor, over: tuple[int, ...], bias: bool, records: int) -> Factors:
    weight = normal * error
    parts = [weight.sum(over) if over else weight]
    if bias:
        parts.append(error.sum(over) if over else error)
    return Explicit(torch.cat([p.flatten(1) for p in parts], dim=1), records)
