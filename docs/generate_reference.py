"""Pages of the reference that Sphinx fills from the code: commands, API, schemas. ``pages.py`` writes them."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

PACKAGES = (
    "reticent.verbs",
    "reticent.kernel.mechanisms",
    "reticent.mechanisms",
    "reticent.kernel.samplers",
    "reticent.samplers",
    "reticent.kernel.adversaries",
    "reticent.adversaries",
    "reticent.kernel.risk",
    "reticent.kernel.curves",
    "reticent.curves",
    "reticent.kernel.accountants",
    "reticent.accountants",
    "reticent.calibration",
    "reticent.auditing",
    "reticent.attacks",
    "reticent.attacks.loop",
    "reticent.attacks.mechanics",
    "reticent.attacks.own_trainer",
    "reticent.attacks.shadow",
    "reticent.attacks.shadow_scores",
    "reticent.attacks.shadow_training",
    "reticent.attacks.white_box",
    "reticent.training",
    "reticent.training.normals",
    "reticent.training.randomness",
    "reticent.sensitivity.recorder",
    "reticent.sensitivity",
    "reticent.training.sweep",
    "reticent.data",
    "reticent.watching.live",
    "reticent.watching.loggers",
    "reticent.watching.allocation",
    "reticent.watching.secure_noise",
    "reticent.watching.session",
    "reticent.interop.opacus",
    "reticent.interop.flower",
    "reticent.interop.dp_events",
    "reticent.interop.documents",
    "reticent.interop.pld",
    "reticent.certificates.build",
    "reticent.certificates.document.schema",
    "reticent.certificates.verify",
    "reticent.certificates.store",
    "reticent.certificates.document.policy",
    "reticent.certificates.document.signature",
    "reticent.kernel.pairs",
    "reticent.pairs",
    "reticent.adversaries.relaxed.dimension",
    "reticent.tasks",
    "reticent.kernel.errors",
    "reticent.kernel.checks",
    "reticent.testing.laws",
    "reticent.kernel.proofs",
    "reticent.kernel.proofs.references",
)
"""Packages whose public names the reference lists, in the order in which a reader meets them."""

_HEAD = "<!-- Generated from the code by docs/generate_reference.py: do not edit. -->\n\n"
_COMMANDS = """# Command line

Every verb takes `--help` for what is written here, and every verb that answers with numbers takes `--json` for strict
JSON. Bad input ends in one line on standard error and exit code 2.

```{eval-rst}
.. click:: reticent.cli:app
   :prog: reticent
   :nested: full
```
"""


def _commands() -> str:
    return _HEAD + _COMMANDS


def _api() -> str:
    rows = "".join(f"| [`{name}`]({name}.md) | {_first_line(importlib.import_module(name))} |\n" for name in PACKAGES)
    listed = "\n".join(PACKAGES)
    return f"{_HEAD}# Python API\n\n| package | about |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"


def _package(name: str) -> str:
    module = importlib.import_module(name)
    blocks = "\n".join(_entry(name, each, getattr(module, each)) for each in public_names(name))
    return f"{_HEAD}# {name}\n\n{_first_line(module)}\n\n{blocks}"


def public_names(name: str) -> list[str]:
    """The public names of a package: what its file imports or its stub lists. Of a module: what it defines itself."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [
        each
        for each, value in vars(module).items()
        if not each.startswith("_") and (hasattr(module, "__path__") or getattr(value, "__module__", None) == name)
    ]
    shown = [each for each in names if not inspect.ismodule(getattr(module, each))]
    return sorted(shown, key=lambda each: (each.isupper(), each.lower()))  # constants come last


@cache
def _homes() -> dict[int, str]:
    """Where each class and function is described: in the first package that lists it."""
    homes: dict[int, str] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in public_names(package):
            homes.setdefault(id(getattr(module, name)), package)
    return homes


def _entry(package: str, name: str, value: Any) -> str:
    home = _homes()[id(value)]
    if home != package and callable(value):
        return f"## {name}\n\nThe same as in [{home}]({home}.md).\n"
    if inspect.isclass(value):
        kind, options = "autoclass", "   :members:\n   :show-inheritance:\n"
    elif inspect.isroutine(value):
        kind, options = "autofunction", ""
    else:
        return f"## {name}\n\n`{package}.{name}`\n"
    return f"## {name}\n\n```{{eval-rst}}\n.. {kind}:: {package}.{name}\n{options}```\n"


def _first_line(module: Any) -> str:
    return (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")


def walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it; verbs are read from their files only when they are asked for."""
    yield words, command
    if hasattr(command, "list_commands"):
        context = command.context_class(command, info_name=words)
        for name in command.list_commands(context):
            yield from walk(f"{words} {name}", command.get_command(context, name))


def _schemas() -> str:
    folder = Path(__file__).parent / "schema"
    rows = ""
    for path in sorted(folder.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        about = (schema.get("description") or schema.get("title") or "").split("\n")[0]
        rows += f"| {{download}}`{path.name} <../schema/{path.name}>` | {about} |\n"
    return (
        f"{_HEAD}# JSON Schemas\n\nEvery document that reticent writes follows a published schema. "
        f"Numbers that are not finite are `null`.\n\n| file | describes |\n|---|---|\n{rows}"
    )


def _changelog() -> str:
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    return _HEAD + text.replace("](docs/", "](../")


PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": _commands,
    "reference/schemas.md": _schemas,
    "development/changelog.md": _changelog,
    "reference/api/index.md": _api,
    **{f"reference/api/{name}.md": partial(_package, name) for name in PACKAGES},
}
"""The text of each page by its name below ``docs``."""
