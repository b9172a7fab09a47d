"""A recipe's command line: complete, right in its units, and free of what slime would misread."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.argument_groups.tracking import tracking_variables
from launch.argument_groups.words import CannotExpressError
from launch.arguments import command_line, slime_arguments
from launch.flags.check import FlagError, check_flags, split
from launch.models.facts import ModelFactsError
from launch.plan.rules import LayoutError
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from tests.launch.recipes import EXPERTS, dense_recipe

GOLDEN = Path(__file__).parents[1] / "golden"
RUN = Path("/runs/dense")
Flags = dict[str, tuple[str, ...]]
Flatten = Callable[..., Flags]


@pytest.fixture
def flags(tmp_path: Path) -> Flatten:
    """The flags of the dense recipe with single keys changed, by name."""

    def make(*overrides: str) -> Flags:
        groups = slime_arguments(dense_recipe(tmp_path, *overrides), RUN)
        return {one.flag: one.values for group in groups.values() for one in split(group)}

    return make


def test_the_whole_command_of_the_4b_recipe_is_the_golden_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LONGRL_SITE", raising=False)
    # Its model and data have relative paths.
    monkeypatch.chdir("/")
    recipe = load_recipe(configs_folder() / "longtracerl" / "qwen3-4b.toml").recipe
    groups = slime_arguments(recipe, Path("/runs") / recipe.name)
    lines = [
        " ".join((group, one.flag, *one.values))
        for group, argv in groups.items()
        for one in split(argv)
    ]
    assert "\n".join(lines) + "\n" == (GOLDEN / "longtracerl-qwen3-4b.txt").read_text()


def test_the_command_starts_slimes_own_program(tmp_path: Path) -> None:
    command = command_line(dense_recipe(tmp_path, "slime.path=/opt/slime"), RUN)
    assert command[:2] == ["python3", "/opt/slime/train.py"]


def test_batches_are_in_slimes_units(flags: Flatten) -> None:
    found = flags("rollout.prompts=32", "rollout.group_size=8", "rollout.updates=4")
    assert found["--rollout-batch-size"] == ("32",)
    assert found["--n-samples-per-prompt"] == ("8",)
    assert found["--global-batch-size"] == ("64",)


def test_a_mixture_of_experts_says_how_experts_are_cut(flags: Flatten) -> None:
    found = flags(*EXPERTS)
    assert found["--expert-model-parallel-size"] == ("16",)
    assert found["--expert-tensor-parallel-size"] == ("1",), "Megatron would take tp"
    assert found["--sglang-ep-size"] == ("8",)
    assert found["--num-experts"] == ("128",)
    assert "--expert-model-parallel-size" not in flags()


@pytest.mark.parametrize(
    ("override", "present", "absent"),
    [
        ("loss.normalise=token", "--calculate-per-token-loss", "--use-kl-loss"),
        ("loss.normalise=rollout", "--eps-clip", "--calculate-per-token-loss"),
        ("loss.kl_coef=0.001", "--use-kl-loss", "--kl-coef"),
        ("rollout.filter=flat", "--dynamic-sampling-filter-path", "--group-rm"),
        ("track.wandb=off", "--use-tensorboard", "--use-wandb"),
        ("track.tensorboard=false", "--use-wandb", "--use-tensorboard"),
        ("parallel.tp=1", "--colocate", "--sequence-parallel"),
        ("performance.recompute=none", "--use-dynamic-batch-size", "--recompute-granularity"),
        ("performance.offload=false", "--no-offload-train", "--offload-train"),
        ("engine.dp_attention=4", "--sglang-enable-dp-attention", "--sglang-ep-size"),
        ("engine.cuda_graph_max_batch=64", "--sglang-cuda-graph-max-bs-decode", "--offload"),
        ("slime.version=v0.2.4", "--custom-tis-function-path", "--qkv-format"),
    ],
)
def test_a_key_brings_its_flag_and_no_other(
    flags: Flatten, override: str, present: str, absent: str
) -> None:
    found = flags(override)
    assert present in found
    assert absent not in found


def test_rope_scaling_reaches_the_engines_under_both_names(flags: Flatten) -> None:
    found = flags(
        'model.rope_scaling={rope_type="default"}',
        "engine.config_overrides.max_position_embeddings=161000",
    )
    overrides = json.loads(found["--sglang-json-model-override-args"][0])
    assert overrides["rope_scaling"] == {"rope_type": "default", "rope_theta": 5000000}
    assert overrides["rope_parameters"] == overrides["rope_scaling"]
    assert overrides["max_position_embeddings"] == 161000


def test_engines_hold_the_context_and_a_margin(flags: Flatten) -> None:
    assert flags()["--sglang-context-length"] == ("160064",)
    assert flags("engine.context_tokens=200000")["--sglang-context-length"] == ("200000",)


def test_paths_are_absolute_and_the_checkpoints_are_the_runs(flags: Flatten) -> None:
    found = flags('model.megatron_checkpoint="start"', 'data.eval="held_out.jsonl"')
    assert found["--ref-load"] == (str(Path("start").absolute()),)
    assert found["--load"] == found["--save"] == ("/runs/dense/checkpoints",)
    name, path, *others = found["--eval-prompt-data"]
    assert (name, Path(path).name, others[0]) == ("eval", "held_out.jsonl", "aa-lcr")
    assert Path(path).is_absolute()


def test_engines_of_their_own_get_what_training_leaves(flags: Flatten) -> None:
    found = flags("cluster.nodes=6", "cluster.colocate=false", "cluster.rollout_gpus=16")
    assert found["--actor-num-nodes"] == ("4",)
    assert found["--rollout-num-gpus"] == ("16",)
    assert "--colocate" not in found


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["loss.normalise=constant"], "Dr.GRPO"),
        (["loss.clip_c=10.0"], "never passes it to the loss"),
        (["model.path=builtin:lab-hs"], "embedded backend only"),
        (
            ["slime.version=v0.2.4", "rollout.kind=tests.launch.arguments.kinds:MANY"],
            "set slime.version",
        ),
        (
            [
                "reward.kind=tests.launch.arguments.kinds:Ranked",
                "rollout.kind=tests.launch.arguments.kinds:MANY",
            ],
            "scores whole groups",
        ),
    ],
)
def test_what_slime_cannot_do_is_refused_with_a_remedy(
    flags: Flatten, overrides: list[str], expected: str
) -> None:
    with pytest.raises(CannotExpressError, match=r"[;:,]") as raised:
        flags(*overrides)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["parallel.tp=16", "parallel.cp=1"], "tp = 16 does not divide the 8 key-value heads"),
        (["parallel.dp=2"], "does not use the 32 GPUs of training"),
        (["engine.gpus=6"], "engine.gpus = 6 does not divide"),
        (["cluster.colocate=false"], "write cluster.rollout_gpus or parallel.dp"),
        (["cluster.colocate=false", "cluster.rollout_gpus=32"], "and training has 0"),
    ],
)
def test_no_command_for_a_layout_that_cannot_run(
    flags: Flatten, overrides: list[str], expected: str
) -> None:
    with pytest.raises(LayoutError) as raised:
        flags(*overrides)
    assert expected in str(raised.value)


def test_without_held_out_rows_nothing_is_evaluated(tmp_path: Path) -> None:
    recipe = dense_recipe(tmp_path)
    data = recipe.data.model_copy(update={"eval_sets": {}})
    groups = slime_arguments(recipe.model_copy(update={"data": data}), RUN)
    assert groups["evaluation"] == []
    assert "--eval-function-path" not in groups["hooks"]


def test_a_reward_for_whole_groups_is_asked_for_them(flags: Flatten) -> None:
    assert "--group-rm" in flags("reward.kind=tests.launch.arguments.kinds:Ranked")


def test_v024_needs_a_converted_model(tmp_path: Path) -> None:
    recipe = dense_recipe(tmp_path, "slime.version=v0.2.4")
    model = recipe.model.model_copy(update={"megatron_checkpoint": None})
    with pytest.raises(CannotExpressError, match=r"model\.megatron_checkpoint"):
        slime_arguments(recipe.model_copy(update={"model": model}), RUN)


def test_an_unknown_model_is_refused_by_name(flags: Flatten) -> None:
    with pytest.raises(ModelFactsError, match="Qwen3-4B-Thinking-2507"):
        flags("model.facts=Qwen3-4B-Thinkin-2507")


def test_no_key_and_no_address_of_one_is_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "secret-key")
    monkeypatch.setenv("JUDGE_KEY", "secret-judge")
    endpoint = '[{url = "http://judge:30000/v1", key_env = "JUDGE_KEY"}]'
    recipe = dense_recipe(
        tmp_path,
        "track.host=https://wandb.example",
        "outcome.kind=judge",
        "outcome.judge.model=m",
        f"outcome.judge.endpoints={endpoint}",
    )
    argv = " ".join(command_line(recipe, RUN))
    assert "secret" not in argv
    assert "key" not in argv.replace("-key ", " ").lower()
    assert "wandb.example" not in argv
    assert tracking_variables(recipe, RUN)["WANDB_BASE_URL"] == "https://wandb.example"
    assert "secret" not in " ".join(tracking_variables(recipe, RUN).values())


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("extra.slime.use-fault-tolerance=true", "--use-fault-tolerance"),
        ("extra.megatron.no-check-for-nan-in-loss-and-grad=true", "--no-check-for-nan-in-loss-and"),
        ("extra.sglang.chunked-prefill-size=8192", "--sglang-chunked-prefill-size 8192"),
        ("extra.slime.router-policy=consistent_hashing", "--router-policy consistent_hashing"),
        ("extra.slime.offload-train=false", "--no-offload-train"),
    ],
)
def test_a_further_flag_passes_through(tmp_path: Path, override: str, expected: str) -> None:
    groups = slime_arguments(dense_recipe(tmp_path, override), RUN)
    assert " ".join(groups["extra"]).startswith(expected)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "extra.slime.use-fault-tolerence=true",
            "extra.slime.use-fault-tolerence: --use-fault-tolerence: slime v0.3.1 does not know "
            "this flag, and would ignore it in silence; did you mean '--use-fault-tolerance'",
        ),
        ("extra.sglang.chunked-prefill-size=many", "is no int"),
        ("extra.megatron.exit-signal-handler=true", "which slime does not run"),
        ("extra.slime.wandb-key=abc", "WANDB_API_KEY"),
        ("extra.megatron.lr=1e-5", "is already given by the group 'optimiser'"),
        ("extra.sglang.expert-parallel-size=4", "is already given by the group 'sglang'"),
        ("extra.slime.ci-test=false", "cannot be taken away"),
    ],
)
def test_a_wrong_pass_through_names_its_key(tmp_path: Path, override: str, expected: str) -> None:
    with pytest.raises(FlagError) as raised:
        slime_arguments(dense_recipe(tmp_path, *EXPERTS, override), RUN)
    assert expected in str(raised.value)


def test_a_pass_through_replaces_what_no_key_stands_for(flags: Flatten) -> None:
    found = flags(
        "extra.megatron.lr-decay-style=cosine",
        "extra.slime.balance-data=false",
        "extra.megatron.lr=2e-6",
    )
    assert found["--lr-decay-style"] == ("cosine",)
    assert "--balance-data" not in found


@pytest.mark.parametrize("version", ["v0.3.1", "v0.2.4"])
@pytest.mark.parametrize("changes", [(), EXPERTS], ids=["dense", "experts"])
def test_every_command_line_passes_the_check(
    tmp_path: Path, version: str, changes: tuple[str, ...]
) -> None:
    recipe = dense_recipe(tmp_path, *changes, f"slime.version={version}", "loss.kl_coef=0.001")
    check_flags(command_line(recipe, RUN)[2:], version)
