"""The model that slime builds, rotated as config.json says, against transformers."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tomli_w
import torch

from slime_ext.embedded.model import transformer_config
from slime_ext.host.model_provider import scaled_rope_model, stated_shape
from slime_ext.weights.hf_folder import read_hf
from slime_ext.weights.names import hf_to_megatron
from slime_ext.weights.rope_config import YarnRope
from slime_ext.weights.shape import read_shape

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}


def save_model(folder: Path, rope: dict[str, Any]) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=97,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=128,
        rope_parameters=rope,
    )
    model = Qwen3ForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        parameter.data.uniform_(0.5, 1.5) if "norm" in name else parameter.data.normal_(0, 0.15)
    model.save_pretrained(folder)
    return model


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    """slime's provider and Megatron's arguments, as far as ours uses them."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel

    from slime_ext.embedded import megatron_cpu

    megatron_cpu.init_single_process()
    given = Namespace(custom_model_provider_path="ours", softmax_scale=None)

    def get_model_provider_func(args: Namespace) -> Any:
        assert args.custom_model_provider_path is None

        def provider(pre_process: bool, post_process: bool) -> Any:
            shape = replace(read_shape(Path(args.hf_checkpoint)), rope_scaling=None)
            config = replace(transformer_config(shape), softmax_scale=args.softmax_scale)
            return GPTModel(
                config=config,
                transformer_layer_spec=get_gpt_layer_local_spec(
                    qk_layernorm=True, normalization="RMSNorm"
                ),
                vocab_size=shape.vocab_size,
                max_sequence_length=shape.max_position_embeddings,
                pre_process=pre_process,
                post_process=post_process,
                position_embedding_type="rope",
                rotary_base=shape.rope_theta,
                share_embeddings_and_output_weights=shape.tied_embeddings,
            )

        return provider

    training = ModuleType("megatron.training")
    training.get_args = lambda: given  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "megatron.training", training)
    path = "slime.backends.megatron_utils.model_provider"
    for end in (1, 2, 3, 4):
        name = ".".join(path.split(".")[:end])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules[path].get_model_provider_func = get_model_provider_func  # type: ignore[attr-defined]
    return given


@pytest.mark.parametrize("rope", [YARN, LLAMA3], ids=["yarn", "llama3"])
def test_logits_equal_those_of_transformers(
    rope: dict[str, Any], tmp_path: Path, host: Any
) -> None:
    reference = save_model(tmp_path / "model", rope)
    host.hf_checkpoint = str(tmp_path / "model")
    shape = read_shape(tmp_path / "model")
    model = scaled_rope_model()
    weights = hf_to_megatron(read_hf(tmp_path / "model"), shape)
    model.load_state_dict(weights, strict=False)
    # Beyond the original context, where scaling changes every score.
    ids = torch.randint(0, 97, (1, 128), generator=torch.Generator().manual_seed(1))
    hidden = torch.ones(128, 128, dtype=torch.bool).triu(1)[None, None]
    with torch.no_grad():
        ours = model(ids, torch.arange(128)[None], hidden)
        theirs = reference(ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert host.custom_model_provider_path == "ours"
    assert host.softmax_scale is None


def test_the_recipes_scaling_stands_in_for_the_models(tmp_path: Path, make_recipe: Any) -> None:
    save_model(tmp_path / "model", YARN)
    args = Namespace(hf_checkpoint=str(tmp_path / "model"))
    assert stated_shape(args).rope_scaling == YarnRope(4.0, 32)
    recipe = make_recipe(model={"rope_scaling": {"rope_type": "default"}})
    write = json.loads(recipe.model_dump_json(exclude_none=True))
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(write))
    args.longrl_recipe = str(tmp_path / "recipe.toml")
    assert stated_shape(args).rope_scaling is None


def test_bridge_mode_is_refused(host: Any) -> None:
    host.megatron_to_hf_mode = "bridge"
    with pytest.raises(ValueError, match="--megatron-to-hf-mode raw"):
        scaled_rope_model()
