"""The modules of a share, with the parameters and the activations of Megatron's own.

One design choice: what Megatron runs as one fused kernel is one call here (kernels.py), and what it
saves for the backward pass is what autograd saves here, so a measured peak is made of the same
tensors as the real one.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from launch.plan.measure.attention import RingAttention
from launch.plan.measure.kernels import (
    Exchange,
    GatheredLinear,
    Lookup,
    Scatter,
    rms_norm,
    rotate,
    swiglu,
    weighted_sum,
)
from launch.plan.measure.share import Share

EPS = 1e-6
ROPE_BASE = 1e6
"""Their values do not change memory."""


class StageShare(nn.Module):
    """Embedding (first stage), layers, final norm and head (last stage), cut as `share` says."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share
        if share.has_embedding:
            self.embedding = nn.Parameter(torch.empty(share.vocab, share.hidden))
        self.layers = nn.ModuleList(Layer(share) for _ in range(share.layers))
        if share.has_head:
            self.final_norm = nn.Parameter(torch.empty(share.hidden))
            if not (share.tied and share.has_embedding):
                self.head = nn.Parameter(torch.empty(share.vocab, share.hidden))

    def inputs(self, ids: Tensor) -> Tensor:
        """Hidden states [cut_tokens, H] of `ids` [tokens], or as another stage would send them."""
        share = self.share
        if not share.has_embedding:
            like = next(self.parameters())
            return torch.randn(share.cut_tokens, share.hidden, dtype=like.dtype, device=like.device)
        return scatter_rows(Lookup.apply(self.embedding, ids), share.sequence_ranks)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """[cut_tokens, H] -> [cut_tokens, H] behind the last layer."""
        for layer in self.layers:
            if self.share.recompute and torch.is_grad_enabled():
                hidden = checkpoint(
                    layer, hidden, cos, sin, use_reentrant=True, preserve_rng_state=False
                )
            else:
                hidden = layer(hidden, cos, sin)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """[cut_tokens, H] -> bf16 logits [tokens, vocab]."""
        weight = self.embedding if self.share.tied and self.share.has_embedding else self.head
        normed = rms_norm(hidden, self.final_norm, EPS)
        logits: Tensor = GatheredLinear.apply(normed, weight, self.share.sequence_ranks)
        return logits


class Layer(nn.Module):
    """Attention and feed-forward network of this rank, each behind a norm."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share
        width = (share.heads + 2 * share.kv_heads) * share.head_dim
        self.input_norm = nn.Parameter(torch.empty(share.hidden))
        self.mlp_norm = nn.Parameter(torch.empty(share.hidden))
        self.qkv = nn.Parameter(torch.empty(width, share.hidden))
        if share.qkv_bias:
            self.qkv_bias = nn.Parameter(torch.empty(width))
        if share.qk_norm:
            self.query_norm = nn.Parameter(torch.empty(share.head_dim))
            self.key_norm = nn.Parameter(torch.empty(share.head_dim))
        self.out = nn.Parameter(torch.empty(share.hidden, share.heads * share.head_dim))
        self.mlp = Experts(share) if share.experts else GatedMlp(share)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        hidden = hidden + self._attention(rms_norm(hidden, self.input_norm, EPS), cos, sin)
        out: Tensor = hidden + self.mlp(rms_norm(hidden, self.mlp_norm, EPS))
        return out

    def _attention(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        share, dim = self.share, self.share.head_dim
        mixed = GatheredLinear.apply(hidden, self.qkv, share.sequence_ranks)
        if share.qkv_bias:
            mixed = mixed + self.qkv_bias
        sizes = [share.heads * dim, share.kv_heads * dim, share.kv_heads * dim]
        query, key, value = (t.unflatten(-1, (-1, dim)) for t in mixed.split(sizes, -1))
        if share.qk_norm:
            query = rms_norm(query, self.query_norm, EPS)
            key = rms_norm(key, self.key_norm, EPS)
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        context = RingAttention.apply(query, key, value, share.cp).flatten(1)
        return scatter_rows(context @ self.out.t(), share.sequence_ranks)


class GatedMlp(nn.Module):
    """SwiGLU, cut by columns and then by rows."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.ranks = share.sequence_ranks
        self.up = nn.Parameter(torch.empty(2 * share.ffn, share.hidden))
        self.down = nn.Parameter(torch.empty(share.hidden, share.ffn))

    def forward(self, hidden: Tensor) -> Tensor:
        wide = GatheredLinear.apply(hidden, self.up, self.ranks)
        return scatter_rows(swiglu(wide) @ self.down.t(), self.ranks)


class Experts(nn.Module):
    """This rank's experts under balanced routing: each gets the same number of rows."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share
        self.router = nn.Parameter(torch.empty(share.all_experts, share.hidden))
        self.up = nn.Parameter(torch.empty(share.experts, 2 * share.expert_ffn, share.hidden))
        self.down = nn.Parameter(torch.empty(share.experts, share.hidden, share.expert_ffn))

    def forward(self, hidden: Tensor) -> Tensor:
        share = self.share
        sent = len(hidden) * share.top_k
        rows = math.ceil(sent / share.experts) * share.experts
        scores = (hidden @ self.router.t()).float().softmax(-1).topk(share.top_k).values
        copies = hidden.unsqueeze(1).expand(-1, share.top_k, -1).flatten(0, 1)
        copies = F.pad(copies, (0, 0, 0, rows - sent)) if rows > sent else copies
        arrived = Exchange.apply(copies, share.etp)
        del copies
        wide = torch.bmm(arrived.unflatten(0, (share.experts, -1)), self.up.transpose(1, 2))
        narrow = swiglu(wide.flatten(0, 1)).unflatten(0, wide.shape[:2])
        out = torch.bmm(narrow, self.down.transpose(1, 2)).flatten(0, 1)
        back = Exchange.apply(scatter_rows(out, share.etp), 1)[:sent]
        return weighted_sum(back.unflatten(0, (-1, share.top_k)), scores.to(hidden.dtype))


def scatter_rows(x: Tensor, ranks: int) -> Tensor:
    """Reduce-scatter with its gradient; an all-reduce leaves the size as it is."""
    out: Tensor = x if ranks == 1 else Scatter.apply(x, ranks)
    return out


def rotary_tables(share: Share, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and sine [tokens, head_dim] of the first `tokens` positions."""
    steps = torch.arange(0, share.head_dim, 2, device=device) / share.head_dim
    angles = torch.arange(share.tokens, device=device).unsqueeze(1) * ROPE_BASE**-steps
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(dtype), angles.sin().to(dtype)
