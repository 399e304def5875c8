"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable

from reticent.data.adult import load_adult
from reticent.data.bundled import load_breast_cancer, load_digits
from reticent.data.cifar10 import load_cifar10
from reticent.data.dataset import Dataset
from reticent.data.location import load_location30
from reticent.data.purchase import generate_baskets, load_purchase100
from reticent.kernel.errors import ParameterError
from reticent.kernel.text import one_of

_LOADERS: dict[str, Callable[[], Dataset]] = {
    "adult": load_adult,
    "breast-cancer": load_breast_cancer,
    "cifar-10": load_cifar10,
    "digits": load_digits,
    "generated-baskets": generate_baskets,
    "location-30": load_location30,
    "purchase-100": load_purchase100,
}
NAMES = tuple(_LOADERS)


def load(name: str) -> Dataset:
    """The data set called ``name``, with its default split.

    Raises:
        ParameterError: there is no such data set.
        DataError: its file is missing or corrupt.
    """
    if name not in _LOADERS:
        raise ParameterError("data.name", name, one_of(name, NAMES))
    return _LOADERS[name]()
