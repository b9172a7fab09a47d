"""The [reward] section, built from the registry of rewards.

One design choice: each registered reward contributes a sub-table of its own settings
(`[reward.chunk] beta = 2.0`), so that `--set reward.kind=rubric` switches rewards without touching
another key, and a new reward appears here without an edit.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from rewards.registry import REWARDS, find_reward


class _RewardBase(BaseModel):
    """Which reward, and what a truncated response is worth."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    """A registered name, or a reward of your own as "my_package.my_file:MyReward"."""
    truncated: Literal["zero", "keep", "mask"] = "zero"
    """A truncated response scores 0, is scored as it stands, or scores 0 with loss mask 0."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Settings of a reward named by import path."""

    @field_validator("kind")
    @classmethod
    def _exists(cls, kind: str) -> str:
        find_reward(kind)
        return kind

    @model_validator(mode="after")
    def _options_fit(self) -> _RewardBase:
        if ":" in self.kind:
            find_reward(self.kind).Config(**self.options)
        elif self.options:
            raise ValueError(
                f"options are for a reward named by import path; write [reward.{self.kind}] instead"
            )
        return self


RewardSection = create_model(
    "RewardSection",
    __base__=_RewardBase,
    **{name: (reward.Config, reward.Config()) for name, reward in sorted(REWARDS.items())},
)
