"""LongTraceRL's rubric reward: name the entities on the reasoning chain, and be right.

One design choice: the raw rubric is stored as a part when a response is scored, and divided by the
group's maximum in `combine`, which is the only step that needs the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import Field

from rewards.base import RewardConfig
from rewards.chunk_scores import evidence_recall
from rewards.entities import EntityMatcher, make_matcher, recall
from rewards.folding import fold_words
from rewards.graded import GradedReward
from rewards.grouping import normalise_by_max
from rewards.parsing.thinking import Parsed
from rewards.registry import register
from rewards.types import Score, Task


class RubricConfig(RewardConfig):
    """Settings of [reward.rubric]."""

    alpha: float = Field(default=0.3, ge=0, le=1)
    """Weight of the rubric; the outcome weighs 1 - alpha."""
    mode: Literal["positive_only", "positive_and_negative", "negative_only", "outcome_only"] = (
        "positive_only"
    )
    """Which responses the rubric is paid to, by their outcome."""
    text: Literal["content", "reasoning", "both"] = "content"
    """Where entities count; the released scripts use the content."""
    matcher: Literal["correct", "legacy"] = "correct"
    """Whole words in Unicode, or the released substring test."""
    group_max: bool = True
    """Divide by the largest raw rubric of the group."""
    stuffing_penalty: float = Field(default=0.0, ge=0, le=1)
    """Taken off the rubric times the share of distractor titles the response names; the rubric does
    not fall below 0. Not in the paper."""


@register("rubric")
class RubricReward(GradedReward):
    """r = (1 - a) r_oc + a r_rb where r_oc > 0, else 0 (methods, section 1; LongTraceRL).

    Parts: `outcome` r_oc, `rubric_raw` the share of gold entities named, `rubric` r_rb the same
    over the group's maximum, `rubric_stuffing` the share of distractor titles named (tasks that
    have some), `format`, `evidence_recall` (of gold chunks where a task has them, else
    `rubric_raw`).
    Before `combine` the total uses the raw rubric. A task without gold entities is scored by the
    outcome alone (`outcome_only` = 1).
    """

    Config: ClassVar[type[RewardConfig]] = RubricConfig
    needs: ClassVar[frozenset[str]] = frozenset({"gold_entities"})
    config: RubricConfig

    def measure(self, task: Task, parsed: Parsed) -> dict[str, float]:
        parts: dict[str, float] = {}
        found = evidence_recall(task, parsed.content) if task.gold_chunks else None
        if task.gold_entities:
            text = self._text(parsed)
            raw = recall(make_matcher(task.gold_entities, self.config.matcher).hits(text))
            parts |= {"rubric_raw": raw, "rubric": raw}
            found = raw if found is None else found
            titles = _distractors(task.distractor_titles, task.gold_entities)
            if titles is not None:
                parts["rubric_stuffing"] = recall(titles.hits(text))
        if found is not None:
            parts["evidence_recall"] = found
        return parts

    def total(self, outcome: float, parts: Mapping[str, float]) -> float:
        alpha = self.config.alpha
        rubric = parts["rubric"] - self.config.stuffing_penalty * parts.get("rubric_stuffing", 0.0)
        both = (1 - alpha) * outcome + alpha * max(0.0, rubric)
        match self.config.mode:
            case "positive_only":
                return both if outcome > 0 else 0.0
            case "positive_and_negative":
                return both
            case "negative_only":
                return outcome if outcome > 0 else both
            case "outcome_only":
                return outcome

    def evaluation_parts(self, parts: dict[str, float]) -> dict[str, float]:
        """Without `rubric`: evaluation has no group, and `combine` leaves such scores alone."""
        return {name: value for name, value in parts.items() if name != "rubric"}

    def combine(self, scores: Sequence[Score]) -> list[Score]:
        """Divide the raw rubric by its maximum over all determined members, wrong answers included,
        and form the totals anew. Truncated and ill-formed members stay at 0."""
        raw = [None if s.total is None else s.parts.get("rubric_raw") for s in scores]
        shares = normalise_by_max(raw) if self.config.group_max else raw
        return [self._combined(s, share) for s, share in zip(scores, shares, strict=True)]

    def _combined(self, score: Score, share: float | None) -> Score:
        if share is None or score.reason is not None or "rubric" not in score.parts:
            return score
        parts = {**score.parts, "rubric": share}
        return score.with_total(self.total(score.parts["outcome"], parts), rubric=share)

    def _text(self, parsed: Parsed) -> str:
        match self.config.text:
            case "content":
                return parsed.content
            case "reasoning":
                return parsed.reasoning
            case "both":
                return f"{parsed.reasoning}\n\n{parsed.content}"


@lru_cache(maxsize=1024)
def _distractors(
    titles: tuple[str, ...], entities: tuple[tuple[str, ...], ...]
) -> EntityMatcher | None:
    """A matcher of the titles that are no gold entity's name and hold a letter or digit."""
    gold = {tuple(fold_words(alias)) for aliases in entities for alias in aliases}
    usable = [
        title for title in titles if (words := tuple(fold_words(title))) and words not in gold
    ]
    return EntityMatcher([(title,) for title in usable]) if usable else None
