"""The outcome alone: plain RLVR, the baseline of every evidence reward.

One design choice: it still reports evidence recall where there is gold evidence, because what it
leaves unlearned is the point of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

from rewards.chunk_scores import evidence_recall
from rewards.graded import GradedReward
from rewards.parsing.thinking import Parsed
from rewards.registry import register
from rewards.types import Task


@register("outcome")
class OutcomeReward(GradedReward):
    """r = r_oc. Parts: `outcome`, `format`, `evidence_recall` where there is gold evidence."""

    def measure(self, task: Task, parsed: Parsed) -> dict[str, float]:
        found = evidence_recall(task, parsed.content)
        return {} if found is None else {"evidence_recall": found}

    def total(self, outcome: float, parts: Mapping[str, float]) -> float:
        return outcome
