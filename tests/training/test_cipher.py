"""Normal numbers from a stream cipher: vectors of RFC 8439, one stream for all ways, the normal law."""

from __future__ import annotations

import itertools
import math
import os
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.kernel.errors import ParameterError
from reticent.training import normals
from reticent.training.cipher import BLOCKS, Key, Stream, stream_by_torch
from reticent.training.normals import by_torch, normal, on_processor, way
from tests.devices import DEVICES, ON_GPU

CPU = torch.device("cpu")
RARE = 1e-9
"""How often each test of the law fails where the law holds."""
CALL = 1_200_001
"""Numbers of one call: several pieces, of which the last is no whole one."""

SECRET = bytes(range(32))
BLOCK = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
"""RFC 8439, 2.3.2: block 1."""
PLAIN = (
    b"Ladies and Gentlemen of the class of '99: "
    b"If I could offer you only one tip for the future, sunscreen would be it."
)
ENCRYPTED = bytes.fromhex(
    "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b357"
    "1639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
    "5af90bbf74a35be6b40b8eedf2785e42874d"
)
"""RFC 8439, 2.4.2: blocks 1 and 2."""
VECTORS = [("000000090000004a00000000", BLOCK), ("000000000000004a00000000", bytes(map(int.__xor__, PLAIN, ENCRYPTED)))]


def of_processor(key: Key, first: int, blocks: int) -> np.ndarray:
    return Stream(key, first).read(np.empty(8 * blocks, dtype="<u8"))


def of_torch(key: Key, first: int, blocks: int, device: torch.device = CPU) -> np.ndarray:
    return stream_by_torch(key, first, blocks, device).cpu().numpy().view("<u8")


def of_gpu(key: Key, first: int, blocks: int) -> np.ndarray:
    return of_torch(key, first, blocks, torch.device("cuda"))


