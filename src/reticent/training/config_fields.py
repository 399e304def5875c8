"""What every part of a configuration is made of: closed sections, and numbers with their ranges."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Inside = Annotated[float, Field(gt=0.0, lt=1.0)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """A section that refuses unknown keys and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
