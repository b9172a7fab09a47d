"""Variables of a run by recipe, and what a container sees of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.slurm.container import container_entry
from launch.slurm.environment import SecretInRecipeError, environment
from launch.slurm.paths import on_nodes
from slime_ext.data.errors import DataError
from slime_ext.recipe.load import load_recipe
from tests.launch.recipes import dense_recipe

RUN = Path("/shared/runs/dense")


def variables(folder: Path, *changes: str) -> dict[str, str]:
    return {one.name: one.value for one in environment(dense_recipe(folder, *changes), RUN)}


def test_each_variable_has_a_reason_and_one_value(tmp_path: Path) -> None:
    found = environment(dense_recipe(tmp_path, "cluster.interface=ib0"), RUN)
    names = [one.name for one in found]
    assert names == sorted(set(names))
    assert all(one.reason for one in found)


def test_the_sites_own_value_wins(tmp_path: Path) -> None:
    assert variables(tmp_path)["NCCL_CUMEM_ENABLE"] == "0"
    changed = variables(tmp_path, 'cluster.environment={ NCCL_CUMEM_ENABLE = "1" }')
    assert changed["NCCL_CUMEM_ENABLE"] == "1"


def test_the_network_is_named_for_nccl_and_gloo_alike(tmp_path: Path) -> None:
    found = variables(tmp_path, "cluster.interface=bond0")
    assert found["NCCL_SOCKET_IFNAME"] == found["GLOO_SOCKET_IFNAME"] == "bond0"
    assert "NCCL_SOCKET_IFNAME" not in variables(tmp_path)


@pytest.mark.parametrize(("context", "present"), [(65_000, False), (160_000, True)])
def test_engines_may_be_silent_for_long_only_with_long_prompts(
    tmp_path: Path, context: int, present: bool
) -> None:
    changes = (f"rollout.context_tokens={context}", "data.max_prompt_tokens=30000")
    found = variables(tmp_path, *changes)
    assert ("SGLANG_HEALTH_CHECK_TIMEOUT" in found) == present


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "hf_token", "DB_PASSWORD", "MY_SECRETS"])
def test_a_key_in_the_recipe_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SecretInRecipeError, match=f'secrets = \\["{name}"\\]'):
        variables(tmp_path, f'cluster.environment={{ {name} = "x" }}')


def test_the_embedded_backend_gets_nothing_of_the_host() -> None:
    lab = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"
    found = {one.name for one in environment(load_recipe(lab).recipe, RUN)}
    assert found == {"PYTHONUNBUFFERED", "HF_HUB_OFFLINE", "no_proxy", "NO_PROXY", "LONGRL_RUN"}


CONTAINER = ('cluster.image="/i.sqsh"', 'cluster.mounts=["/scratch", "/a:/b"]')


def test_a_container_sees_every_path_of_the_recipe_once(tmp_path: Path) -> None:
    recipe = dense_recipe(
        tmp_path, *CONTAINER, "cluster.container=pyxis", 'cluster.secrets_file="/home/me/keys"'
    )
    entry = container_entry(recipe, RUN)
    assert entry.before == ()
    mounts = entry.srun[1].removeprefix("--container-mounts=").split(",")
    assert mounts == [
        *(f"{path}:{path}" for path in ("/shared/runs", "/tmp", "/scratch")),
        "/a:/b",
        "/home/me/keys:/home/me/keys",
        "/models/Qwen3-4B-Thinking-2507:/models/Qwen3-4B-Thinking-2507",
        "/models/Qwen3-4B-Thinking-2507_torch_dist:/models/Qwen3-4B-Thinking-2507_torch_dist",
        "/data:/data",
    ]


def test_apptainer_is_a_command_before_the_step(tmp_path: Path) -> None:
    recipe = dense_recipe(tmp_path, *CONTAINER, "cluster.container=apptainer")
    entry = container_entry(recipe, RUN)
    assert entry.srun == ()
    assert entry.before[:3] == ("apptainer", "exec", "--nv")
    assert entry.before[-1] == "/i.sqsh"
    assert entry.before.count("--bind") == len(entry.before[3:-1]) // 2


def test_without_a_container_a_step_is_entered_bare(tmp_path: Path) -> None:
    entry = container_entry(dense_recipe(tmp_path), RUN)
    assert (entry.srun, entry.before) == ((), ())


def test_paths_are_absolute_on_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = (
        "model.path=models/m",
        "data.train=d/t.jsonl",
        'data.eval_sets={ aa-lcr = "e.jsonl" }',
    )
    recipe = on_nodes(dense_recipe(tmp_path, *changes, "cluster.secrets_file=keys"), RUN)
    assert recipe.model.path == f"{tmp_path}/models/m"
    assert recipe.data.train == f"{tmp_path}/d/t.jsonl"
    assert recipe.data.eval_sets == {"aa-lcr": f"{tmp_path}/e.jsonl"}
    assert recipe.cluster.secrets_file == f"{tmp_path}/keys"
    assert on_nodes(recipe, RUN) == recipe


def test_a_published_set_that_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGRL_CACHE", str(tmp_path / "cache"))
    recipe = dense_recipe(
        tmp_path, 'data.train="hub:THU-KEG/LongTraceRL:train"', "data.format=longtracerl"
    )
    with pytest.raises(DataError, match="longrl prepare"):
        on_nodes(recipe, RUN)
