"""Our export of a sharded, padded checkpoint is bitwise what slime's own converter makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from slime_ext.weights.export.plan import plan_export, refuse_extra
from slime_ext.weights.export.write import export_weights
from slime_ext.weights.hf_folder import read_hf
from slime_ext.weights.shape import shape_from_config
from tests.fakes.stacked_checkpoints import write_stacked
from tests.fakes.tiny_configs import FAMILIES, tiny_config


@pytest.mark.parametrize("family", FAMILIES)
def test_both_write_the_same_tensors(family: str, slime_dir: Path, tmp_path: Path) -> None:
    config = tiny_config(family, tied=family == "qwen2")
    checkpoint = write_stacked(tmp_path / "iter_0000001", shape_from_config(config), tp=2)
    reference = tmp_path / "base"
    reference.mkdir()
    (reference / "config.json").write_text(json.dumps(config))
    tool = slime_dir / "tools" / "convert_torch_dist_to_hf.py"
    words = ["--input-dir", checkpoint, "--output-dir", tmp_path / "slimes"]
    words += ["--origin-hf-dir", reference, "--vocab-size", config["vocab_size"]]
    command = [sys.executable, str(tool), *map(str, words)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    if "No module named 'triton'" in done.stderr:
        pytest.skip("this slime's converter needs triton")
    assert done.returncode == 0, done.stderr
    plan = plan_export(checkpoint, config)
    refuse_extra(plan)
    export_weights(plan, tmp_path / "ours", lambda folder: None)
    ours, slimes = read_hf(tmp_path / "ours"), {}
    for path in (tmp_path / "slimes").glob("*.safetensors"):
        slimes |= load_file(path)
    assert ours.keys() == slimes.keys()
    for name, tensor in slimes.items():
        assert torch.equal(ours[name], tensor), name
