"""The model that a run ends with is its newest checkpoint, as the trainer would have written it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from slime_ext.embedded.final_model import export_newest
from slime_ext.embedded.trainer import Trainer
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.hf_folder import read_hf
from tests.slime_ext.conftest import tiny_model


@pytest.mark.parametrize("kind", ["qwen3-tied", "llama-untied-scaled"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_it_is_what_the_trainer_holds(
    kind: str, dtype: str, make_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    tiny_model(kind).to(getattr(torch, dtype)).save_pretrained(tmp_path / "model")
    trainer = Trainer(tmp_path / "model", make_recipe())
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.mul_(1.001)
    run = RunFolder(tmp_path / "run")
    trainer.save(run.checkpoints)
    report = export_newest(trainer, run)
    assert (report.optimiser_tensors > 0, report.extra) == (True, ())
    trainer.export(tmp_path / "direct")
    found, direct = read_hf(run.hf), read_hf(tmp_path / "direct")
    assert found.keys() == direct.keys()
    for name, tensor in direct.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert str(AutoModelForCausalLM.from_pretrained(run.hf).dtype) == f"torch.{dtype}"


def test_an_older_model_is_replaced(
    model_folder: Path, make_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    trainer = Trainer(model_folder, make_recipe())
    run = RunFolder(tmp_path / "run")
    run.hf.mkdir(parents=True)
    (run.hf / "stale.safetensors").touch()
    trainer.save(run.checkpoints)
    export_newest(trainer, run)
    assert sorted(path.name for path in run.path.iterdir()) == ["checkpoints", "hf"]
    assert not (run.hf / "stale.safetensors").exists()
