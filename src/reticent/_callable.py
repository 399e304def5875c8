"""Packages that share their name with a verb of the front door: ``rt.calibrate(...)`` and ``reticent.calibrate.Mu``."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module("reticent.api"), name)(*args, **kwargs)


def make_callable(package: str) -> None:
    """Calling the package ``reticent.NAME`` calls ``reticent.api.NAME``; as a package it stays what it was."""
    sys.modules[package].__class__ = _Verb
