"""The lab's tokenizer as a standard Hugging Face folder.

One design choice: it is an ordinary `tokenizer.json`, so engine, trainer and export meet it through
`AutoTokenizer` like any other model's. Only padding, begin and end are special: decoding with
`skip_special_tokens=True` keeps the tags and chunk ids that rewards read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from slime_ext.embedded.lab.vocabulary import BOS, EOS, PAD, SPECIAL, TOKEN_IDS

CHAT_TEMPLATE = (
    "{{ bos_token }}{%- for message in messages %}{{ ' ' + message['content'] }}{%- endfor %}"
)
"""`<bos>` and the contents, one space apart; the lab has no roles and no generation prompt."""


def build_tokenizer() -> Tokenizer:
    """A word-level tokenizer over the lab's vocabulary.

    Decoding joins words with single spaces. Encoding raises for an unknown word (no unknown token
    exists: a word the model never saw would be silent noise).
    """
    tokenizer = Tokenizer(WordLevel(dict(TOKEN_IDS)))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word in SPECIAL])
    return tokenizer


def tokenizer_config(max_positions: int) -> dict[str, Any]:
    """The contents of `tokenizer_config.json`; `max_positions` is the model's context in tokens."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_positions,
        "chat_template": CHAT_TEMPLATE,
    }


def save_tokenizer(folder: Path, max_positions: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into `folder`, which must exist."""
    build_tokenizer().save(str(folder / "tokenizer.json"))
    config = json.dumps(tokenizer_config(max_positions), indent=2)
    (folder / "tokenizer_config.json").write_text(config + "\n")
