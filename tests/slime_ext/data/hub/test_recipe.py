"""A recipe that names a published set, from the name to the rows a run draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.hub.convert import prepare_set
from slime_ext.data.hub.names import parse_hub
from slime_ext.embedded.builtin import resolve
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import load_runtime

Make = Callable[..., Any]
TRAIN, EVAL = "hub:THU-KEG/LongTraceRL:train[1:]", "hub:THU-KEG/LongTraceRL:train[:1]"


def recipe(*overrides: str) -> Recipe:
    lab = configs_folder() / "embedded" / "lab.toml"
    names = [f'data.train="{TRAIN}"', f'data.eval="{EVAL}"', "data.options={}"]
    form = ["data.format=longtracerl", "data.prompt=messages"]
    return load_recipe(lab, [*names, *form, *overrides]).recipe


def test_a_set_that_is_not_prepared_names_the_command(
    local_set: Make, trace: Make, tmp_path: Path
) -> None:
    local_set("THU-KEG/LongTraceRL", [trace(1), trace(2)])
    with pytest.raises(
        DataError, match=r"train\[1:\] is not prepared here .*longrl prepare RECIPE"
    ):
        resolve(recipe(), tmp_path / "run")


def test_prepared_rows_and_a_file_as_published_serve_one_run(
    local_set: Make, trace: Make, tmp_path: Path
) -> None:
    local_set("THU-KEG/LongTraceRL", [trace(n) for n in range(3)])
    for name in (TRAIN, EVAL):
        prepare_set(parse_hub(name), "longtracerl")
    published = tmp_path / "aa_lcr.jsonl"
    published.write_text(json.dumps(trace(9)) + "\n")
    asked = recipe(f'data.eval_sets={{ aa-lcr = "{published}" }}')
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    write_recipe(folder, resolve(asked, folder.path))
    load_runtime.cache_clear()
    runtime = load_runtime(folder.recipe)
    shown = {split: [r.messages[0].content for r in rows] for split, rows in runtime.rows.items()}
    assert shown == {
        "train": ["Documents 1. Which city?", "Documents 2. Which city?"],
        "eval": ["Documents 0. Which city?"],
        "aa-lcr": ["Documents 9. Which city?"],
    }
