"""slime's own converter on our checkpoints: the same bits as ours, and Qwen3.5 through it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from longrl_tools.export.by_slime import export_by_slime
from longrl_tools.export.check import Depth, check_folder
from longrl_tools.export.convert import Options, convert
from longrl_tools.export.import_hf import import_folder
from longrl_tools.export.source import find_source

from tests.fakes.hybrid_checkpoints import write_folder, write_hybrid
from tests.fakes.tiny_configs import FAMILIES
from tests.tools.export.folders import make_folder, read_tensors


@pytest.fixture(autouse=True)
def converter(slime_dir: Path) -> None:
    """Older converters import triton, which has no CPU."""
    names = "slime.backends.megatron_utils.megatron_to_hf"
    loaded = subprocess.run([sys.executable, "-c", f"import {names}"], capture_output=True)
    if b"No module named 'triton'" in loaded.stderr:
        pytest.skip("this slime's converter needs triton")


@pytest.mark.parametrize("family", FAMILIES)
def test_an_imported_folder_comes_back_through_slimes_converter(
    slime_dir: Path, tmp_path: Path, family: str
) -> None:
    folder = make_folder(tmp_path / "hf", family)
    checkpoint = import_folder(folder, tmp_path / "start").checkpoint
    source = find_source(checkpoint, folder)
    export_by_slime(source, tmp_path / "out", slime_dir, "bfloat16", 2**30)
    before, after = read_tensors(folder), read_tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_qwen3_5_is_exported_and_checked(slime_dir: Path, tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base")
    checkpoint = write_hybrid(tmp_path / "iter_0000003", base)
    done = convert(checkpoint, tmp_path / "out", Options(reference=base, slime=slime_dir))
    found = check_folder(tmp_path / "out", done.against, Depth(values=True, load=True))
    assert found.faults == []
    before, after = read_tensors(base), read_tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
