"""Tree packing: log-probs of a packed batch equal those of every sequence alone."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from slime_ext.embedded.model import PolicyModel, build_model
from slime_ext.embedded.tree import Group, pack, row_tokens
from slime_ext.weights.shape import ModelShape

VOCAB = 23
SHAPE = ModelShape("qwen3", 2, 32, 4, 2, 8, 48, VOCAB, 1e-6, 1e4, None, True, 128)

token = st.integers(0, VOCAB - 1)
groups = st.lists(
    st.builds(
        Group,
        st.lists(token, min_size=2, max_size=12),
        st.lists(st.lists(token, min_size=1, max_size=7), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@cache
def model() -> PolicyModel:
    torch.manual_seed(0)
    policy = build_model(SHAPE)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.uniform_(-0.3, 0.3) if parameter.dim() > 1 else parameter.uniform_(0.5, 1.5)
    return policy


def packed_log_probs(batch: list[Group]) -> Tensor:
    packed = pack(batch)
    hidden = model().hidden_states(packed.ids, packed.positions, packed.layout)
    chosen = hidden.flatten(0, 1)[packed.hidden_index]
    logits = chosen @ model().head_weight().t()
    return logits.log_softmax(-1).gather(-1, packed.targets[:, None])[:, 0]


def separate_log_probs(batch: list[Group]) -> Tensor:
    parts = []
    for group in batch:
        for response in group.responses:
            ids = torch.tensor([[*group.prompt_ids, *response]])
            logits = model().logits(ids, torch.arange(ids.shape[1])[None])[0]
            start = len(group.prompt_ids)
            log_probs = logits[start - 1 : -1].log_softmax(-1)
            parts.append(log_probs.gather(-1, ids[0, start:, None])[:, 0])
    return torch.cat(parts)


@settings(max_examples=25, deadline=None)
@given(groups)
def test_packed_equals_separate(batch: list[Group]) -> None:
    packed, separate = packed_log_probs(batch), separate_log_probs(batch)
    torch.testing.assert_close(packed, separate, rtol=0, atol=1e-5)


@settings(max_examples=5, deadline=None)
@given(groups)
def test_gradients_equal_separate(batch: list[Group]) -> None:
    parameters = list(model().parameters())
    packed = torch.autograd.grad(packed_log_probs(batch).square().sum(), parameters)
    separate = torch.autograd.grad(separate_log_probs(batch).square().sum(), parameters)
    scale = max(float(gradient.abs().max()) for gradient in separate)
    for got, want in zip(packed, separate, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=1e-5 * max(scale, 1.0))


@given(groups)
def test_targets_are_the_responses_in_order(batch: list[Group]) -> None:
    packed = pack(batch)
    flat = [token for group in batch for response in group.responses for token in response]
    assert packed.targets.tolist() == flat
    assert packed.ids.shape == (len(batch), row_tokens(batch))
    # The state that predicts a response's first token stands on the prompt's last token.
    seen = packed.ids.t().flatten()[packed.hidden_index]
    assert int(seen[0]) == batch[0].prompt_ids[-1]


def test_prompts_without_a_shared_part_and_empty_responses_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        pack([Group([1], [[2]])])
    with pytest.raises(ValueError, match="group 1"):
        pack([Group([1, 2], [[3]]), Group([1, 2], [[]])])
