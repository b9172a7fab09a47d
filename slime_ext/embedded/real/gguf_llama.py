"""A Llama checkpoint out of a GGUF file: config and fp32 tensors under Hugging Face names.

One design choice: each quantised tensor is expanded by the `gguf` package and renamed by one table,
not loaded as a model, so that conversion needs no torch and peaks at one fp32 copy of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import gguf

_GLOBAL_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def field(reader: gguf.GGUFReader, key: str) -> Any:
    """The value of one metadata key. Raises KeyError naming the key where the file lacks it."""
    entry = reader.get_field(key)
    if entry is None:
        raise KeyError(f"the GGUF file has no key {key!r}")
    return entry.contents()


def llama_config(reader: gguf.GGUFReader) -> dict[str, Any]:
    """`config.json` of the checkpoint, as both transformers 4 and 5 read it.

    Raises ValueError where the file holds another architecture than Llama.
    """
    architecture = field(reader, "general.architecture")
    if architecture != "llama":
        raise ValueError(f"general.architecture = {architecture!r}; only llama can be converted")
    heads = int(field(reader, "llama.attention.head_count"))
    hidden = int(field(reader, "llama.embedding_length"))
    theta = float(field(reader, "llama.rope.freq_base"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": int(field(reader, "tokenizer.ggml.bos_token_id")),
        "eos_token_id": int(field(reader, "tokenizer.ggml.eos_token_id")),
        "pad_token_id": int(field(reader, "tokenizer.ggml.padding_token_id")),
        "dtype": "float32",
        "torch_dtype": "float32",
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.041666666666666664,
        "intermediate_size": int(field(reader, "llama.feed_forward_length")),
        "max_position_embeddings": int(field(reader, "llama.context_length")),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": int(field(reader, "llama.block_count")),
        "num_key_value_heads": int(field(reader, "llama.attention.head_count_kv")),
        # The file stores float32(1e-5); six digits give back the number that was written.
        "rms_norm_eps": float(f"{field(reader, 'llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "use_cache": True,
        "vocab_size": int(field(reader, "llama.vocab_size")),
    }


def hf_name(name: str) -> str:
    """Hugging Face name of a GGUF tensor: "blk.3.attn_q.weight" is layer 3's q_proj weight.

    Raises KeyError for a tensor that a dense Llama does not have.
    """
    parts = name.split(".")
    if len(parts) == 2 and parts[0] in _GLOBAL_NAMES:
        return f"{_GLOBAL_NAMES[parts[0]]}.{parts[1]}"
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{parts[3]}"
    raise KeyError(f"tensor {name!r} is not part of a dense Llama checkpoint")


def split_rotary_halves(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """A query or key matrix [heads * d, in] with its rows in Hugging Face's order.

    GGUF keeps the two members of a rotary pair in neighbouring rows (2i, 2i + 1 of a head), Hugging
    Face half a head apart (i, i + d / 2).
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, columns))


def llama_tensors(reader: gguf.GGUFReader) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """(Hugging Face name, fp32 array [out, in] or [n]) of each tensor, one at a time.

    Needs the `gguf` package, which only this conversion uses.
    """
    from gguf import dequantize

    heads = {
        "attn_q": int(field(reader, "llama.attention.head_count")),
        "attn_k": int(field(reader, "llama.attention.head_count_kv")),
    }
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        kind = tensor.name.split(".")[-2]
        if kind in heads:
            values = split_rotary_halves(values, heads[kind])
        yield hf_name(tensor.name), np.ascontiguousarray(values, dtype=np.float32)
