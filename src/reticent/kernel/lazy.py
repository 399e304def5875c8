"""Names of a package that are loaded when they are first used. The one list of them is the package's stub file.

A line ``from MODULE import NAME as NAME`` of ``__init__.pyi`` says where a name is read from; type checkers read the
same lines. Lines after ``# kinds`` are those of a registry, in the order in which people see them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def attached(
    package: str, *more: str, around: Callable[[str], AbstractContextManager[None]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of ``package``.

    Args:
        package: which calls this while it is imported.
        more: names that it defines itself.
        around: of a name that is read, where some need torch. Without torch those are not listed: whoever lists names
            reads them as well, as pydoc does.
    """
    module, where = sys.modules[package], _where(package)
    names = sorted([*where, *more])

    def read(name: str) -> Any:
        if name not in where:
            from reticent.kernel.text import did_you_mean

            hint = "" if name.startswith("_") else did_you_mean(name, names)  # programs ask for those
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        with around(name) if around else nullcontext():
            found = getattr(import_module(where[name]), name)
        setattr(module, name, found)
        return found

    def can_be_read(name: str) -> bool:
        with suppress(ImportError):
            return hasattr(module, name)
        return False

    def listed() -> list[str]:
        with suppress(ImportError):
            if around is None or find_spec("torch"):
                return list(names)
        return list(filter(can_be_read, names))

    return read, listed, names


def kinds(package: str, file: str = "") -> Iterator[Any]:
    """The built-in kinds of a registry, by the stub file of their package; with ``file``, those at home in one."""
    import_module(package)
    listed = _where(package, "# kinds").items()
    return (getattr(import_module(source), name) for name, source in listed if file in ("", *source.split(".")))


def _where(package: str, after: str = "") -> dict[str, str]:
    """From where each name of a stub file is read, of those that come ``after`` a mark."""
    module = sys.modules[package]
    text: str = module.__loader__.get_data(f"{module.__file__}i").decode()  # type: ignore[union-attr]
    lines = (line.split() for line in text[text.index(after) :].splitlines() if line.startswith("from "))
    return {name: source for _, source, _, _, _, name in lines}


@cache  # metadata are files, and a ledger of each loop names its packages
def installed(package: str) -> str | None:
    """Version of a package, read once in a process; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