@pytest.mark.parametrize("words", [of_processor, of_torch, pytest.param(of_gpu, marks=ON_GPU)])
def test_vectors_of_the_standard(words):
    for nonce, expected in VECTORS:
        blocks = -(-len(expected) // 64)
        assert words(Key(SECRET, bytes.fromhex(nonce)), 1, blocks).tobytes()[: len(expected)] == expected


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("device", DEVICES)
def test_triton_makes_the_same(device):
    """Its kernels are interpreted where there is no GPU."""
    command = [sys.executable, Path(__file__).with_name("of_triton.py"), device.type]
    environment = {**os.environ, "TRITON_INTERPRET": "01"[device == CPU]}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for line, (_, expected) in zip(ran.stdout.split(), VECTORS, strict=True):
        assert bytes.fromhex(line)[: len(expected)] == expected


def test_equal_keys_give_equal_bits():
    key = Key()
    for first in (0, 77, BLOCKS - 5):
        assert np.array_equal(of_processor(key, first, 5), of_torch(key, first, 5))
    assert not np.array_equal(of_processor(key, 0, 5), of_processor(Key(), 0, 5))
    assert not np.array_equal(of_processor(key, 0, 5), of_processor(Key(key.secret), 0, 5))


@pytest.mark.parametrize("words", [of_processor, of_torch])
def test_a_counter_does_not_come_back(words):
    with pytest.raises(ParameterError, match=r"blocks must be 2\^32 or fewer"):
        words(Key(), BLOCKS - 1, 2)


def test_no_word_is_left_as_it_was():
    """Of more words than there are zeros to encrypt."""
    with pytest.raises(ParameterError, match="words must be 65536 or fewer"):
        of_processor(Key(), 0, 8193)


def test_more_numbers_than_a_counter_reaches_have_several_keys(monkeypatch):
    keys = []
    monkeypatch.setattr(normals, "BLOCKS", 4)
    monkeypatch.setattr(normals, "Key", lambda: keys.append(Key()) or keys[-1])
    drawn = normal((5, 13), 1.0, torch.float64, CPU)
    assert len({key.secret for key in keys}) == len({key.nonce for key in keys}) == 3
    assert len(drawn.unique()) == 65


def naive(key: Key, count: int, deviation: float) -> list[float]:
    """Box and Muller, number by number."""
    whole = [word >> 11 for word in struct.unpack(f"<{count}Q", of_processor(key, 0, count // 8).tobytes())]
    found = []
    for first, second in zip(whole[::2], whole[1::2], strict=True):
        radius = deviation * math.sqrt(-2.0 * math.log((first + 1) / 2**53))
        found += [radius * f(2.0 * math.pi * second / 2**53) for f in (math.cos, math.sin)]
    return found


@pytest.mark.parametrize("fill", [on_processor, by_torch])
def test_pairs_are_those_of_box_and_muller(fill, monkeypatch):
    monkeypatch.setattr(normals, "BATCH", 64)
    key, drawn = Key(), torch.empty(800, dtype=torch.float64)
    fill(drawn, key, 1.7)
    assert torch.allclose(drawn, torch.tensor(naive(key, 800, 1.7), dtype=torch.float64), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads):
    """The last piece is no whole one."""
    before = torch.get_num_threads()
    key, (one, other) = Key(), torch.empty(2, 1_100_002, dtype=torch.float64)
    torch.set_num_threads(threads)
    try:
        on_processor(one, key, 1.0)
    finally:
        torch.set_num_threads(before)
    by_torch(other, key, 1.0)
    assert torch.allclose(one, other, rtol=0.0, atol=1e-14)


def test_numbers_are_rounded_once():
    key = Key()
    exact, rounded = torch.empty(1000, dtype=torch.float64), torch.empty(1000)
    on_processor(exact, key, 1.0)
    on_processor(rounded, key, 1.0)
    assert torch.equal(exact.float(), rounded)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 3)])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_shapes_and_kinds(shape, kind):
    drawn = normal(shape, 0.0, kind, CPU)
    assert (drawn.shape, drawn.dtype, bool((drawn == 0.0).all())) == (shape, kind, True)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_a_gpu_makes_what_a_processor_makes(device):
    """By Triton, where it is, and by torch: to rounding."""
    key, (one, other, third) = Key(), torch.empty(3, 9_000_002, dtype=torch.float64)
    on_processor(one, key, 1.0)
    for there in (other, third):
        found = there.to(device)
        (way("cuda") if there is other else by_torch)(found, key, 1.0)
        assert torch.allclose(found.cpu(), one, rtol=0.0, atol=1e-13)


@pytest.fixture(scope="module", params=DEVICES)
def numbers(request) -> np.ndarray:
    """Two calls: they share nothing."""
    kept = [normal((CALL,), 3.0, torch.float64, request.param) for _ in range(2)]
    return torch.cat(kept).cpu().numpy() / 3.0


def test_moments(numbers):
    """Of a normal number: 0, 1, 0, 3, 0, 15, each within what its variance allows."""
    far, power = stats.norm.isf(RARE / 12), np.ones_like(numbers)
    double = [1.0, 1.0, 3.0, 15.0, 105.0, 945.0, 10_395.0]
    for order in range(1, 7):
        power *= numbers
        mean = 0.0 if order % 2 else double[order // 2]
        assert abs(power.mean() - mean) < far * math.sqrt((double[order] - mean**2) / len(numbers))


def test_tails(numbers):
    """Beyond 1 to 5 standard deviations on each side."""
    for far, side in itertools.product(range(1, 6), (numbers, -numbers)):
        beyond = int((side > far).sum())
        assert stats.binomtest(beyond, len(numbers), stats.norm.sf(far)).pvalue > RARE / 10


def test_neighbours_are_independent(numbers):
    """No correlation of numbers or of squares, and tables of quarters of pairs that do not overlap."""
    lags, size = (1, 2, 3, 7, 8, 9, 1 << 15, 1 << 16, CALL), len(numbers)
    rare = RARE / (4 * len(lags))
    quarter = np.searchsorted(stats.norm.ppf([0.25, 0.5, 0.75]), numbers)
    for lag in lags:
        one, other = numbers[lag:], numbers[:-lag]
        far = stats.norm.isf(rare / 2) / math.sqrt(size - lag)
        assert abs(np.mean(one * other)) < far
        assert abs(np.mean((one**2 - 1.0) * (other**2 - 1.0))) < 2.0 * far
        for start in (0, 1) if lag == 1 else (0,):  # the two of a pair, and others
            rows = (size - start) // (2 * lag)
            pairs = quarter[start : start + 2 * lag * rows].reshape(rows, 2, lag)
            table = np.bincount((4 * pairs[:, 0] + pairs[:, 1]).ravel(), minlength=16)
            assert stats.chisquare(table).pvalue > rare
