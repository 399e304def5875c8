"""Who computes what is shared out, as a file or a command line says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.errors import ParameterError
from reticent.text import one_of
from reticent.verbs.request import leave_out

if TYPE_CHECKING:
    from reticent.tasks import Engine

ENGINES = ("local", "dask", "ray")


def engine_of(name: str, address: str | None, workers: int) -> Engine:
    """The engine of this name.

    Raises:
        ParameterError: there is none, or its address is missing or of no use to it.
    """
    from reticent.tasks import Dask, Local, Ray

    if name not in ENGINES:
        raise ParameterError("engine", name, one_of(name, ENGINES))
    if name == "local":
        leave_out({"address": address}, " for --engine local")
        return Local(workers)
    if name == "ray":
        return Ray(address)
    if address is None:
        raise ParameterError("address", address, "the scheduler's tcp://host:port for --engine dask")
    return Dask(address)
