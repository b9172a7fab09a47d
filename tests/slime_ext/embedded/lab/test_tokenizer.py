import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from slime_ext.embedded.lab.tokenizer import build_tokenizer, save_tokenizer
from slime_ext.embedded.lab.vocabulary import SPECIAL, TOKEN_IDS, VOCABULARY, token_ids

TOKENIZER = build_tokenizer()
IDS = st.lists(st.integers(0, len(VOCABULARY) - 1), min_size=1, max_size=80)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(folder, 1024)
    return AutoTokenizer.from_pretrained(folder)


def test_vocabulary_has_151_words_in_four_parts():
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 23 + 48 + 16 + 64
    assert VOCABULARY[0] == "<pad>"
    assert VOCABULARY[23] == "<CHUNK_0>"
    assert VOCABULARY[23 + 48] == "rel0"
    assert VOCABULARY[23 + 48 + 16] == "ent0"


@given(IDS)
def test_decoding_joins_words_with_single_spaces_and_encoding_inverts_it(ids):
    text = TOKENIZER.decode(ids, skip_special_tokens=False)
    assert text == " ".join(VOCABULARY[i] for i in ids)
    assert TOKENIZER.encode(text).ids == ids == token_ids(text)


@given(IDS)
def test_only_pad_bos_and_eos_are_dropped_by_decoding(ids):
    kept = [VOCABULARY[i] for i in ids if VOCABULARY[i] not in SPECIAL]
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == " ".join(kept)


def test_auto_tokenizer_agrees_with_the_vocabulary(loaded):
    words = list(VOCABULARY)
    random.Random(0).shuffle(words)
    ids = [TOKEN_IDS[word] for word in words]
    assert loaded(" ".join(words))["input_ids"] == ids
    assert loaded.decode(ids) == " ".join(words)
    assert len(loaded) == len(VOCABULARY)
    assert (loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id) == (0, 1, 2)
    assert sorted(loaded.all_special_tokens) == sorted(SPECIAL)
    assert loaded.model_max_length == 1024


def test_chat_template_puts_begin_before_the_contents(loaded):
    messages = [{"role": "user", "content": "<q> ent3 rel1 </q> <m_chunk>"}]
    for generation in (False, True):
        text = loaded.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=generation
        )
        assert text == "<bos> <q> ent3 rel1 </q> <m_chunk>"
    encoded = loaded.apply_chat_template(messages, tokenize=True, return_dict=True)
    assert encoded["input_ids"] == token_ids(text)


def test_unknown_words_are_refused(loaded):
    with pytest.raises(ValueError, match=r"'ent64' is no word of the lab.*ent63"):
        token_ids("ent3 ent64")
    with pytest.raises(Exception, match=r"UNK"):
        loaded("hello")
