"""A recipe as others may see it: the config of a W&B run, without anything secret.

One design choice: what is hidden is found three ways, as none finds everything: a key with the name
of a secret, a password inside an address, and any text that holds the value of a secret variable of
this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from slime_ext.recipe.schema import Recipe

LOOKS_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?$", re.IGNORECASE)
HIDDEN = "(hidden)"
SHORTEST = 8
"""Shorter values of secret variables are not looked for: they occur in texts by chance."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")


def shown_config(recipe: Recipe, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The resolved recipe as JSON values; texts that are or hold a secret are replaced."""
    named = {*recipe.cluster.secrets, *(one.key_env for one in recipe.outcome.judge.endpoints)}
    secrets = [
        value
        for name, value in environment.items()
        if (name in named or LOOKS_SECRET.search(name)) and len(value) >= SHORTEST
    ]
    shown = _shown("", recipe.model_dump(mode="json"), secrets)
    assert isinstance(shown, dict)
    return shown


def _shown(name: str, value: Any, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _shown(key, inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown("", inner, secrets) for inner in value]
    if not isinstance(value, str):
        return value
    # Names of variables and of tokens are in recipes by purpose; only values of such keys hide.
    if LOOKS_SECRET.search(name) or any(secret in value for secret in secrets):
        return HIDDEN
    return _PASSWORD.sub(f"{HIDDEN}@", value)
