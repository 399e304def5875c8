"""Start weights that do not depend on records: drawn anew."""

from __future__ import annotations

from typing import Any

import torch

from reticent.kernel.errors import UnsupportedError
from reticent.watching.detectors.start import drawn_anew
from reticent.watching.models import bare


def fresh(model: Any) -> Any:
    """Draw all weights of ``model`` anew, each layer by its own ``reset_parameters``; a watch then knows that they are.

    Call it before training and before ``make_private``.

    Returns:
        The model.

    Raises:
        UnsupportedError: a parameter or buffer belongs to a layer that cannot draw it anew.
    """
    for name, layer in bare(model).named_modules():
        own = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
        reset = getattr(layer, "reset_parameters", None)
        if own and not callable(reset):
            raise UnsupportedError(
                f"{name or 'the model'} ({type(layer).__name__}) has weights and no reset_parameters"
            )
        if own and callable(reset):
            with torch.no_grad():
                for tensor in own:
                    tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor.zero_()
            reset()
    if any(bool(p.isnan().any()) for p in bare(model).parameters()):
        raise UnsupportedError("reset_parameters of a layer does not change its weights")
    drawn_anew(model)
    return model
