"""A GGUF file comes back as the checkpoint and the tokenizer it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slime_ext.embedded.real.gguf_llama import (
    field,
    hf_name,
    llama_config,
    llama_tensors,
    split_rotary_halves,
)
from slime_ext.embedded.real.gguf_tokenizer import write_tokenizer
from slime_ext.weights.shape import shape_from_config


@pytest.fixture
def reader(toy: tuple) -> Any:
    from gguf import GGUFReader

    return GGUFReader(toy[0])


def test_every_tensor_comes_back_under_its_name(toy: tuple, reader: Any) -> None:
    weights = toy[1]
    read = dict(llama_tensors(reader))
    assert read.keys() == weights.keys()
    for name, value in weights.items():
        assert read[name].dtype == np.float32
        if "embed_tokens" in name:
            # Q8_0 keeps 32 values in steps of their largest / 127.
            assert np.abs(read[name] - value).max() <= np.abs(value).max() / 127
        else:
            np.testing.assert_array_equal(read[name], value)


def test_rotary_pairs_are_moved_half_a_head_apart() -> None:
    stored = np.array([[0], [2], [1], [3], [10], [12], [11], [13]], dtype=np.float32)
    assert split_rotary_halves(stored, heads=2).ravel().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_the_shape_is_that_of_the_file(reader: Any) -> None:
    shape = shape_from_config(llama_config(reader))
    assert (shape.num_layers, shape.num_heads, shape.num_kv_heads, shape.head_dim) == (2, 2, 1, 16)
    assert (shape.hidden_size, shape.ffn_size, shape.rms_norm_eps) == (32, 64, 1e-5)
    assert shape.tied_embeddings
    assert shape.rope_theta == 100_000.0


def test_an_unknown_tensor_or_key_is_named(reader: Any) -> None:
    with pytest.raises(KeyError, match="attn_qkv"):
        hf_name("blk.0.attn_qkv.weight")
    with pytest.raises(KeyError, match=r"llama\.expert_count"):
        field(reader, "llama.expert_count")


def test_the_tokenizer_splits_numbers_before_words(reader: Any, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    write_tokenizer(reader, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    # Without the digit rule the last line feed would stay with the number and "ĊĊ" never form.
    assert tokenizer.tokenize("ab a\n\n12.") == ["ab", "Ġa", "ĊĊ", "1", "2", "."]
    text = "ab a, 120.\n\n7 b"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer.model_max_length == 128
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], return_dict=False)
    assert tokenizer.convert_ids_to_tokens(ids) == ["<|im_start|>", "ab", "<|im_end|>"]
