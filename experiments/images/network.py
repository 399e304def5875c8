"""ResNet-9 and the clipped sum of its per-record gradients, written for a GPU; needs torch alone.

The network is that of ``reticent.training.resnet``. One backward pass gives the gradients at the outputs of the layers;
of a convolution on many places the gradient of each record is formed, on few places its length comes from two Gram
matrices (Li et al. 2022, "Large language models can be strong differentially private learners", section 4). In half
precision a clipped gradient is right to .4% of the clip norm; nothing is released here.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

GROUPS = 16
FEW = 64
"""Places up to which the length comes from Gram matrices."""


def shapes(width: int, classes: int = 10) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters by name: filters, scale and shift of eight blocks, and one linear layer."""
    w = width
    channels = [(3, w), (w, 2 * w), (2 * w, 2 * w), (2 * w, 2 * w), (2 * w, 4 * w), (4 * w, 4 * w)]
    channels += [(4 * w, 4 * w), (4 * w, 4 * w)]
    found: dict[str, tuple[int, ...]] = {}
    for i, (inputs, outputs) in enumerate(channels):
        found |= {f"filter {i}": (outputs, inputs, 3, 3), f"scale {i}": (outputs,), f"shift {i}": (outputs,)}
    return found | {"weight": (classes, 4 * w), "bias": (classes,)}


def initial(width: int, generator: torch.Generator, device: str) -> dict[str, Tensor]:
    """The start of torch's own layers: uniform up to one over the root of the number of inputs."""
    found = {}
    for name, shape in shapes(width).items():
        if name.startswith(("scale", "shift")):
            found[name] = torch.full(shape, float(name.startswith("scale")), device=device)
        else:
            inputs = 4 * width if name == "bias" else torch.Size(shape[1:]).numel()
            found[name] = (torch.rand(shape, generator=generator, device=device) * 2 - 1) / inputs**0.5
    return found


class Tape:
    """What a forward pass keeps: of each layer its name, its input and its output."""

    def __init__(self, parameters: dict[str, Tensor], dtype: torch.dtype, *, record: bool) -> None:
        self.weights = {name: p.to(dtype) if p.ndim == 4 else p for name, p in parameters.items()}
        self.dtype, self.record = dtype, record
        self.layers: list[tuple[str, Tensor, Tensor]] = []

    def block(self, i: int, x: Tensor, *, pool: bool = False) -> Tensor:
        """Convolution, group normalisation, ReLU and perhaps pooling."""
        z = F.conv2d(x, self.weights[f"filter {i}"], padding=1)
        self._keep(f"filter {i}", x, z)
        normal = F.group_norm(z, GROUPS)
        scale, shift = (self.weights[f"{kind} {i}"].to(self.dtype)[:, None, None] for kind in ("scale", "shift"))
        y = normal * scale + shift
        self._keep(f"affine {i}", normal, y)
        return F.max_pool2d(F.relu(y), 2) if pool else F.relu(y)

    def logits(self, images: Tensor) -> Tensor:
        """Shape (records, classes), float32."""
        x = self.block(1, self.block(0, images.to(self.dtype)), pool=True)
        x = x + self.block(3, self.block(2, x))
        x = self.block(5, self.block(4, x, pool=True), pool=True)
        x = (x + self.block(7, self.block(6, x))).amax(dim=(2, 3)).float()
        found = F.linear(x, self.weights["weight"], self.weights["bias"])
        self._keep("linear", x, found)
        return found

    def _keep(self, name: str, x: Tensor, y: Tensor) -> None:
        if self.record:
            if not y.requires_grad:
                y.requires_grad_()
            self.layers.append((name, x.detach(), y))


def patches(x: Tensor) -> Tensor:
    """Neighbourhoods 3 x 3 with a border of zeros: (records, channels * 9, places)."""
    padded, (records, channels, height, width) = F.pad(x, (1, 1, 1, 1)), x.shape
    views = padded.unfold(2, height, 1).unfold(3, width, 1)  # (records, channels, 3, 3, height, width)
    return views.reshape(records, channels * 9, height * width)


def clipped_sum(
    parameters: dict[str, Tensor], images: Tensor, labels: Tensor, real: Tensor, clip: float, dtype: torch.dtype
) -> tuple[dict[str, Tensor], Tensor]:
    """Sum over the records of their clipped gradients, and the length of each before clipping.

    Args:
        parameters: float32, without gradients.
        images, labels: of the batch, filled up to its fixed size.
        real: 1 for a record, 0 for filling.
        clip: largest length of a record's gradient in the sum.
        dtype: of the convolutions.
    """
    tape = Tape(parameters, dtype, record=True)
    loss = F.cross_entropy(tape.logits(images), labels, reduction="sum")
    gradients = torch.autograd.grad(loss, [y for _, _, y in tape.layers])
    with torch.no_grad():
        squares = torch.zeros(len(images), device=images.device)
        rows: dict[str, Tensor] = {}
        later: dict[str, tuple[Tensor, Tensor]] = {}
        for (name, x, _), g in zip(tape.layers, gradients, strict=True):
            kind, _, i = name.partition(" ")
            if kind == "linear":
                squares += (x.square().sum(1) + 1) * g.square().sum(1)
                later["weight"] = (x, g)
            elif kind == "affine":
                rows[f"scale {i}"] = (g.float() * x.float()).sum((2, 3))
                rows[f"shift {i}"] = g.float().sum((2, 3))
                squares += rows[f"scale {i}"].square().sum(1) + rows[f"shift {i}"].square().sum(1)
            else:
                around, back = patches(x), g.flatten(2)
                if back.shape[2] <= FEW:
                    left, right = around.transpose(1, 2) @ around, back.transpose(1, 2) @ back
                    squares += (left.float() * right.float()).sum((1, 2))
                    later[name] = (x, g)
                else:
                    rows[name] = (back @ around.transpose(1, 2)).flatten(1)
                    squares += torch.linalg.vector_norm(rows[name], dim=1, dtype=torch.float32).square()
        lengths = squares.clamp(min=0).sqrt()
        factors = real * (clip / lengths.clamp(min=clip))
        found = {name: _weighted(row, factors) for name, row in rows.items()}
        for name, (x, g) in later.items():
            if name == "weight":
                g = g * factors[:, None]
                found |= {"weight": g.T @ x, "bias": g.sum(0)}
            else:
                scaled = g * factors.to(g.dtype)[:, None, None, None]
                found[name] = torch.nn.grad.conv2d_weight(x, parameters[name].shape, scaled, padding=1).float()
        return {name: found[name].view(p.shape) for name, p in parameters.items()}, lengths


def _weighted(rows: Tensor, factors: Tensor) -> Tensor:
    return (factors.to(rows.dtype)[None] @ rows).float()


@torch.no_grad()
def accuracy(parameters: dict[str, Tensor], images: Tensor, labels: Tensor, dtype: torch.dtype) -> float:
    """Share of the images that are named right."""
    right = 0
    for some, names in zip(images.split(2000), labels.split(2000), strict=True):
        right += int((Tape(parameters, dtype, record=False).logits(some).argmax(1) == names).sum())
    return right / len(labels)
