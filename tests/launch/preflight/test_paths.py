"""What is absent fails here and is skipped offline; characters that a shell takes apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from launch.preflight.paths import check_paths
from tests.launch.preflight.conftest import MakeContext, named


def test_all_is_there(make: MakeContext, host: Path) -> None:
    context = make()
    findings = check_paths(context.recipe, context)
    assert {one.status for one in findings} == {"pass"}, findings
    assert {one.name for one in findings} == {
        "model", "data", "slime.path", "slime.megatron_path", "characters", "run folder",
    }  # fmt: skip


def test_what_is_absent_fails_here_with_a_remedy(make: MakeContext) -> None:
    context = make(
        model={"path": "/no/model", "hub": "Qwen/Qwen3-4B", "megatron_checkpoint": "/no/start"},
        data={"train": "hub:THU-KEG/LongTraceRL", "eval": "/no/eval.jsonl"},
    )
    findings = check_paths(context.recipe, context)
    failed = {one.name: one for one in findings if one.status == "fail"}
    assert set(failed) == {
        "model", "megatron checkpoint", "data", "slime.path", "slime.megatron_path",
    }  # fmt: skip
    assert "longrl prepare" in failed["model"].remedy
    assert "Qwen/Qwen3-4B" in failed["model"].remedy
    assert "hub:THU-KEG/LongTraceRL" in failed["data"].message
    assert "/no/eval.jsonl" in failed["data"].message
    assert "train.py" in failed["slime.path"].message


def test_offline_the_same_is_skipped_and_says_what_stays_unseen(make: MakeContext) -> None:
    context = make(
        offline=True,
        model={"path": "/no/model", "facts": "Qwen3-4B", "megatron_checkpoint": "/no/start"},
        data={"train": "/no/rows.jsonl"},
    )
    findings = check_paths(context.recipe, context)
    assert {one.status for one in findings} == {"pass", "skip"}
    assert "Qwen3-4B" in named(findings, "model").message
    assert "gold chunks were not looked at" in named(findings, "data").message
    assert named(findings, "slime").status == "skip"


def test_slime_inside_a_container_is_looked_for_there(make: MakeContext) -> None:
    context = make(cluster={"container": "pyxis", "image": "docker://slimerl/slime:v0.3.1"})
    finding = named(check_paths(context.recipe, context), "slime")
    assert finding.status == "skip"
    assert "docker://slimerl/slime:v0.3.1" in finding.message


def test_a_folder_without_config_is_no_model(make: MakeContext, model: Path) -> None:
    (model / "config.json").unlink()
    context = make(offline=True)
    finding = named(check_paths(context.recipe, context), "model")
    assert finding.status == "fail"
    assert "no config.json" in finding.message


def test_weights_to_start_from_need_their_marker(make: MakeContext, tmp_path: Path) -> None:
    start = tmp_path / "start"
    (start / "release").mkdir(parents=True)
    context = make(model={"megatron_checkpoint": str(start)})
    assert named(check_paths(context.recipe, context), "megatron checkpoint").status == "fail"
    (start / "latest_checkpointed_iteration.txt").write_text("release")
    assert named(check_paths(context.recipe, context), "megatron checkpoint").status == "pass"


@pytest.mark.parametrize("name", ["my rows.jsonl", "a$HOME.jsonl", "it's.jsonl", "a;b.jsonl"])
def test_characters_of_the_shell(make: MakeContext, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    context = make(data={"train": str(tmp_path / name)})
    finding = named(check_paths(context.recipe, context), "characters")
    assert finding.status == "warn"
    assert "data.train" in finding.message
    local = make(backend="embedded", data={"train": str(tmp_path / name)})
    assert not [one for one in check_paths(local.recipe, local) if one.name == "characters"]


def test_a_colon_splits_the_python_path(make: MakeContext) -> None:
    context = make(slime={"megatron_path": "/opt/a:b"})
    finding = named(check_paths(context.recipe, context), "characters")
    assert finding.status == "fail"
    assert "slime.megatron_path" in finding.message


def test_a_run_folder_nobody_can_write(make: MakeContext, tmp_path: Path) -> None:
    context = make()
    context.runs = Path("/proc/nowhere")
    finding = named(check_paths(context.recipe, context), "run folder")
    assert finding.status == "fail"
    assert "--runs" in finding.remedy
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    assert named(check_paths(make().recipe, make()), "run folder").status == "pass"
    assert not (tmp_path / "runs").exists(), "a check leaves nothing behind"
