"""`longrl import`: writes for this machine, prints for the cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli.import_model import import_model
from slime_ext.recipe.places import configs_folder
from slime_ext.weights.checkpoints import MARKER, incomplete
from tests.tools.export.folders import make_folder

CLUSTER = configs_folder() / "longtracerl" / "qwen3-4b.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("import") / "model", "qwen2", tied=True)


def test_it_writes_a_checkpoint(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_model(folder, tmp_path / "out") == 0
    assert incomplete(tmp_path / "out" / "iter_0000000") is None
    assert (tmp_path / "out" / MARKER).is_file()
    assert "model.megatron_checkpoint=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "said"),
    [((), "reads"), (("slime.version=v0.2.4",), "convert_hf_to_torch_dist.py")],
)
def test_for_a_cluster_it_writes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    overrides: tuple[str, ...],
    said: str,
) -> None:
    assert import_model(tmp_path / "model", tmp_path / "out", CLUSTER, overrides) == 0
    assert said in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "launch.cli.main",
        "import",
        str(tmp_path),
        str(tmp_path / "o"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "holds no config.json" in done.stderr
    assert len(done.stderr.splitlines()) == 1
