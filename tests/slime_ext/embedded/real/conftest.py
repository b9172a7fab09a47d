"""A GGUF file with SmolLM2's metadata at toy size, and the weights it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, FFN, LAYERS = 2, 1, 16, 32, 64, 2
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ a", "Ċ Ċ", "a b"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"

LAYER_TENSORS = [
    ("attn_norm", "input_layernorm", (HIDDEN,)),
    ("attn_q", "self_attn.q_proj", (HEADS * HEAD_DIM, HIDDEN)),
    ("attn_k", "self_attn.k_proj", (KV_HEADS * HEAD_DIM, HIDDEN)),
    ("attn_v", "self_attn.v_proj", (KV_HEADS * HEAD_DIM, HIDDEN)),
    ("attn_output", "self_attn.o_proj", (HIDDEN, HEADS * HEAD_DIM)),
    ("ffn_norm", "post_attention_layernorm", (HIDDEN,)),
    ("ffn_gate", "mlp.gate_proj", (FFN, HIDDEN)),
    ("ffn_up", "mlp.up_proj", (FFN, HIDDEN)),
    ("ffn_down", "mlp.down_proj", (HIDDEN, FFN)),
]


def vocabulary() -> list[str]:
    """Specials, the printable stand-ins of the bytes the tests use, merged tokens."""
    merged = [pair.replace(" ", "") for pair in MERGES]
    return [*SPECIALS, *"Ġ", "Ċ", *"abcdefghijklmnopqrstuvwxyz0123456789.,", *merged]


def tensors() -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(GGUF name, Hugging Face name, shape) of every tensor."""
    yield "token_embd.weight", "model.embed_tokens.weight", (len(vocabulary()), HIDDEN)
    yield "output_norm.weight", "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        for short, long, shape in LAYER_TENSORS:
            yield f"blk.{layer}.{short}.weight", f"model.layers.{layer}.{long}.weight", shape


def interleaved(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of each head as GGUF stores them: 0, d/2, 1, d/2 + 1, ..."""
    half = HEAD_DIM // 2
    order = [row for pair in zip(range(half), range(half, HEAD_DIM), strict=True) for row in pair]
    heads = range(weight.shape[0] // HEAD_DIM)
    return weight[[head * HEAD_DIM + row for head in heads for row in order]]


def add_tokenizer(writer: Any) -> None:
    """SmolLM2's kind of tokenizer over the toy vocabulary."""
    tokens = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIALS else 1 for token in tokens])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Weights]:
    """The file and its weights under Hugging Face names; embeddings are stored as Q8_0."""
    gguf = pytest.importorskip("gguf", reason="needs the gguf package: pip install -e .[real]")
    path = tmp_path_factory.mktemp("gguf") / "toy.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100_000.0)
    writer.add_vocab_size(len(vocabulary()))
    add_tokenizer(writer)
    random = np.random.default_rng(0)
    weights: Weights = {}
    for short, long, shape in tensors():
        value = random.normal(size=shape).astype(np.float32) * 0.1
        if "embd" in short:
            packed = gguf.quantize(value, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(short, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            rotary = "attn_q" in short or "attn_k" in short
            writer.add_tensor(short, interleaved(value) if rotary else value)
        weights[long] = value
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, weights
