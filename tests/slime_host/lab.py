"""A lab run as slime sees it: run folder, flags, custom config, and an engine.

One design choice: flags go through slime's own parser, so that a flag that slime drops or renames
is noticed here; only what a launcher of ours would set is set.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from unittest import mock

from slime_ext.embedded.builtin import resolve, write_data
from slime_ext.host.types import Sample
from slime_ext.metrics.run_folder import RunFolder, open_run, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout.runtime import load_runtime
from slime_ext.rollout.usable import refuse_or_skip

ROOT = Path(__file__).parents[2]
SMALL = (
    "rollout.steps=3",
    "rollout.prompts=3",
    "rollout.group_size=4",
    "data.options.rows=40",
    "data.options.eval_rows=6",
)
HOOKS = {
    "data-source-path": "slime_ext.rollout.data_source.RecipeDataSource",
    "custom-generate-function-path": "slime_ext.hooks.generate",
    "custom-rm-path": "slime_ext.hooks.reward",
    "dynamic-sampling-filter-path": "slime_ext.hooks.keep_group",
    "custom-reward-post-process-path": "slime_ext.hooks.post_process_rewards",
    "eval-function-path": "slime_ext.hooks.evaluate",
    "custom-rollout-log-function-path": "slime_ext.hooks.log_rollout",
    "custom-eval-rollout-log-function-path": "slime_ext.hooks.log_eval",
    "custom-megatron-before-train-step-hook-path": "slime_ext.hooks.before_train_step",
}


def lab_run(root: Path, *settings: str, name: str = "lab") -> RunFolder:
    """A prepared run folder of the lab recipe with `settings` (`section.key=value`) on top."""
    recipe_file = ROOT / "configs" / "embedded" / "lab.toml"
    asked = load_recipe(recipe_file, (*SMALL, *settings, f"name={name}")).recipe
    recipe = resolve(asked, root / name)
    folder, _ = open_run(root, recipe, fresh=False)
    write_data(asked, recipe)
    write_recipe(folder, recipe)
    refuse_or_skip(load_runtime(folder.recipe))
    return folder


def without_fan_out() -> bool:
    """Whether the slime at hand is v0.2.4: it has no ids of rollouts."""
    return "rollout_id" not in {field.name for field in dataclasses.fields(Sample)}


def slime_flags(folder: RunFolder, url: str, *extra: str) -> list[str]:
    """The command line of a slime script for this run, its engine or router at `url`.

    One rollout GPU is claimed, because slime's limit of concurrent requests is a multiple of it;
    `--rollout-num-gpus 0` among `extra` is for a rollout manager that must not start engines.
    """
    recipe = load_runtime(folder.recipe).recipe
    host, port = url.removeprefix("http://").split(":")
    config = folder.path / "slime_args.yaml"
    # Without an engine count slime's HTTP client is never made when it is given a router.
    config.write_text(f"longrl_recipe: {folder.recipe}\nrollout_num_engines: 1\n")
    rollout, samples = recipe.rollout, recipe.rollout.prompts * recipe.rollout.group_size
    flags = {
        "hf-checkpoint": recipe.model.path,
        "rollout-batch-size": rollout.prompts,
        "n-samples-per-prompt": rollout.group_size,
        "global-batch-size": samples // rollout.updates,
        "num-rollout": rollout.steps,
        "rollout-max-response-len": rollout.max_response_tokens,
        "rollout-temperature": rollout.temperature,
        "rollout-num-gpus": 1,
        "rollout-num-gpus-per-engine": 1,
        "sglang-router-ip": host,
        "sglang-router-port": port,
        "save": folder.checkpoints,
        "save-interval": 1,
        "custom-config-path": config,
        **_model_flags(Path(recipe.model.path)),
        **HOOKS,
    }
    words = [str(word) for name, value in flags.items() for word in (f"--{name}", value)]
    return [*words, *extra]


def slime_args(folder: RunFolder, url: str, *extra: str) -> argparse.Namespace:
    """What slime's own parser makes of `slime_flags`."""
    from slime.utils.arguments import parse_args

    with mock.patch.object(sys, "argv", ["train.py", *slime_flags(folder, url, *extra)]):
        return parse_args()


def _model_flags(model: Path) -> dict[str, object]:
    """The MODEL_ARGS of a slime script; slime compares them with the model's config.json."""
    config = json.loads((model / "config.json").read_text())
    assert config["tie_word_embeddings"], "an untied model needs one switch more"
    return {
        "num-layers": config["num_hidden_layers"],
        "hidden-size": config["hidden_size"],
        "ffn-hidden-size": config["intermediate_size"],
        "num-attention-heads": config["num_attention_heads"],
        "norm-epsilon": config["rms_norm_eps"],
        "rotary-base": int(config["rope_parameters"]["rope_theta"]),
    }
