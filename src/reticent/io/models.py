"""Documents as pydantic models, and types of their fields: what does not fit ends in one line that names the key."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reticent.errors import ArtifactError
from reticent.text import printable

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Model = TypeVar("Model", bound=BaseModel)


class Closed(BaseModel):
    """Base of documents: frozen, and with no key that is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def validated(kind: type[Model], document: Any, where: str) -> Model:
    """The document as a model.

    Args:
        kind: of the model.
        document: as parsed.
        where: what errors call it.

    Raises:
        ArtifactError: it is none; the text names the key.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise ArtifactError(f"{where}: {first_problem(error)}") from None


def first_problem(error: ValidationError) -> str:
    """The first complaint of a pydantic validation, in one line that names the key.

    Args:
        error: of any model.
    """
    problem = error.errors(include_url=False)[0]
    key = printable(".".join(str(part) for part in problem["loc"]), 200) or "document"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    reason = problem["msg"].removeprefix("Value error, ")
    if isinstance(problem["input"], (str, int, float, bool, type(None))):
        return f"{key}: {reason}, got {_short(problem['input'])}"
    return f"{key}: {reason}"


def _short(value: object) -> str:
    # Whole numbers of thousands of digits cannot even be shown.
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of about {int(value.bit_length() * 0.30103)} digits"
    return printable(repr(value), 200)
