"""LongRLVR's chunk reward: cite the chunks the answer rests on.

One design choice: the two blocks are counted in the content, after the thinking part, so that a
draft of the answer inside the thinking block is no violation (a choice; the paper has no thinking).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from rewards.base import RewardConfig
from rewards.chunk_scores import chunk_scores, cited_chunks
from rewards.graded import GradedReward
from rewards.parsing.tags import block_span
from rewards.parsing.thinking import Parsed
from rewards.registry import register
from rewards.types import Task


class ChunkConfig(RewardConfig):
    """Settings of [reward.chunk]."""

    beta: float = Field(default=2.0, gt=0)
    """Recall weighs beta times as much as precision."""
    eta: float = Field(default=0.1, ge=0, le=1)
    """Share of the context reward that is paid whatever the answer."""
    mode: Literal["full", "answer_only", "context_only"] = "full"
    """r_ans + r_ctx, r_ans alone (plain RLVR), or r_ctx alone."""
    strict_order: bool = False
    """Also require the chunk list before the answer."""


@register("chunk")
class ChunkReward(GradedReward):
    """r = r_ans + eta F + (1 - eta) r_ans F, from 0 to 2 (methods, section 2; LongRLVR eq. 5-7).

    The content must hold exactly one `<useful_chunks>` and one `<answer>` block; otherwise every
    part is 0. An empty list has F = 0 and its answer is still judged. No group normalisation.
    Parts: `outcome` r_ans, `chunk_precision`, `chunk_recall`, `chunk_fbeta` F, `format`,
    `evidence_recall` (= `chunk_recall`). A task without gold chunks is scored by the outcome alone
    (`outcome_only` = 1), the two blocks still required.
    """

    Config: ClassVar[type[RewardConfig]] = ChunkConfig
    needs: ClassVar[frozenset[str]] = frozenset({"gold_chunks"})
    config: ChunkConfig

    def format_problems(self, parsed: Parsed) -> tuple[str, ...]:
        """ "useful_chunks" or "answer" where there is not exactly one such block, else "order"."""
        chunks = block_span(parsed.content, "useful_chunks")
        answer = block_span(parsed.content, "answer")
        if chunks is None or answer is None:
            spans = {"useful_chunks": chunks, "answer": answer}
            return tuple(tag for tag, span in spans.items() if span is None)
        return ("order",) if self.config.strict_order and chunks[1] > answer[0] else ()

    def measure(self, task: Task, parsed: Parsed) -> dict[str, float]:
        if not task.gold_chunks:
            return {}
        scores = chunk_scores(cited_chunks(parsed.content), task.gold_chunks, self.config.beta)
        return {
            "chunk_precision": scores.precision,
            "chunk_recall": scores.recall,
            "chunk_fbeta": scores.fbeta,
            "evidence_recall": scores.recall,
        }

    def total(self, outcome: float, parts: Mapping[str, float]) -> float:
        eta, fbeta = self.config.eta, parts["chunk_fbeta"]
        context = eta * fbeta + (1 - eta) * outcome * fbeta
        match self.config.mode:
            case "full":
                return outcome + context
            case "answer_only":
                return outcome
            case "context_only":
                return context
