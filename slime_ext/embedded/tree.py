"""Tree packing: a group's prompt is computed once, with all of its responses as branches.

One design choice: a branch begins with the prompt's last token (which predicts the response's
first) and the shared part ends one token earlier, so every hidden state that predicts a response
token lies in a branch. Rows are groups; positions continue from each group's real prompt length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from slime_ext.embedded.attention import TreeLayout


@dataclass(frozen=True, slots=True)
class Group:
    """One prompt (at least 2 token ids) and its responses (each at least 1)."""

    prompt_ids: Sequence[int]
    responses: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """Groups as rows of a model batch.

    `ids` and `positions` [b, s]; `hidden_index` [N] picks from hidden states [s, b, h] flattened to
    [s b, h] those that predict `targets` [N]: the response tokens, groups, then responses, then
    tokens in order.
    """

    ids: Tensor
    positions: Tensor
    layout: TreeLayout
    hidden_index: Tensor
    targets: Tensor


def row_tokens(groups: Sequence[Group]) -> int:
    """Tokens of one padded row if these groups share a batch."""
    prompt = max(len(group.prompt_ids) - 1 for group in groups)
    branches = max(len(group.responses) for group in groups)
    return prompt + branches * max(len(r) for group in groups for r in group.responses)


def pack(groups: Sequence[Group]) -> TreeBatch:
    """Pack groups into one batch, padded to the longest prompt, response and group.

    Raises ValueError for a prompt of fewer than 2 tokens or a response of none.
    """
    _check(groups)
    prompt = max(len(group.prompt_ids) - 1 for group in groups)
    branches = max(len(group.responses) for group in groups)
    width = max(len(response) for group in groups for response in group.responses)
    shared = torch.zeros(len(groups), prompt, dtype=torch.long)
    grid = torch.zeros(len(groups), width, branches, dtype=torch.long)
    target_grid = torch.full((len(groups), branches, width), -1, dtype=torch.long)
    for place, group in enumerate(groups):
        shared[place, : len(group.prompt_ids) - 1] = torch.tensor(group.prompt_ids[:-1])
        for branch, response in enumerate(group.responses):
            tokens = torch.tensor((group.prompt_ids[-1], *response))
            grid[place, : len(response), branch] = tokens[:-1]
            target_grid[place, branch, : len(response)] = tokens[1:]
    lengths = torch.tensor([len(group.prompt_ids) - 1 for group in groups])
    steps = torch.arange(width).repeat_interleave(branches)
    positions = torch.cat(
        (torch.arange(prompt).expand(len(groups), prompt), lengths[:, None] + steps), dim=1
    )
    layout = TreeLayout(prompt, branches, width, _prompt_bias(lengths, prompt))
    rows, branch, step = (target_grid >= 0).nonzero(as_tuple=True)
    return TreeBatch(
        ids=torch.cat((shared, grid.flatten(1)), dim=1),
        positions=positions,
        layout=layout,
        hidden_index=(prompt + step * branches + branch) * len(groups) + rows,
        targets=target_grid[rows, branch, step],
    )


def _prompt_bias(lengths: Tensor, prompt: int) -> Tensor | None:
    if bool((lengths == prompt).all()):
        return None
    padding = torch.arange(prompt) >= lengths[:, None]
    return torch.zeros(padding.shape).masked_fill(padding, float("-inf"))[:, None, None, :]


def _check(groups: Sequence[Group]) -> None:
    for number, group in enumerate(groups):
        if len(group.prompt_ids) < 2:
            raise ValueError(
                f"group {number} has a prompt of {len(group.prompt_ids)} token(s); a prompt needs "
                "at least 2, the last of which starts every response"
            )
        if not group.responses or any(len(response) == 0 for response in group.responses):
            raise ValueError(
                f"group {number} holds no response or an empty one; leave it out of the batch"
            )
