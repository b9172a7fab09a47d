"""Command lines that a host would misread are refused with the flag, the reason and a remedy."""

from __future__ import annotations

import pytest

from launch.flags.check import FlagError, check_flags, split

GOOD = (
    "--rollout-batch-size 16 --lr 2e-6 --colocate --eval-prompt-data a b c d "
    "--rollout-stop-token-ids 151643 151645 --attention-backend flash "
    "--sglang-context-length 160064 --custom-tis-function-path a.b.c"
)


@pytest.mark.parametrize("version", ["v0.3.1", "v0.2.4"])
def test_a_right_command_line_passes(version: str) -> None:
    check_flags([*GOOD.split(), "--sglang-json-model-override-args", '{"a": 1}'], version)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--rollout-bach-size 16", "did you mean '--rollout-batch-size', a flag of slime?"),
        ("--tensor-model-paralel-size 4", "did you mean '--tensor-model-parallel-size', a flag of"),
        ("--sglang-mem-fraction-statc 0.7", "a flag of SGLang?"),
        ("--mem-fraction-static 0.7", "sglang-mem-fraction-static"),
        ("--rollout-batch-size 16.5", "'16.5' is no int"),
        ("--rollout-batch-size", "takes one value (got 0)"),
        ("--rollout-batch-size 16 32", "takes one value (got 2)"),
        ("--colocate true", "takes no value (got 'true')"),
        ("--rollout-stop-token-ids", "at least one value"),
        ("--rollout-stop-token-ids 1 x", "'x' is no int"),
        ("--advantage-estimator grp", "did you mean 'grpo'?"),
        ("--train-env-vars {a:1}", "is no json"),
        ("--sglang-model-path x", "slime sets this option of SGLang itself"),
        ("--qkv-format thd", "does not know this flag"),
        ("--sglang-prefill-round-robin-balance", "no longer has this option"),
        ("--lr 1e-6 --lr 2e-6", "given twice"),
        ("--use-kl-loss", "loads a reference"),
        ("--use-kl-loss --kl-loss-coef 0.00", "loads a reference"),
        ("--exit-signal-handler", "which slime does not run"),
        ("--wandb-key abc", "WANDB_API_KEY"),
        ("--rubric-reward-ratio 0.3", "reward.rubric.alpha"),
        ("--sglang-router-balance-abs-threshold 0", "router-balance-abs-threshold"),
        ("--eps-clip-c 10", "loss.py:981"),
        ("stray --lr 1e-6", "stands before any flag"),
    ],
)
def test_a_wrong_flag_is_refused_with_the_reason(words: str, expected: str) -> None:
    with pytest.raises(FlagError) as raised:
        check_flags(words.split(), "v0.3.1")
    assert expected in str(raised.value)


def test_everything_wrong_is_said_at_once_and_named_by_its_recipe_key() -> None:
    origins = {"--rollout-bach-size": "extra.slime.rollout-bach-size"}
    with pytest.raises(FlagError) as raised:
        check_flags(["--rollout-bach-size", "16", "--lr", "fast"], "v0.3.1", origins)
    first, second = str(raised.value).splitlines()
    assert first.startswith("extra.slime.rollout-bach-size: --rollout-bach-size: ")
    assert second == "--lr: 'fast' is no float"


def test_a_reference_with_a_coefficient_is_right() -> None:
    check_flags(["--use-kl-loss", "--kl-loss-coef", "0.001"], "v0.3.1")


def test_negative_numbers_and_equals_signs_are_values() -> None:
    given = split(["--rollout-top-k", "-1", "--lr=1e-6"])
    assert [(one.flag, one.values) for one in given] == [
        ("--rollout-top-k", ("-1",)),
        ("--lr", ("1e-6",)),
    ]
