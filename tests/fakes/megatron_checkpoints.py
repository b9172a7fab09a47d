"""Checkpoints that megatron-core itself writes, sharded, beside the Hugging Face folders they came
from: `python -m tests.fakes.megatron_checkpoints OUT RANK` twice, for ranks 0 and 1.

One design choice: two processes write everything in one start, because importing megatron-core
costs more than all the checkpoints. Ranks meet in a file, so no port is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from tests.fakes.tiny_configs import FAMILIES, tiny_config

WORLD = 2
CASES = [
    (family, tied, layout)
    for family in FAMILIES
    for tied in (True, False)
    for layout in ("tp1", "tp2", "pp2", *(("ep2", "apart") if family == "qwen3_moe" else ()))
]
"""Family, tied, and how the model is cut; `apart` stores each expert, and each half of a gated
projection, under a key of its own (megatron-core's `singleton_local_shards`)."""


def shared(factory: Any) -> Path:
    """The folder of all cases, written once for all workers of one test run; `factory` is pytest's
    tmp_path_factory."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    base = factory.getbasetemp().parent if worker else factory.getbasetemp()
    out = base / "megatron_checkpoints"
    try:
        out.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + 240
        while not (out / "done").exists():
            assert time.monotonic() < deadline, "another worker did not write the checkpoints"
            time.sleep(0.2)
        return out
    write_all(out)
    (out / "done").touch()
    return out


def case_name(family: str, tied: bool) -> str:
    return f"{family}-{'tied' if tied else 'untied'}"


def write_all(out: Path) -> Path:
    """Write every case: `out/CASE/{hf,tp1,tp2,...}`, the checkpoint in `iter_0000007`."""
    command = [sys.executable, "-m", __name__, str(out)]
    root = Path(__file__).parent.parent.parent
    ranks = [
        subprocess.Popen([*command, str(rank)], cwd=root, stdout=subprocess.DEVNULL)
        for rank in range(WORLD)
    ]
    codes = [rank.wait(timeout=240) for rank in ranks]
    assert codes == [0] * WORLD
    return out


def random_weights(config: dict[str, Any], dtype: str = "bfloat16") -> dict[str, Any]:
    """Hugging Face tensors of a model, the same ones each time."""
    import torch

    from slime_ext.weights.names import expected_tensors
    from slime_ext.weights.shape import shape_from_config

    torch.manual_seed(0)
    expected = expected_tensors(shape_from_config(config))
    return {name: torch.randn(size).to(getattr(torch, dtype)) for name, size in expected.items()}


def write_reference(folder: Path, config: dict[str, Any]) -> None:
    """Write the model's Hugging Face folder: config.json and weights."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    save_file(random_weights(config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}, indent=2))


def _write_rank(out: Path, rank: int) -> None:
    import torch.distributed as dist

    from slime_ext.embedded.megatron_cpu import adapt

    adapt()
    store = dist.FileStore(str(out / "meet"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    if rank == 0:
        for family in FAMILIES:
            for tied in (True, False):
                write_reference(out / case_name(family, tied) / "hf", tiny_config(family, tied))
    for family, tied, layout in CASES:
        folder = out / case_name(family, tied) / layout / "iter_0000007"
        if rank == 0:
            folder.mkdir(parents=True)
        dist.barrier()
        _write_checkpoint(folder, tiny_config(family, tied), layout)
    dist.barrier()
    dist.destroy_process_group()


def _write_checkpoint(folder: Path, config: dict[str, Any], layout: str) -> None:
    from megatron.core import dist_checkpointing, parallel_state
    from megatron.core.tensor_parallel.random import initialize_rng_tracker

    from slime_ext.embedded.torch_dist import InProcessTorchDist
    from slime_ext.weights.shape import shape_from_config

    tp = 2 if layout == "tp2" else 1
    pp = 2 if layout == "pp2" else 1
    ep = 2 if layout in ("ep2", "apart") else 1
    parallel_state.destroy_model_parallel()
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        expert_model_parallel_size=ep,
        expert_tensor_parallel_size=tp,
    )
    initialize_rng_tracker(force_reset=True)
    shape = shape_from_config(config)
    padded = -(-shape.vocab_size // (128 * tp)) * 128 * tp
    model = _model(shape, padded, tp, pp, ep)
    _load(model, random_weights(config), shape, padded)
    metadata = {"singleton_local_shards": layout == "apart"}
    state = {
        "model": model.sharded_state_dict(metadata=metadata),
        "args": megatron_args(shape, padded, tp),
        "iteration": 7,
    }
    dist_checkpointing.save(state, str(folder), InProcessTorchDist())


def megatron_args(shape: Any, padded: int, tp: int) -> Namespace:
    """What Megatron writes down about the model, and what slime's converter reads."""
    return Namespace(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        ffn_hidden_size=shape.ffn_size,
        moe_ffn_hidden_size=shape.moe.ffn_size if shape.moe else None,
        num_attention_heads=shape.num_heads,
        num_query_groups=shape.num_kv_heads,
        group_query_attention=True,
        kv_channels=shape.head_dim,
        num_experts=shape.moe.num_experts if shape.moe else None,
        rotary_base=int(shape.rope_theta),
        norm_epsilon=shape.rms_norm_eps,
        untie_embeddings_and_output_weights=not shape.tied_embeddings,
        vocab_size=shape.vocab_size,
        padded_vocab_size=padded,
        make_vocab_size_divisible_by=128,
        tensor_model_parallel_size=tp,
        q_lora_rank=None,
    )


def _model(shape: Any, padded: int, tp: int, pp: int, ep: int) -> Any:
    import torch
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    experts: dict[str, Any] = {}
    if shape.moe:
        experts = {
            "num_moe_experts": shape.moe.num_experts,
            "moe_ffn_hidden_size": shape.moe.ffn_size,
            "moe_router_topk": shape.moe.top_k,
            "moe_token_dispatcher_type": "allgather",
            "expert_model_parallel_size": ep,
            "expert_tensor_parallel_size": tp,
        }
    config = TransformerConfig(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        num_attention_heads=shape.num_heads,
        num_query_groups=shape.num_kv_heads,
        kv_channels=shape.head_dim,
        ffn_hidden_size=shape.ffn_size,
        normalization="RMSNorm",
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        use_cpu_initialization=True,
        params_dtype=torch.bfloat16,
        bf16=True,
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        pipeline_dtype=torch.bfloat16,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
        **experts,
    )
    spec = get_gpt_layer_local_spec(
        num_experts=experts.get("num_moe_experts"),
        qk_layernorm=shape.qk_norm,
        normalization="RMSNorm",
    )
    return GPTModel(
        config=config,
        transformer_layer_spec=spec,
        vocab_size=padded,
        max_sequence_length=64,
        position_embedding_type="rope",
        share_embeddings_and_output_weights=shape.tied_embeddings,
        parallel_output=True,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
    ).bfloat16()


def _load(model: Any, weights: dict[str, Any], shape: Any, padded: int) -> None:
    """Copy this rank's part of the whole model into `model`, padding rows with 9."""
    import torch
    from megatron.core import parallel_state

    from slime_ext.weights.names import EMBEDDING, OUTPUT_LAYER, hf_to_megatron

    whole = hf_to_megatron(weights, shape)
    rank = parallel_state.get_tensor_model_parallel_rank()
    tp = parallel_state.get_tensor_model_parallel_world_size()
    first_expert = 0
    if shape.moe:
        local = shape.moe.num_experts // parallel_state.get_expert_model_parallel_world_size()
        first_expert = local * parallel_state.get_expert_model_parallel_rank()
    first_layer = parallel_state.get_pipeline_model_parallel_rank() * len(model.decoder.layers)
    for name, parameter in model.named_parameters():
        words = name.split(".")
        if words[1] == "layers":
            words[2] = str(int(words[2]) + first_layer)
        if "local_experts" in words:
            at = words.index("local_experts") + 1
            words[at] = str(int(words[at]) + first_expert)
        # The last of several stages has a copy of the embedding where the head is tied.
        live = EMBEDDING if name == OUTPUT_LAYER and shape.tied_embeddings else ".".join(words)
        full = whole[live]
        if name in (EMBEDDING, OUTPUT_LAYER):
            full = torch.nn.functional.pad(full, (0, 0, 0, padded - len(full)), value=9.0)
        parameter.data.copy_(_cut(name, full, tp, rank))


def _cut(name: str, full: Any, tp: int, rank: int) -> Any:
    """A tensor parallel rank's part: rows of column-parallel layers, columns of the others."""
    import torch

    if "norm" in name or "router" in name:
        return full
    if "linear_fc1" in name:
        return torch.cat([half.chunk(tp)[rank] for half in full.chunk(2)])
    if "linear_proj" in name or "linear_fc2" in name:
        return full.chunk(tp, 1)[rank]
    return full.chunk(tp)[rank]


if __name__ == "__main__":
    _write_rank(Path(sys.argv[1]), int(sys.argv[2]))
