"""What a W&B config shows of a recipe: all of it but secrets."""

from __future__ import annotations

from pathlib import Path

from slime_ext.metrics.shown_config import HIDDEN, shown_config
from slime_ext.recipe.load import load_recipe

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"


def test_a_recipe_without_secrets_is_shown_whole() -> None:
    recipe = load_recipe(LAB).recipe
    variables = {"WANDB_API_KEY": "0" * 40, "PATH": "/usr/bin", "SHORT_TOKEN": "lab"}
    assert shown_config(recipe, variables) == recipe.model_dump(mode="json")


def test_secrets_are_hidden_wherever_they_stand() -> None:
    endpoint = (
        '[{url="http://me:pass-word@judge:30000/v1",key_env="JUDGE"},'
        '{url="http://two/v1?key=value-of-judge",key_env="JUDGE"}]'
    )
    recipe = load_recipe(
        LAB,
        [
            "outcome.kind=judge",
            "outcome.judge.model=m",
            f"outcome.judge.endpoints={endpoint}",
            "extra.slime.wandb-key=planted",
            "track.group=by-0123456789",
            "track.project=value-of-site",
            'cluster.secrets=["SITE"]',
        ],
    ).recipe
    variables = {
        "JUDGE": "value-of-judge",
        "SITE": "value-of-site",
        "WANDB_API_KEY": "0123456789",
    }
    shown = shown_config(recipe, variables)
    one, two = shown["outcome"]["judge"]["endpoints"]
    assert one["url"] == f"http://{HIDDEN}@judge:30000/v1"
    assert two["url"] == HIDDEN
    assert one["key_env"] == "JUDGE"
    assert shown["extra"]["slime"]["wandb-key"] == HIDDEN
    assert (shown["track"]["group"], shown["track"]["project"]) == (HIDDEN, HIDDEN)
    assert shown["cluster"]["secrets"] == ["SITE"]
    assert shown["rollout"] == recipe.model_dump(mode="json")["rollout"]
