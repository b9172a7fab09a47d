"""A dense decoder (Qwen3, Llama) for inference in plain torch, float32.

One design choice: two passes only, `prefill` for whole prompts and `decode` for one token of every
branch of a wave; each is written for its own shape of work and neither handles the other's.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F

from slime_ext.embedded.engine.cache import WaveCache
from slime_ext.embedded.engine.rope import RotationTable, rotate
from slime_ext.embedded.engine.weights import LayerWeights, load_weights
from slime_ext.embedded.supported import require_supported
from slime_ext.weights.shape import ModelShape, read_shape

_PREFILL_TOKENS = 2048
"""Tokens of one prefill pass (or one prompt): its activations stay in a core's cache."""
_MIN_FILL = 0.85
"""Prompts share a prefill pass while the shortest has this share of the longest's tokens."""


class Decoder:
    """Weights and forward passes; `reload` swaps the weights for others of the same shape."""

    def __init__(self, folder: Path) -> None:
        """Load a Hugging Face folder; raises as `read_shape`, `require_supported` and
        `load_weights` do."""
        self.shape: ModelShape = read_shape(folder)
        require_supported(self.shape)
        self._weights = load_weights(folder, self.shape)
        self._rotations = RotationTable(self.shape)

    def reload(self, folder: Path) -> None:
        """Take the weights in `folder`. Raises ValueError where its shape differs; the old weights
        stay in place whenever this raises."""
        shape = read_shape(folder)
        if shape != self.shape:
            raise ValueError(
                f"{folder} holds a model of another shape ({shape}) than the one that is served "
                f"({self.shape}); start an engine of its own for it"
            )
        self._weights = load_weights(folder, shape)

    @torch.inference_mode()
    def prefill(self, prompts: list[torch.Tensor], cache: WaveCache) -> torch.Tensor:
        """Fill the prompts' part of `cache`; logits after each prompt's last token, [B, vocab].

        `prompts` are B int64 tensors in the cache's order, best sorted by length.
        """
        last = torch.empty(len(prompts), self.shape.hidden_size)
        for first, end in _passes([len(prompt) for prompt in prompts]):
            lengths = cache.lengths[first:end]
            ids = torch.nn.utils.rnn.pad_sequence(prompts[first:end], batch_first=True)
            store = cache.prompt[:, :, first:end, :, : ids.shape[1]]
            hidden = self._prompt_pass(ids, store)
            last[first:end] = hidden[torch.arange(end - first), lengths - 1]
        return self._logits(last)

    def _prompt_pass(self, ids: torch.Tensor, store: torch.Tensor) -> torch.Tensor:
        """Hidden states [b, p, hidden] of right-padded `ids` [b, p]; keys and values go to `store`.
        Causal attention never looks right, so padding needs no mask."""
        factors = self._rotations.upto(ids.shape[1])[: ids.shape[1], None]
        hidden = F.embedding(ids, self._weights.embedding)
        for layer, (keys, values) in zip(self._weights.layers, store, strict=True):
            query, key, value = (
                heads.transpose(1, 2) for heads in self._project(layer, hidden, factors)
            )
            keys.copy_(key)
            values.copy_(value)
            mixed = F.scaled_dot_product_attention(
                query, key, value, is_causal=True, scale=1.0, enable_gqa=True
            )
            hidden = self._finish_layer(layer, hidden, mixed.transpose(1, 2).flatten(2))
        return hidden

    @torch.inference_mode()
    def decode(self, tokens: torch.Tensor, cache: WaveCache) -> torch.Tensor:
        """Logits [N, vocab] after one more token of each branch, `tokens` int64 [N]."""
        cache.reserve()
        positions = (cache.lengths + cache.used)[cache.line_of]
        longest = cache.prompt.shape[4] + cache.used + 1
        factors = self._rotations.upto(longest)[positions][:, None]
        hidden = F.embedding(tokens, self._weights.embedding)
        for index, layer in enumerate(self._weights.layers):
            query, key, value = self._project(layer, hidden, factors)
            mixed = self._attend(index, query, key, value, cache)
            hidden = self._finish_layer(layer, hidden, mixed)
        cache.used += 1
        return self._logits(hidden)

    def _attend(
        self,
        index: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        cache: WaveCache,
    ) -> torch.Tensor:
        """Attention of N branches over prompt and own tokens, [N, H D]; stores key and value."""
        kv, dim, used = self.shape.num_kv_heads, self.shape.head_dim, cache.used + 1
        repeats = self.shape.num_heads // kv
        own = cache.own[index]
        own[0, :, :, :, cache.used] = cache.to_grid(key).transpose(1, 2)
        own[1, :, :, :, cache.used] = cache.to_grid(value).transpose(1, 2)
        # [B, K, G, repeats, D]: one memory order serves as (G repeats) rows against the prompt's
        # keys and as (repeats) rows against a branch's own.
        grid = cache.to_grid(query)
        lines, columns = grid.shape[:2]
        grid = grid.reshape(lines, columns, kv, repeats, dim).transpose(1, 2).contiguous()
        prompt_keys, prompt_values = cache.prompt[index].flatten(1, 2)
        own_keys, own_values = own.view(2, lines * kv * columns, -1, dim)[:, :, :used]
        shared = grid.view(lines * kv, columns * repeats, dim)
        transposed = prompt_keys.transpose(1, 2)
        if cache.bias is None:
            over_prompt = torch.bmm(shared, transposed)
        else:
            over_prompt = torch.baddbmm(cache.bias, shared, transposed)
        over_own = torch.bmm(grid.view(-1, repeats, dim), own_keys.transpose(1, 2))
        length = prompt_keys.shape[1]
        joined = torch.cat([over_prompt.view(-1, repeats, length), over_own], dim=-1).softmax(-1)
        to_prompt = joined[:, :, :length].reshape(lines * kv, columns * repeats, length)
        mixed = torch.bmm(to_prompt, prompt_values).view(-1, repeats, dim)
        mixed = torch.baddbmm(mixed, joined[:, :, length:], own_values)
        mixed = mixed.view(lines, kv, columns, repeats * dim).transpose(1, 2)
        return cache.from_grid(mixed.reshape(lines, columns, -1))

    def _project(
        self, layer: LayerWeights, hidden: torch.Tensor, factors: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query [..., H, D] (scaled), key and value [..., K, D], positions applied."""
        shape = self.shape
        normed = F.rms_norm(hidden, (shape.hidden_size,), layer.input_norm, shape.rms_norm_eps)
        heads = F.linear(normed, layer.qkv).view(*hidden.shape[:-1], -1, shape.head_dim)
        both = shape.num_heads + shape.num_kv_heads
        query_key = heads[..., :both, :]
        if layer.qk_norm is not None:
            query_key = F.rms_norm(query_key, (shape.head_dim,), eps=shape.rms_norm_eps)
            query_key = query_key * layer.qk_norm
        query_key = rotate(query_key, factors)
        query, key = query_key[..., : shape.num_heads, :], query_key[..., shape.num_heads :, :]
        return query, key, heads[..., both:, :]

    def _finish_layer(
        self, layer: LayerWeights, hidden: torch.Tensor, mixed: torch.Tensor
    ) -> torch.Tensor:
        hidden = hidden + F.linear(mixed, layer.out)
        eps = self.shape.rms_norm_eps
        normed = F.rms_norm(hidden, (self.shape.hidden_size,), layer.post_norm, eps)
        gate, up = F.linear(normed, layer.gate_up).chunk(2, dim=-1)
        return hidden + F.linear(F.silu(gate) * up, layer.down)

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        eps = self.shape.rms_norm_eps
        normed = F.rms_norm(hidden, (self.shape.hidden_size,), self._weights.norm, eps)
        return F.linear(normed, self._weights.head)


def _passes(lengths: list[int]) -> list[tuple[int, int]]:
    """Consecutive prompts that are prefilled together, as (first, end)."""
    passes: list[tuple[int, int]] = []
    first = 0
    for end in range(1, len(lengths) + 1):
        group = lengths[first : end + 1]
        full = end == len(lengths) or len(group) * max(group) > _PREFILL_TOKENS
        if full or min(group) < _MIN_FILL * max(group):
            passes.append((first, end))
            first = end
    return passes
