"""Keys and values of one wave: each prompt once, each branch (sampled response) its own.

One design choice: attention runs on a grid of prompts x columns. A branch sits in one cell, so all
branches of a prompt attend to its keys in one matrix product. Everything outside attention runs on
the flat list of branches, so an uneven number of them per prompt wastes cells in attention only.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from slime_ext.weights.shape import ModelShape

_FIRST_CAPACITY = 64
"""Response tokens allotted at first; the room doubles when it is full."""


class WaveCache:
    """Caches of B prompts (padded to P tokens) and N branches in G columns."""

    def __init__(
        self,
        shape: ModelShape,
        lengths: Sequence[int],
        line_of: Sequence[int],
        most_tokens: int = _FIRST_CAPACITY,
    ) -> None:
        """`lengths` [B] are prompt lengths; `line_of` [N] names each branch's prompt; no branch is
        expected to store more than `most_tokens` (it may, at the price of a copy)."""
        self._shape = shape
        self._most = most_tokens
        first = max(1, min(_FIRST_CAPACITY, most_tokens))
        self.lengths = torch.tensor(lengths)
        self.line_of = torch.tensor(line_of)
        self.used = 0
        """Response tokens stored so far, the same for every branch."""
        kv, dim = shape.num_kv_heads, shape.head_dim
        self.prompt = torch.zeros(
            shape.num_layers, 2, len(lengths), kv, int(self.lengths.max()), dim
        )
        """[layer, key or value, B, K, P, D]; zeros where a prompt is shorter, never NaN."""
        self._place()
        self.own = torch.zeros(shape.num_layers, 2, len(lengths), kv, self.columns, first, dim)
        """[layer, key or value, B, K, G, capacity, D]."""

    def _place(self) -> None:
        """Give each branch a cell: its prompt's line, its rank among that prompt's branches."""
        lines, branches = len(self.lengths), len(self.line_of)
        order = torch.argsort(self.line_of, stable=True)
        counts = torch.bincount(self.line_of, minlength=lines)
        starts = counts.cumsum(0) - counts
        rank = torch.empty(branches, dtype=torch.int64)
        rank[order] = torch.arange(branches) - starts.repeat_interleave(counts)
        self.columns = int(counts.max())
        self.cell_of = self.line_of * self.columns + rank
        """[N] cell of each branch."""
        self.full = branches == lines * self.columns and bool(
            (self.cell_of == torch.arange(branches)).all()
        )
        """Whether cell i holds branch i for all i: then grid and list are the same memory."""
        self.branch_in = torch.zeros(lines * self.columns, dtype=torch.int64)
        self.branch_in[self.cell_of] = torch.arange(branches)
        padding = torch.arange(self.prompt.shape[4]) >= self.lengths[:, None]
        self.bias: torch.Tensor | None = None
        """[B K, 1, P]: -inf on padding keys; None where all prompts are equally long."""
        if bool(padding.any()):
            bias = torch.zeros(padding.shape).masked_fill_(padding, float("-inf"))
            self.bias = bias.repeat_interleave(self._shape.num_kv_heads, 0)[:, None]

    def reserve(self) -> None:
        """Make room for one more response token per branch."""
        capacity = self.own.shape[5]
        if self.used == capacity:
            more = min(capacity, self._most - capacity) if self._most > capacity else 1
            self.own = torch.cat([self.own, torch.zeros_like(self.own[..., :more, :])], dim=5)

    def to_grid(self, rows: torch.Tensor) -> torch.Tensor:
        """`rows` [N, h, D] as [B, G, h, D]; empty cells repeat the first branch."""
        if not self.full:
            rows = rows.index_select(0, self.branch_in)
        return rows.view(len(self.lengths), self.columns, *rows.shape[1:])

    def from_grid(self, grid: torch.Tensor) -> torch.Tensor:
        """`grid` [B, G, ...] as [N, ...]."""
        rows = grid.flatten(0, 1)
        return rows if self.full else rows.index_select(0, self.cell_of)

    def keep(self, branches: torch.Tensor) -> None:
        """Drop every branch but `branches` (ascending indices), and prompts left without one."""
        old_cells, old_columns = self.cell_of[branches], self.columns
        lines, self.line_of = torch.unique(self.line_of[branches], return_inverse=True)
        self.lengths = self.lengths[lines]
        longest = int(self.lengths.max())
        if len(lines) < self.prompt.shape[2] or longest < self.prompt.shape[4]:
            self.prompt = self.prompt[:, :, lines, :, :longest].contiguous()
        self._place()
        source = old_cells[self.branch_in].view(len(lines), self.columns)
        used = self.own[:, :, :, :, :, : self.used]
        # Two index tensors apart from each other move their shared axes to the front.
        kept = used[:, :, source // old_columns, :, source % old_columns]
        own = torch.zeros(
            *self.own.shape[:2], len(lines), self.own.shape[3], self.columns, *self.own.shape[5:]
        )
        own[:, :, :, :, :, : self.used] = kept.permute(2, 3, 0, 4, 1, 5, 6)
        self.own = own


def cache_bytes(shape: ModelShape, tokens: int) -> int:
    """Bytes of float32 keys and values for `tokens` tokens."""
    return tokens * shape.num_layers * 2 * shape.num_kv_heads * shape.head_dim * 4
