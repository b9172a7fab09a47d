import json
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from slime_ext.embedded.lab.initialisation import initial_weights
from slime_ext.embedded.lab.render import prompt_text
from slime_ext.embedded.lab.start import (
    STARTS,
    builtin_model,
    lab_shape,
    start_files,
    write_start,
)
from slime_ext.embedded.lab.task import GraphSize, make_problem
from slime_ext.embedded.lab.vocabulary import CHUNK_MODE, VOCABULARY
from slime_ext.weights.shape import read_shape


def test_written_start_loads_in_transformers(tmp_path):
    weights = initial_weights(lab_shape(), seed=0)
    write_start(tmp_path / "start", weights)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "start")
    assert sum(p.numel() for p in model.parameters()) == 108_416
    state = model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in weights.items())
    assert (
        model.config.eos_token_id == AutoTokenizer.from_pretrained(tmp_path / "start").eos_token_id
    )
    assert read_shape(tmp_path / "start") == lab_shape()


@pytest.mark.parametrize("name", sorted(STARTS))
def test_shipped_start_is_complete_and_small(name):
    files = start_files(name)
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert read_shape(builtin_model(name)) == lab_shape()
    tokens = json.loads(files[2].read_text())["model"]["vocab"]
    assert sorted(tokens, key=tokens.__getitem__) == list(VOCABULARY)


def test_unknown_start_is_refused():
    with pytest.raises(ValueError, match=r"'lab-xs'.*lab-hs"):
        builtin_model("lab-xs")


def test_shipped_start_answers_in_the_format_and_mostly_wrong():
    folder = builtin_model("lab-hs")
    model, tokenizer = (c.from_pretrained(folder) for c in (AutoModelForCausalLM, AutoTokenizer))
    rng = random.Random(0)
    prompts, answers = [], []
    while len(prompts) < 24:
        document, question = make_problem(rng, GraphSize(), 4)
        prompts.append(f"<bos> {prompt_text(str(document), str(question), CHUNK_MODE)}")
        answers.append(question.answer)
    inputs = tokenizer(prompts, return_tensors="pt")
    out = model.generate(**inputs, max_new_tokens=48, do_sample=False)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :])
    formed = [text for text in texts if text.count("<answer>") == text.count("<eos>") == 1]
    right = [f"<answer> {a} </answer>" in t for t, a in zip(texts, answers, strict=True)]
    assert len(formed) >= 22
    assert sum(right) <= 12
