"""Documents as pydantic models, and types of their fields: what does not fit ends in one line that names the key."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import did_you_mean, printable

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0.0, le=1.0)]
Inside = Annotated[float, Field(gt=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Model = TypeVar("Model", bound=BaseModel)


class Closed(BaseModel):
    """Base of documents: frozen, and with no key that is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Terse(Closed):
    """A document whose file is silent about some fields where they are as by default.

    Attributes:
        left_out: these fields.
    """

    left_out: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        usual = {n for n in self.left_out if getattr(self, n) == fields[n].get_default(call_default_factory=True)}
        return {name: value for name, value in write(self).items() if name not in usual}


def validated(kind: type[Model], document: Any, where: str) -> Model:
    """The document as a model.

    Raises:
        ArtifactError: it is none; the text names the key.
    """
    _refuse_another(kind, document, where)
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise ArtifactError(f"{where}: {first_problem(error, kind)}") from None


def _refuse_another(kind: type[BaseModel], document: Any, where: str) -> None:
    """Refuse a document of another schema at once: its keys are not those of ``kind``."""
    stated = (get_args(one.annotation) for one in kind.model_fields.values() if one.alias == "schema")
    wanted = [names for names in stated if names]
    if not wanted or not isinstance(document, dict) or document.get("schema") in wanted[0]:
        return
    other = f"its schema is {_short(document['schema'])}" if "schema" in document else "it has no schema"
    raise ArtifactError(f"{where}: {other}, expected {wanted[0][0]}")


def first_problem(error: ValidationError, kind: type[BaseModel] | None = None) -> str:
    """The first complaint of a pydantic validation, in one line that names the key.

    Args:
        kind: of the model; a key that is not known is then answered with the nearest one.
    """
    problem = error.errors(include_url=False)[0]
    key = printable(".".join(str(part) for part in problem["loc"]), 200) or "document"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key!r}{_near(str(problem['loc'][-1]), kind)}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    reason = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if problem["type"] in ("literal_error", "enum"):
        reason += did_you_mean(problem["input"], re.findall("'([^']*)'", problem["ctx"]["expected"]))
    if isinstance(problem["input"], (str, int, float, bool, type(None))):
        return f"{key}: {reason}, got {_short(problem['input'])}"
    return f"{key}: {reason}"


def refused(error: ValidationError) -> ParameterError:
    """The first complaint of a pydantic validation as an error about an argument."""
    problem = error.errors(include_url=False)[0]
    name = printable(".".join(str(part) for part in problem["loc"]), 200)
    if problem["type"] in ("extra_forbidden", "missing"):
        missing = problem["type"] == "missing"
        return ParameterError(name, None, "given" if missing else "left out: there is no such setting", shown=False)
    return ParameterError(name, problem["input"], problem["msg"].removeprefix("Input should be "))


def _near(key: str, kind: type[BaseModel] | None) -> str:
    """The key of the model, or of a part of it, that was probably meant."""
    if kind is None:
        return ""
    schema = kind.model_json_schema()
    return did_you_mean(
        key, {name for part in (schema, *schema.get("$defs", {}).values()) for name in part.get("properties", ())}
    )


def _short(value: object) -> str:
    # Whole numbers of thousands of digits cannot even be shown.
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of about {int(value.bit_length() * 0.30103)} digits"
    return printable(repr(value), 200)
