"""Tests that need a GPU: run by ``make gpu``, skipped elsewhere."""

from __future__ import annotations

import pytest
import torch

ON_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no device of CUDA"),
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION"),
]
DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda"), marks=ON_GPU)]
