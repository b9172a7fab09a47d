"""The variables of the Ray job."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.job.program import job_variables
from slime_ext.metrics.run_folder import RunFolder
from tests.launch.recipes import dense_recipe


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def test_no_proxy_sees_a_node(tmp_path: Path, folder: RunFolder) -> None:
    found = job_variables(dense_recipe(tmp_path), folder, 1, ["10.0.0.7", "10.0.0.8"])
    assert found["no_proxy"] == found["NO_PROXY"]
    assert found["no_proxy"].split(",")[-3:] == ["::1", "10.0.0.7", "10.0.0.8"]


def test_the_path_of_the_shell_stays_behind_ours(
    tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/root/slime:/root/Megatron-LM:/home/me")
    assert job_variables(dense_recipe(tmp_path), folder, 1)["PYTHONPATH"].endswith(":/home/me")


def test_hosts_of_services_are_told_and_no_key_is(
    tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("LONGRL_SERVICE_JUDGE", "10.0.0.9")
    service = '[{ name = "judge", command = "exec judge", port = 1 }]'
    found = job_variables(dense_recipe(tmp_path, f"cluster.services={service}"), folder, 1)
    assert found["LONGRL_SERVICE_JUDGE"] == "10.0.0.9"
    assert "0" * 40 not in "".join(found.values())
