"""The decoder against transformers, and what it refuses to load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from slime_ext.embedded.engine.cache import WaveCache
from slime_ext.embedded.engine.model import Decoder, _passes

PROMPTS = [[5, 6, 7], list(range(3, 43)), list(range(10, 55)), list(range(8, 53))]
LINE_OF = [0, 0, 0, 1, 2, 3, 3]


@torch.no_grad()
def reference(model: torch.nn.Module, tokens: list[int]) -> torch.Tensor:
    return model(torch.tensor([tokens])).logits[0, -1]


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_match_transformers_through_prefill_decode_and_dropping(make_model, kind, tied):
    folder, model = make_model(kind, tied)
    decoder = Decoder(folder)
    cache = WaveCache(decoder.shape, [len(p) for p in PROMPTS], LINE_OF)
    logits = decoder.prefill([torch.tensor(p) for p in PROMPTS], cache)
    for row, prompt in enumerate(PROMPTS):
        torch.testing.assert_close(logits[row], reference(model, prompt), atol=1e-4, rtol=0)
    texts = [list(PROMPTS[line]) for line in LINE_OF]
    generator = torch.Generator().manual_seed(0)
    for step in range(90):
        tokens = torch.randint(0, decoder.shape.vocab_size, (len(texts),), generator=generator)
        for text, token in zip(texts, tokens.tolist(), strict=True):
            text.append(token)
        logits = decoder.decode(tokens, cache)
        if step in (0, 30, 66, 89):
            for row, text in enumerate(texts):
                torch.testing.assert_close(logits[row], reference(model, text), atol=1e-4, rtol=0)
        kept = {20: [0, 2, 3, 5, 6], 50: [1, 4], 70: [0]}.get(step)
        if kept is not None:
            cache.keep(torch.tensor(kept))
            texts = [texts[i] for i in kept]
    assert cache.prompt.shape[2] == 1
    assert cache.prompt.shape[4] == len(PROMPTS[0])


def test_a_sharded_folder_gives_the_same_logits(make_model):
    whole, _ = make_model(tied=False)
    sharded, _ = make_model(tied=False, max_shard_size="20KB")
    assert (sharded / "model.safetensors.index.json").is_file()
    prompt = [torch.tensor([4, 5, 6])]
    results = []
    for folder in (whole, sharded):
        decoder = Decoder(folder)
        results.append(decoder.prefill(prompt, WaveCache(decoder.shape, [3], [0])))
    assert torch.equal(*results)


def test_reload_takes_new_weights_and_keeps_the_old_where_it_refuses(make_model, tmp_path):
    folder, _ = make_model()
    other, model = make_model(seed=1)
    decoder = Decoder(folder)

    def logits() -> torch.Tensor:
        return decoder.prefill([torch.tensor([7, 8])], WaveCache(decoder.shape, [2], [0]))[0]

    before = logits()
    decoder.reload(other)
    torch.testing.assert_close(logits(), reference(model, [7, 8]), atol=1e-4, rtol=0)
    assert not torch.allclose(logits(), before, atol=1e-2)
    untied, _ = make_model(tied=False)
    with pytest.raises(ValueError, match="another shape"):
        decoder.reload(untied)
    broken = shutil.copytree(folder, tmp_path / "broken")
    tensors = load_file(broken / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, broken / "model.safetensors")
    with pytest.raises(ValueError, match=r"no tensor 'model\.norm\.weight'"):
        decoder.reload(broken)
    torch.testing.assert_close(logits(), reference(model, [7, 8]), atol=1e-4, rtol=0)


def test_weights_survive_that_their_file_is_overwritten(make_model, tmp_path):
    source, _ = make_model()
    folder = shutil.copytree(source, tmp_path / "model")
    decoder = Decoder(folder)
    prompt, shape = [torch.tensor([9, 9])], decoder.shape
    before = decoder.prefill(prompt, WaveCache(shape, [2], [0]))
    file = folder / "model.safetensors"
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.write(b"\0" * size)
    assert torch.equal(decoder.prefill(prompt, WaveCache(shape, [2], [0])), before)


def test_a_wrong_shape_is_named(folder: Path, tmp_path: Path):
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    config = json.loads((broken / "config.json").read_text())
    config["intermediate_size"] = 40
    (broken / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"gate_proj\.weight has shape \[48, 32\].*\[40, 32\]"):
        Decoder(broken)
    (broken / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        Decoder(broken)


def test_prefill_passes_cover_every_prompt_once_without_much_padding():
    lengths = [3, 100, 100, 110, 500, 3000, 3000]
    passes = _passes(lengths)
    assert [i for first, end in passes for i in range(first, end)] == list(range(len(lengths)))
    assert (1, 4) in passes
    assert (5, 6) in passes
