"""Pass-through flags: `[extra.slime]`, `[extra.megatron]` and `[extra.sglang]`.

One design choice: a pass-through flag never wins over a recipe key in silence. It may replace what
no key stands for (`STANDING`); saying another value than a key does is an error that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping

from launch.argument_groups.words import Value, words
from launch.flags.check import FlagError, split
from launch.flags.lists import Flag, flags_of
from slime_ext.recipe.schema import Recipe

STANDING = frozenset(
    {
        "--optimizer",
        "--lr-decay-style",
        "--override-opt_param-scheduler",
        "--ckpt-format",
        "--advantage-estimator",
        "--kl-loss-type",
        "--custom-tis-function-path",
        "--balance-data",
        "--recompute-granularity",
        "--recompute-method",
        "--recompute-num-layers",
        "--attention-backend",
        "--attention-dropout",
        "--hidden-dropout",
        "--attention-softmax-in-fp32",
        "--accumulate-allreduce-grads-in-fp32",
        "--make-vocab-size-divisible-by",
        "--tb-project-name",
        "--tb-experiment-name",
        "--wandb-dir",
    }
)
"""Flags given without a recipe key behind them; `false` takes a switch among them away."""


def given_extras(recipe: Recipe) -> dict[str, tuple[str, Value]]:
    """Each pass-through flag with its recipe key and value."""
    extra = recipe.extra
    found: dict[str, tuple[str, Value]] = {}
    for section, table, prefix in (
        ("slime", extra.slime, ""),
        ("megatron", extra.megatron, ""),
        ("sglang", extra.sglang, "sglang-"),
    ):
        for name, value in table.items():
            flag, key = f"--{prefix}{name.removeprefix('--')}", f"extra.{section}.{name}"
            if flag in found:
                raise FlagError(f"{key}: {flag} is already given by {found[flag][0]}")
            found[flag] = (key, value)
    return found


def merge_extras(
    groups: Mapping[str, list[str]], recipe: Recipe
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The groups with the pass-through flags as a last one, `extra`, and where each of those comes
    from (flag to recipe key). Raises FlagError for one that contradicts a recipe key."""
    known = flags_of(recipe.slime.version)
    merged = {name: list(argv) for name, argv in groups.items()}
    extra: list[str] = []
    origins: dict[str, str] = {}
    for flag, (key, value) in given_extras(recipe).items():
        origins[flag] = key
        same = _names(flag, known)
        place = _place(merged, same)
        asked = words({flag.removeprefix("--"): value})
        if place is None:
            extra += asked or _switched_off(flag, key, known)
            continue
        group, start, end = place
        if merged[group][start + 1 : end] == asked[1:] and asked:
            continue
        if not same & STANDING:
            raise FlagError(
                f"{key} = {value!r}: {' '.join(merged[group][start:end])} is already given by the "
                f"group {group!r}; change the recipe key behind it instead"
            )
        merged[group][start:end] = []
        extra += asked
    return {**merged, "extra": extra}, origins


def _names(flag: str, known: Mapping[str, Flag]) -> set[str]:
    found = known.get(flag)
    return {flag, found.name, *found.aliases} if found else {flag}


def _place(groups: Mapping[str, list[str]], names: set[str]) -> tuple[str, int, int] | None:
    """Group, first and last word of the flag that bears one of `names`."""
    for group, argv in groups.items():
        start = 0
        for one in split(argv):
            end = start + 1 + len(one.values)
            if one.flag in names:
                return group, start, end
            start = end
    return None


def _switched_off(flag: str, key: str, known: Mapping[str, Flag]) -> list[str]:
    """`--no-NAME` for a switch that has one. Raises FlagError for any other."""
    off = f"--no-{flag.removeprefix('--')}"
    if off not in known:
        raise FlagError(
            f"{key}: {flag} is not given, so it cannot be taken away; leave the key out"
        )
    return [off]
