"""The Megatron model against transformers, for every architecture it stands for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from slime_ext.embedded.model import build_model, model_weights
from slime_ext.weights.names import hf_to_megatron, megatron_shapes, megatron_to_hf
from slime_ext.weights.shape import ModelShape, shape_from_config


def shape_of(hf_model: Any) -> ModelShape:
    return shape_from_config(
        {**hf_model.config.to_dict(), "architectures": [type(hf_model).__name__]}
    )


def test_log_probs_equal_transformers(hf_model: Any) -> None:
    shape = shape_of(hf_model)
    model = build_model(shape, hf_to_megatron(hf_model.state_dict(), shape))
    torch.manual_seed(1)
    ids = torch.randint(shape.vocab_size, (3, 200))
    ours = model.logits(ids, torch.arange(200).expand(3, 200))
    theirs = hf_model(ids).logits
    assert theirs.std() > 0.5
    torch.testing.assert_close(ours.log_softmax(-1), theirs.log_softmax(-1), rtol=0, atol=1e-4)


def test_positions_are_per_row(hf_model: Any) -> None:
    shape = shape_of(hf_model)
    model = build_model(shape, hf_to_megatron(hf_model.state_dict(), shape))
    ids = torch.randint(shape.vocab_size, (2, 20))
    # Stretched in one row, so that relative distances differ too.
    positions = torch.stack((torch.arange(20), 3 * torch.arange(20) + 7))
    both = model.logits(ids, positions)
    for row in range(2):
        alone = hf_model(ids[row : row + 1], position_ids=positions[row : row + 1]).logits
        torch.testing.assert_close(both[row : row + 1], alone, rtol=0, atol=1e-4)
    assert (both[1] - model.logits(ids, positions[:1].expand(2, 20))[1]).abs().max() > 1e-2


def test_weights_leave_the_model_as_they_came(hf_model: Any) -> None:
    shape = shape_of(hf_model)
    model = build_model(shape, hf_to_megatron(hf_model.state_dict(), shape))
    assert {n: tuple(t.shape) for n, t in model_weights(model).items()} == megatron_shapes(shape)
    state = megatron_to_hf(model_weights(model), shape)
    source = hf_model.state_dict()
    assert all(torch.equal(tensor, source[name]) for name, tensor in state.items())


def test_weights_of_another_model_are_refused(hf_model: Any) -> None:
    shape = shape_of(hf_model)
    weights = hf_to_megatron(hf_model.state_dict(), shape)
    del weights["decoder.final_layernorm.weight"]
    with pytest.raises(ValueError, match="final_layernorm"):
        build_model(shape, weights)
