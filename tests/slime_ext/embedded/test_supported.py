"""The embedded trainer and engine refuse models they would compute wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.supported import UnsupportedModelError, require_supported
from slime_ext.embedded.trainer import Trainer
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.rope_config import Llama3Rope, YarnRope
from slime_ext.weights.shape import ModelShape, read_shape

SHAPE = ModelShape("qwen3", 2, 32, 4, 2, 8, 48, 64, 1e-6, 1e4, None, True, 128)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"architecture": "qwen2"}, "'qwen2'"),
        ({"architecture": "qwen3_moe"}, "'qwen3_moe'"),
        ({"architecture": "qwen3_5"}, "'qwen3_5'"),
        ({"partial_rotary": 0.25}, "partial_rotary_factor = 0.25"),
        ({"rope_scaling": YarnRope(4.0, 32768)}, "YarnRope"),
    ],
)
def test_unsupported_shapes_are_refused_with_the_remedy(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f'{named}.*backend = "slime"'):
        require_supported(replace(SHAPE, **change))


def test_supported_shapes_pass() -> None:
    require_supported(SHAPE)
    require_supported(
        replace(SHAPE, architecture="llama", rope_scaling=Llama3Rope(8.0, 1.0, 4.0, 64))
    )


def test_trainer_and_engine_both_ask(
    model_folder: Path,
    make_recipe: Callable[..., Recipe],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = replace(read_shape(model_folder), rope_scaling=YarnRope(4.0, 128))
    for module in ("slime_ext.embedded.engine.model", "slime_ext.embedded.trainer"):
        monkeypatch.setattr(f"{module}.read_shape", lambda _: other)
    with pytest.raises(UnsupportedModelError, match="YarnRope"):
        Decoder(model_folder)
    with pytest.raises(UnsupportedModelError, match="YarnRope"):
        Trainer(model_folder, make_recipe())


def test_a_rope_override_is_refused(model_folder: Path, make_recipe: Callable[..., Recipe]) -> None:
    recipe = make_recipe(model={"rope_scaling": {"rope_type": "default"}})
    with pytest.raises(RecipeError, match=r"model\.rope_scaling.*config\.json"):
        Trainer(model_folder, recipe)
