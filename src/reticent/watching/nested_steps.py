"""Steps within steps: an optimizer of the program whose ``step`` goes on in that of its base class.

torch calls the hooks of the optimizer in both, where it has made an optimizer of the base class before.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

_FILE = torch.optim.Optimizer.profile_hook_step.__code__.co_filename


def nests(optimizer: Any) -> bool:
    """Whether more than one class of this optimizer has a ``step``."""
    return sum("step" in vars(kind) for kind in type(optimizer).__mro__ if kind is not torch.optim.Optimizer) > 1


def is_nested(optimizer: Any) -> bool:
    """Whether a step of this optimizer is being taken inside another one of the same, as a hook sees it."""
    frame, steps = sys._getframe(1), 0
    while frame is not None and steps < 2:
        code = frame.f_code
        if code.co_filename == _FILE and code.co_name == "wrapper":
            steps += frame.f_locals.get("self") is optimizer
        frame = frame.f_back  # type: ignore[assignment]
    return steps > 1
