"""The base of every recipe section.

One design choice: unknown keys are errors and values are read-only, so a misspelt key can neither
be dropped in silence nor be set half-way through a run.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)
