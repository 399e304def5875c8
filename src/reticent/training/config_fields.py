"""Numbers of a configuration, with their ranges."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Inside = Annotated[float, Field(gt=0.0, lt=1.0)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
