"""Recipe keys that need two flags of a script, or the absence of one.

One design choice: each rule also says which flags it has used up, so that nothing of a script can
be forgotten: what no rule and no table claims is passed on or listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Given = dict[str, tuple[str, ...]]
"""The script's flags, each with its values."""
Found = tuple[str, Any, tuple[str, ...]]
"""A recipe key, its value, the flags it comes from."""

ICEPOP_NAME = "icepop_function"


def derive(given: Given) -> Iterator[Found]:
    """Every key that a rule finds."""
    for rule in RULES:
        yield from rule(given)


def _updates(given: Given) -> Iterator[Found]:
    if "--num-steps-per-rollout" in given:
        steps = _first(given, "--num-steps-per-rollout", "1")
        yield "rollout.updates", steps, ("--num-steps-per-rollout",)
    names = ("--rollout-batch-size", "--n-samples-per-prompt", "--global-batch-size")
    numbers = [int(given[name][0]) for name in names if _whole(given, name)]
    if len(numbers) == 3 and numbers[0] * numbers[1] % numbers[2] == 0:
        yield "rollout.updates", numbers[0] * numbers[1] // numbers[2], names[2:]


def _prompt_budget(given: Given) -> Iterator[Found]:
    names = ("--rollout-max-context-len", "--rollout-max-response-len")
    if "--rollout-max-prompt-len" not in given and all(_whole(given, name) for name in names):
        context, response = (int(given[name][0]) for name in names)
        yield "data.max_prompt_tokens", context - response, ()


def _data(given: Given) -> Iterator[Found]:
    shuffled = "--rollout-shuffle" in given
    yield "data.shuffle", shuffled, ("--rollout-shuffle",) if shuffled else ()
    if given.get("--input-key") == ("input_messages",):
        yield "data.format", "longtracerl", ("--input-key", "--label-key", "--source-key")
        yield "data.prompt", "messages", ()
    pairs = given.get("--eval-prompt-data", ())
    if pairs and len(pairs) % 2 == 0:
        sets = dict(zip(pairs[::2], pairs[1::2], strict=True))
        yield "data.eval_sets", sets, ("--eval-prompt-data",)


def _family(given: Given) -> Iterator[Found]:
    hints = " ".join(given.get("--source-config-path", ()) + given.get("--hf-checkpoint", ()))
    used = ("--source-config-path",) if "--source-config-path" in given else ()
    if "deepseek_r1" in hints.lower() or "deepseek-r1" in hints.lower():
        yield "model.family", "deepseek_r1", used
    elif "qwen3" in hints.lower():
        yield "model.family", "qwen3", used


def _rubric(given: Given) -> Iterator[Found]:
    if "--rubric-reward-ratio" not in given:
        return
    yield "reward.kind", "rubric", ()
    yield (
        "reward.rubric.group_max",
        "--normalize-rubric-reward" in given,
        _if(given, "--normalize-rubric-reward"),
    )
    modes = {
        ("--rubric-only-positive",): "positive_only",
        ("--rubric-only-negative",): "negative_only",
        (): "positive_and_negative",
    }
    used = _if(given, "--rubric-only-positive", "--rubric-only-negative")
    if used in modes:
        yield "reward.rubric.mode", modes[used], used
    used = _if(given, "--rubric-use-content", "--rubric-use-reasoning-content")
    texts = {"--rubric-use-content": "content", "--rubric-use-reasoning-content": "reasoning"}
    text = texts[used[0]] if len(used) == 1 else "both"
    yield "reward.rubric.text", text, used


def _loss(given: Given) -> Iterator[Found]:
    token = _if(given, "--calculate-per-token-loss")
    yield "loss.normalise", "token" if token else "rollout", token
    high = _first(given, "--eps-clip-high", _first(given, "--eps-clip", "0.2"))
    yield "loss.clip_high", high, _if(given, "--eps-clip-high")
    coefficient = _first(given, "--kl-loss-coef", "0")
    if "--use-kl-loss" in given and _number(coefficient) and float(coefficient) > 0:
        yield "loss.kl_coef", coefficient, _if(given, "--use-kl-loss", "--kl-loss-coef")
    path = _first(given, "--custom-tis-function-path", "")
    if "--use-tis" in given and path.endswith(ICEPOP_NAME):
        bounds = [_first(given, flag, default) for flag, default in ICEPOP_RANGE]
        used = _if(given, "--use-tis", "--custom-tis-function-path", "--tis-clip-low", "--tis-clip")
        yield "loss.icepop", bounds, used


def _optimiser(given: Given) -> Iterator[Found]:
    used = _if(given, "--adam-beta1", "--adam-beta2")
    yield "optimiser.betas", [_first(given, flag, default) for flag, default in BETAS], used


def _layout(given: Given) -> Iterator[Found]:
    sequence = _if(given, "--sequence-parallel")
    yield "parallel.sequence_parallel", bool(sequence), sequence
    recompute = _first(given, "--recompute-granularity", "") == "full"
    yield "performance.recompute", "full" if recompute else "none", ()
    yield "cluster.colocate", "--colocate" in given, _if(given, "--colocate")
    if "--colocate" in given:
        off = _if(given, "--no-offload-train")
        yield "performance.offload", not off, (*off, *_if(given, *OFFLOADS))
        yield "cluster.colocate", True, _if(given, "--rollout-num-gpus")
    elif "--rollout-num-gpus" in given:
        gpus = _first(given, "--rollout-num-gpus", "")
        yield "cluster.rollout_gpus", gpus, ("--rollout-num-gpus",)


def _tracking(given: Given) -> Iterator[Found]:
    if "--use-wandb" in given:
        mode = _first(given, "--wandb-mode", "online")
        used = _if(given, "--use-wandb", "--wandb-mode", "--disable-wandb-random-suffix")
        yield "track.wandb", mode if mode != "disabled" else "off", used
    board = _if(given, "--use-tensorboard", "--tb-project-name", "--tb-experiment-name")
    yield "track.tensorboard", True, board


ICEPOP_RANGE = (("--tis-clip-low", "0"), ("--tis-clip", "2.0"))
BETAS = (("--adam-beta1", "0.9"), ("--adam-beta2", "0.999"))
"""slime's and Megatron-LM's own defaults, for what a script leaves out."""
OFFLOADS = ("--offload", "--offload-train", "--offload-rollout")
"""What --colocate says already."""
RULES: tuple[Callable[[Given], Iterator[Found]], ...] = (
    _updates,
    _prompt_budget,
    _data,
    _family,
    _rubric,
    _loss,
    _optimiser,
    _layout,
    _tracking,
)


def _first(given: Given, flag: str, default: str) -> str:
    return next(iter(given.get(flag, ())), default)


def _if(given: Given, *flags: str) -> tuple[str, ...]:
    return tuple(flag for flag in flags if flag in given)


def _whole(given: Given, flag: str) -> bool:
    return flag in given and len(given[flag]) == 1 and given[flag][0].isdigit()


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
