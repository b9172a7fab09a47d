"""An interrupted export leaves whole files only, and goes on with the same command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from slime_ext.weights.export import write
from slime_ext.weights.export.plan import ExportPlan, plan_export
from slime_ext.weights.export.stream import TensorStream
from slime_ext.weights.export.write import ExportError, export_weights
from slime_ext.weights.hf_folder import read_hf

Case = Callable[[str, bool, str], tuple[Path, dict[str, Any]]]
SHARD = 30_000
ROOT = Path(__file__).parents[4]


@pytest.fixture
def plan(case: Case) -> ExportPlan:
    return plan_export(*case("qwen3", False, "tp2"))


def nothing(folder: Path) -> None:
    pass


def interrupt_at(monkeypatch: pytest.MonkeyPatch, tensor: str) -> None:
    """Let the export be interrupted while it writes `tensor`."""
    blocks = TensorStream.blocks

    def interrupted(self: TensorStream, planned: Any) -> Iterator[memoryview]:
        for block in blocks(self, planned):
            yield block[: len(block) // 2]
            if planned.name == tensor:
                raise KeyboardInterrupt
            yield block[len(block) // 2 :]

    monkeypatch.setattr(TensorStream, "blocks", interrupted)


def test_it_goes_on_with_the_file_it_was_writing(
    plan: ExportPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupt_at(patch, "model.norm.weight")
        with pytest.raises(KeyboardInterrupt):
            export_weights(plan, out, nothing, SHARD)
    partial = tmp_path / "out.partial"
    there = {path.name: path.stat().st_mtime_ns for path in partial.glob("*.safetensors*")}
    assert there
    assert not out.exists()
    assert list(partial.glob("*.writing")) == []
    assert list(partial.glob("*.index.json")) == []
    (partial / "model-00005-of-00005.safetensors.writing").write_bytes(b"left by a kill")
    report = export_weights(plan, out, nothing, SHARD)
    assert report.kept == len(there) < len(report.files)
    assert {name: (out / name).stat().st_mtime_ns for name in there} == there
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    expected = load_file(plan.checkpoint.folder.parent.parent / "hf" / "model.safetensors")
    found = read_hf(out)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("changed", ["checkpoint", "dtype"])
def test_files_of_another_export_are_not_kept(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    source, config = case("qwen3", False, "tp2")
    checkpoint = shutil.copytree(source, tmp_path / source.name)
    with monkeypatch.context() as patch:
        interrupt_at(patch, "model.norm.weight")
        with pytest.raises(KeyboardInterrupt):
            export_weights(plan_export(checkpoint, config), tmp_path / "out", nothing, SHARD)
    if changed == "checkpoint":
        (checkpoint / "common.pt").touch()
    dtype = "float32" if changed == "dtype" else "bfloat16"
    plan = plan_export(checkpoint, config, dtype)
    assert export_weights(plan, tmp_path / "out", nothing, SHARD).kept == 0


def test_a_damaged_file_is_written_again(plan: ExportPlan, tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError(5, "no more")

    with pytest.raises(ExportError, match="5 of 5 files are done and will be kept"):
        export_weights(plan, tmp_path / "out", fail, SHARD)
    first, second = sorted((tmp_path / "out.partial").glob("*.safetensors"))[:2]
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(b"x" * second.stat().st_size)
    assert export_weights(plan, tmp_path / "out", nothing, SHARD).kept == 3


def test_a_folder_with_something_in_it_is_left_alone(plan: ExportPlan, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export_weights(plan, tmp_path / "out", nothing)
    before = (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(ExportError, match="exists and is not empty"):
        export_weights(plan, tmp_path / "out", nothing)
    assert (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns == before


def test_a_disk_known_to_be_too_small_is_refused_before_writing(
    plan: ExportPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=plan.nbytes - 1)
    monkeypatch.setattr(write.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ExportError, match="GB free; free space, or name a folder on another disk"):
        export_weights(plan, tmp_path / "out", nothing)


def run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_leaves_whole_files_only(made: Path, tmp_path: Path) -> None:
    """On a real file system of 100 KB, in a mount namespace of its own."""
    filling = (
        f"{sys.executable} -m tests.slime_ext.weights.export.filling {made} {tmp_path}/disk/out"
    )
    mount = f"mount -t tmpfs -o size=100k tmpfs {tmp_path}/disk && {filling}"
    (tmp_path / "disk").mkdir()
    space = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    probe = subprocess.run(
        [*space, f"mount -t tmpfs -o size=100k tmpfs {tmp_path}/disk"], capture_output=True
    )
    if probe.returncode:
        pytest.skip("this machine lets nobody mount a file system of his own")
    said = run([*space, mount])
    assert "No space left on device" in said
    assert "of 5 files are done and will be kept" in said
    assert "left: export.sha256 model-00001-of-00005.safetensors" in said
    assert ".writing" not in said


def test_a_file_size_limit_leaves_whole_files_only(made: Path, tmp_path: Path) -> None:
    said = run(
        [
            *("bash", "-c", 'ulimit -f 16; exec "$@"', "bash", sys.executable, "-m"),
            *("tests.slime_ext.weights.export.filling", str(made), str(tmp_path / "out")),
        ]
    )
    assert "File too large" in said
    assert "left: export.sha256\n" in said
