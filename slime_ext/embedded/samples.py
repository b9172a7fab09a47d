"""Training samples, and how an update's samples become micro-batches of trees.

One design choice: samples are packed by equal prompt within a group, so a method whose samples have
prompts of their own (a memory agent) needs no special case: its trees have one branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slime_ext.embedded.tree import Group, row_tokens


@dataclass(frozen=True, slots=True)
class TrainSample:
    """One response to train on. `rollout_log_probs` (nats, as sampled) and `loss_mask` (0 or 1)
    are per response token; `group` and `rollout` are ids."""

    prompt_ids: list[int]
    response_ids: list[int]
    rollout_log_probs: list[float]
    advantage: float
    loss_mask: list[int]
    group: int
    rollout: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Samples of one prompt: `members` are indices into the update's list."""

    group: Group
    members: tuple[int, ...]


MicroBatch = list[Tree]


def check_samples(samples: Sequence[TrainSample]) -> None:
    """Raise ValueError naming the first sample whose lengths do not fit together."""
    for number, sample in enumerate(samples):
        lengths = (
            len(sample.response_ids),
            len(sample.rollout_log_probs),
            len(sample.loss_mask),
        )
        if len(set(lengths)) > 1 or lengths[0] == 0 or len(sample.prompt_ids) < 2:
            raise ValueError(
                f"sample {number} (group {sample.group}, rollout {sample.rollout}) has "
                f"{len(sample.prompt_ids)} prompt ids and {lengths[0]} response ids, {lengths[1]} "
                f"rollout log-probs, {lengths[2]} loss mask entries; give the last three the same "
                "length, at least 1, and a prompt of at least 2"
            )


def trees(samples: Sequence[TrainSample]) -> list[Tree]:
    """Samples joined by (group id, prompt), in order of first appearance."""
    members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, sample in enumerate(samples):
        members.setdefault((sample.group, tuple(sample.prompt_ids)), []).append(number)
    return [_tree(samples, indices) for indices in members.values()]


def has_gradient(tree: Tree, samples: Sequence[TrainSample], with_kl: bool) -> bool:
    """Whether any token of the tree can change the loss: one that is in the loss mask of a sample
    with an advantage other than 0 (any advantage with KL)."""
    return any(
        (with_kl or samples[index].advantage != 0) and any(samples[index].loss_mask)
        for index in tree.members
    )


def micro_batches(
    forest: Sequence[Tree], samples: Sequence[TrainSample], token_limit: int
) -> list[MicroBatch]:
    """Cut trees into batches of at most `token_limit` padded tokens, neighbours in length together.

    A tree above the limit is cut into several of the same prompt; a single branch above it still
    gets a batch of its own.
    """
    small = [part for tree in forest for part in _cut(tree, samples, token_limit)]
    small.sort(key=lambda tree: row_tokens([tree.group]), reverse=True)
    batches: list[MicroBatch] = []
    for tree in small:
        joined = [*batches[-1], tree] if batches else []
        if joined and len(joined) * row_tokens([t.group for t in joined]) <= token_limit:
            batches[-1] = joined
        else:
            batches.append([tree])
    return batches


def _tree(samples: Sequence[TrainSample], indices: Sequence[int]) -> Tree:
    prompt = samples[indices[0]].prompt_ids
    return Tree(Group(prompt, [samples[i].response_ids for i in indices]), tuple(indices))


def _cut(tree: Tree, samples: Sequence[TrainSample], token_limit: int) -> list[Tree]:
    if row_tokens([tree.group]) <= token_limit:
        return [tree]
    width = max(len(response) for response in tree.group.responses)
    branches = max(1, (token_limit - len(tree.group.prompt_ids) + 1) // width)
    starts = range(0, len(tree.members), branches)
    return [_tree(samples, tree.members[start : start + branches]) for start in starts]
