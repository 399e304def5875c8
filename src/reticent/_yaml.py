"""YAML from strangers: plain values only, no key twice, one line for whatever is wrong."""

from __future__ import annotations

import re
from typing import Any

import yaml

from reticent._text import printable
from reticent.errors import ArtifactError


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a repeated key is an error, and what looks like a date or a clock is text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else str(key.start_mark)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is repeated", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if not tag.endswith((":timestamp", ":merge", ":int"))]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# Decimal only: YAML 1.1 reads 190:20:30 as 685230, and 010 as 8.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})\Z"), list("-+0123456789")
)


def load_yaml(text: str, where: str) -> Any:
    """The document as plain Python values.

    Raises:
        ArtifactError: it is not YAML, holds a key twice, or a value that is none of its type.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader
    except yaml.YAMLError as error:
        raise ArtifactError(f"{where}: not valid YAML ({printable(' '.join(str(error).split()), 300)})") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # The constructors of YAML raise what Python's own conversions raise.
        raise ArtifactError(f"{where}: not valid YAML: {printable(' '.join(str(error).split()), 200)}") from None
