"""`longrl prepare` against a hub on this machine that speaks the real protocol."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.prepare.model import missing_files
from launch.prepare.space import require_space
from slime_ext.errors import ExplainedError
from tests.fakes.hub import FakeHub

Prepare = Callable[..., subprocess.CompletedProcess[str]]
NO_DATA = ("--set", "data.train=builtin:lab", "--set", "data.eval=builtin:lab")
"""Spares the cases about the model seconds of `datasets`."""


def test_model_and_data_are_fetched_once(prepare: Prepare, hub: FakeHub, tmp_path: Path) -> None:
    first = prepare()
    assert first.returncode == 0, first.stderr
    assert "hub:THU-KEG/LongTraceRL:train[1:]: 2 rows from THU-KEG/LongTraceRL@" in first.stdout
    assert "hub:THU-KEG/LongTraceRL:train[:1]: 1 rows" in first.stdout
    assert "HF_HUB_OFFLINE=1" in first.stdout
    assert missing_files(tmp_path / "model") == []
    # The same weights in other formats stay where they are.
    assert {"model.safetensors", "data.jsonl"} <= set(hub.fetched())
    assert not {"pytorch_model.bin", "consolidated.00.pth"} & set(hub.fetched())

    hub.log.clear()
    again = prepare()
    assert again.returncode == 0, again.stderr
    assert hub.log == []
    assert "is prepared" in again.stdout
    assert "is complete" in again.stdout


def test_offline_the_cache_of_datasets_serves(
    prepare: Prepare, hub: FakeHub, tmp_path: Path
) -> None:
    assert prepare().returncode == 0
    shutil.rmtree(tmp_path / "cache")
    hub.log.clear()
    offline = prepare(HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr
    assert "2 rows from THU-KEG/LongTraceRL@cached" in offline.stdout
    assert hub.log == []


def test_an_interrupted_model_goes_on(prepare: Prepare, hub: FakeHub, tmp_path: Path) -> None:
    assert prepare(*NO_DATA).returncode == 0
    (tmp_path / "model" / "tokenizer.json").unlink()
    hub.log.clear()
    assert prepare(*NO_DATA).returncode == 0
    assert hub.fetched() == ["tokenizer.json"]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("gated", "model owner/model: its owners want to be asked first"),
        ("unknown", "model owner/model: the hub knows no such repository"),
        ("no weights", "still lacks model.safetensors"),
        ("offline", "model owner/model: HF_HUB_OFFLINE is set"),
    ],
)
def test_a_model_that_cannot_be_had_is_explained(
    case: str, message: str, prepare: Prepare, hub: FakeHub
) -> None:
    if case == "gated":
        hub.gated.add("models/owner/model")
    elif case == "unknown":
        del hub.repositories["models/owner/model"]
    elif case == "no weights":
        del hub.repositories["models/owner/model"]["model.safetensors"]
    result = prepare(*NO_DATA, HF_HUB_OFFLINE=str(int(case == "offline")))
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("unknown", "data set THU-KEG/LongTraceRL: the hub knows no such repository"),
        ("no network", "data set THU-KEG/LongTraceRL: no connection to http"),
    ],
)
def test_data_that_cannot_be_had_is_explained(
    case: str, message: str, prepare: Prepare, hub: FakeHub
) -> None:
    environment = {}
    if case == "unknown":
        del hub.repositories["datasets/THU-KEG/LongTraceRL"]
    else:
        # Nothing answers on the discard port.
        environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
    result = prepare(**environment)
    assert result.returncode == 2
    assert message in result.stderr
    assert "LONGRL_HUB_FOLDER" in result.stderr or case == "unknown"
    assert "Traceback" not in result.stderr


def test_a_local_copy_needs_no_network(prepare: Prepare, hub: FakeHub, tmp_path: Path) -> None:
    folder = tmp_path / "copies" / "THU-KEG" / "LongTraceRL"
    folder.mkdir(parents=True)
    for name, content in hub.repositories["datasets/THU-KEG/LongTraceRL"].items():
        (folder / name).write_bytes(content)
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (model / name).write_bytes(b"{}")
    result = prepare(HF_HUB_OFFLINE="1", LONGRL_HUB_FOLDER=str(tmp_path / "copies"))
    assert result.returncode == 0, result.stderr
    assert f"2 rows from {folder}" in result.stdout
    assert hub.log == []


def test_a_model_counts_as_whole_by_its_index(tmp_path: Path) -> None:
    assert missing_files(tmp_path) == ["config.json", "tokenizer.json", "model.safetensors"]
    for name in ("config.json", "tokenizer.json", "a.safetensors"):
        (tmp_path / name).write_text("{}")
    index = '{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}'
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert missing_files(tmp_path) == ["b.safetensors"]


def test_too_little_room_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    require_space(tmp_path / "new" / "folder", 0, "nothing", "model.path")
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(ExplainedError, match=r"GB are free.*model\.path"):
        require_space(tmp_path / "new", 2 * free + 1, "model a/b", "model.path")
