"""Stand-ins for slime's value types, used where slime is not installed.

One design choice: fields, defaults and status strings are those of slime v0.3.1 and nothing more; a
contract test compares them with the recorded facts and, where slime is importable, with slime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass
class Sample:
    """One training sample of a rollout. `tokens` holds prompt and response ids."""

    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"
        FAILED = "failed"

    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: str | list[dict[str, str]] = ""
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: float | dict[str, Any] | None = None
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    remove_sample: bool = False
    status: Status = Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    generate_function_path: str | None = None
    custom_rm_path: str | None = None
    train_metadata: dict[str, Any] | None = None
    session_id: str | None = None
    non_generation_time: float = 0.0


@dataclass
class RolloutFnTrainOutput:
    """What a rollout function returns: groups of samples and extra metrics."""

    samples: list[list[Sample]]
    metrics: dict[str, Any] | None = None


@dataclass
class RolloutFnEvalOutput:
    """What an evaluation function returns: per data set, rewards and samples."""

    data: dict[str, dict[str, Any]]
    metrics: dict[str, Any] | None = None


@dataclass
class DynamicFilterOutput:
    """Whether a group is kept, why not, and whether it may return when too few are left."""

    keep: bool
    reason: str | None = None
    keep_when_insufficient: bool = False


class DataSource(ABC):
    """Where rollouts take their prompts from; constructed by the host as `cls(args)`."""

    @abstractmethod
    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        """The next `num_samples` groups, each `n_samples_per_prompt` copies of one prompt."""

    @abstractmethod
    def add_samples(self, samples: list[list[Sample]]) -> None:
        """Give groups back, to be served again first."""

    @abstractmethod
    def save(self, rollout_id: int) -> None:
        """Store the position, so that `load` continues with the exact next prompt."""

    @abstractmethod
    def load(self, rollout_id: int | None = None) -> None:
        """Restore the position stored for `rollout_id`."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""
