"""The command line of an evaluation: golden lists, and what must not be on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.evaluation import evaluation_arguments
from launch.flags.check import FlagError
from launch.plan.rules import LayoutError
from tests.launch.recipes import dense_recipe as recipe

FOLDER = Path("/runs/dense/evaluations/1")
COMMON = """
--debug-rollout-only
--hf-checkpoint /models/Qwen3-4B-Thinking-2507
--seed 0
--num-rollout 0
--rollout-batch-size 16
"""
TRACKED = """
--use-tensorboard
--tb-project-name longrl
--tb-experiment-name dense
--use-wandb
--wandb-mode online
--wandb-project longrl
--wandb-group dense-eval
--wandb-team ours
--wandb-dir /runs/dense/evaluations/1
--disable-wandb-random-suffix
--data-source-path slime_ext.rollout.data_source.RecipeDataSource
--eval-function-path slime_ext.hooks.evaluate
--custom-eval-rollout-log-function-path slime_ext.hooks.log_eval
--custom-config-path /runs/dense/evaluations/1/longrl.yaml
"""
OWN_ENGINES = """
--rollout-num-gpus 32
--rollout-num-gpus-per-engine 8
--sglang-mem-fraction-static 0.7
--sglang-context-length 160064
--sglang-server-concurrency 128
--sglang-router-request-timeout-secs 14400
"""


def test_slime_starts_engines_on_every_gpu_of_the_cluster(tmp_path: Path) -> None:
    argv = evaluation_arguments(recipe(tmp_path), FOLDER)
    assert argv == (COMMON + OWN_ENGINES + TRACKED + "--longrl-step 0").split()


def test_one_running_engine_is_named_to_the_launcher(tmp_path: Path) -> None:
    argv = evaluation_arguments(recipe(tmp_path), FOLDER, ["box:30000"], step=40)
    own = "--longrl-step 40 --longrl-engine box:30000"
    assert argv == (COMMON + "--rollout-num-gpus 1" + TRACKED + own).split()


def test_several_running_engines_are_left_to_slime(tmp_path: Path) -> None:
    argv = evaluation_arguments(recipe(tmp_path), FOLDER, ["box:1", "box:2"])
    outside = "--rollout-num-gpus 2 --rollout-external-engine-addrs box:1 box:2"
    assert argv == (COMMON + outside + TRACKED + "--longrl-step 0").split()


def test_a_layout_that_only_training_needs_does_not_refuse_fewer_nodes(tmp_path: Path) -> None:
    argv = evaluation_arguments(recipe(tmp_path, "cluster.nodes=1"), FOLDER)
    assert argv[argv.index("--rollout-num-gpus") + 1] == "8"


def test_gpus_that_no_engine_fills_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=r"engine\.gpus = 5"):
        evaluation_arguments(recipe(tmp_path, "engine.gpus=5"), FOLDER)


def test_only_pass_through_flags_of_the_engines_travel(tmp_path: Path) -> None:
    changed = recipe(
        tmp_path,
        "extra.slime.router-policy=round_robin",
        "extra.slime.use-kl-loss=true",
        "extra.megatron.seq-length=4096",
        "extra.sglang.chunked-prefill-size=8192",
    )
    argv = evaluation_arguments(changed, FOLDER)
    assert argv[argv.index("--router-policy") + 1] == "round_robin"
    assert argv[argv.index("--sglang-chunked-prefill-size") + 1] == "8192"
    assert not {"--use-kl-loss", "--seq-length"} & set(argv)


def test_a_misspelt_pass_through_flag_names_its_recipe_key(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match=r"extra\.sglang\.chunked-prefil-size"):
        evaluation_arguments(recipe(tmp_path, "extra.sglang.chunked-prefil-size=8"), FOLDER)


@pytest.mark.parametrize("version", ["v0.3.1", "v0.2.4"])
@pytest.mark.parametrize("engines", [(), ("box:1",), ("box:1", "box:2")])
def test_every_flag_is_known_to_both_hosts(
    tmp_path: Path, version: str, engines: tuple[str, ...]
) -> None:
    changed = recipe(tmp_path, f"slime.version={version}", "engine.cuda_graph_max_batch=64")
    assert evaluation_arguments(changed, FOLDER, engines)
