"""Precision, recall and F-beta of cited chunks, and the evidence recall every reward reports.

One design choice: evidence recall is measured the same way whatever the reward, so that runs
trained with different rewards can be compared on the evidence they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewards.entities import make_matcher, recall
from rewards.parsing.chunk_ids import chunk_ids
from rewards.parsing.tags import one_block
from rewards.types import Task


@dataclass(frozen=True, slots=True)
class ChunkScores:
    """All in [0, 1]."""

    precision: float
    recall: float
    fbeta: float


def f_beta(precision: float, recall: float, beta: float) -> float:
    """(1 + b^2) P R / (b^2 P + R); 0 where P + R = 0 (LongRLVR, equation 6)."""
    if precision + recall <= 0:
        return 0.0
    weight = beta * beta
    return (1 + weight) * precision * recall / (weight * precision + recall)


def chunk_scores(written: Sequence[int], gold: Sequence[int], beta: float = 2.0) -> ChunkScores:
    """Scores of the ids a response wrote, repeats included, against the gold ids.

    A hit is a distinct gold chunk; precision divides by the length of the written list, so repeats
    cost; recall divides by the number of distinct gold chunks. An empty list scores 0. ValueError
    where there is no gold.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError("chunk scores need at least one gold chunk")
    hits = len(wanted.intersection(written))
    precision = hits / len(written) if written else 0.0
    found = hits / len(wanted)
    return ChunkScores(precision, found, f_beta(precision, found, beta))


def cited_chunks(content: str) -> list[int]:
    """Ids in the only `<useful_chunks>` block, in the order written; empty without such a block."""
    block = one_block(content, "useful_chunks")
    return [] if block is None else chunk_ids(block)


def evidence_recall(task: Task, content: str) -> float | None:
    """Share of the gold evidence that the content shows: of gold chunks among the cited ones, where
    a task has gold chunks; else of gold entities named; None without gold evidence."""
    if task.gold_chunks:
        return chunk_scores(cited_chunks(content), task.gold_chunks).recall
    if task.gold_entities:
        return recall(make_matcher(task.gold_entities).hits(content))
    return None
