"""SmolLM2's byte-level BPE tokenizer out of a GGUF file, as a Hugging Face tokenizer folder.

One design choice: the tokenizer is assembled from the file's vocabulary and merges, because
transformers' own GGUF reader leaves out the splitting of numbers into digits that the model was
trained with ("\\n\\n1." would otherwise become other ids than it has seen).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from slime_ext.embedded.real.gguf_llama import field

if TYPE_CHECKING:
    import gguf

_CONTROL = 3
"""GGUF's token type of a special token."""


def write_tokenizer(reader: gguf.GGUFReader, folder: Path) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja` into `folder`.

    Raises ValueError where the file's tokenizer is of another kind than SmolLM2's.
    """
    kind = (field(reader, "tokenizer.ggml.model"), field(reader, "tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"tokenizer {kind} is not supported; expected ('gpt2', 'smollm')")
    tokens: list[str] = field(reader, "tokenizer.ggml.tokens")
    _build(reader, tokens).save(str(folder / "tokenizer.json"))
    template: str = field(reader, "tokenizer.chat_template")
    config: dict[str, Any] = {
        # The generic class keeps tokenizer.json as it is; GPT2Tokenizer rebuilds the splitting.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(field(reader, "llama.context_length")),
        "chat_template": template,
    }
    for role, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        config[f"{role}_token"] = tokens[int(field(reader, f"tokenizer.ggml.{key}_token_id"))]
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(template)


def _build(reader: gguf.GGUFReader, tokens: list[str]) -> Tokenizer:
    """The tokenizer of the file's vocabulary and merges."""
    merges = [tuple(pair.split(" ", 1)) for pair in field(reader, "tokenizer.ggml.merges")]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types: list[int] = field(reader, "tokenizer.ggml.token_type")
    special = [token for token, type_ in zip(tokens, types, strict=True) if type_ == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return tokenizer
