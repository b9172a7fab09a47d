"""Keys of judge servers: from the environment or from a file nobody else can read.

One design choice: a key is a SecretStr from the moment it is read, and no message here quotes what
was read, so that neither a log nor a traceback can hold a key.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pydantic import SecretStr

from rewards.judge.config import EndpointConfig


class KeyMissingError(ValueError):
    """A key was promised by the recipe and is absent, unreadable by us or readable by others."""


def read_key(endpoint: EndpointConfig) -> SecretStr | None:
    """The key of `endpoint`, None where the recipe names none.

    Raises KeyMissingError that names the variable or file and what to type.
    """
    if endpoint.key_env is not None:
        return _checked(_from_environment(endpoint), f"environment variable {endpoint.key_env}")
    if endpoint.key_file is not None:
        path = endpoint.key_file.expanduser()
        return _checked(_from_file(path, endpoint.url), f"key file {path}")
    return None


def _from_environment(endpoint: EndpointConfig) -> str:
    name = endpoint.key_env or ""
    value = os.environ.get(name, "").strip()
    if not value:
        raise KeyMissingError(
            f"the judge at {endpoint.url} takes its key from environment variable {name}, which is "
            f"not set; type: read -rs {name} && export {name}"
        )
    return value


def _from_file(path: Path, url: str) -> str:
    try:
        mode = path.stat().st_mode
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise KeyMissingError(
            f"the judge at {url} takes its key from file {path}, which cannot be read: {why}"
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyMissingError(
            f"key file {path} has mode {stat.S_IMODE(mode):o}: others can reach it; "
            f"type: chmod 600 {path}"
        )
    if not value:
        raise KeyMissingError(f"key file {path} is empty; write the key of {url} into it")
    return value


def _checked(value: str, source: str) -> SecretStr:
    if not all("!" <= character <= "~" for character in value):
        raise KeyMissingError(
            f"{source} holds spaces, line breaks or letters outside ASCII within the key; "
            "it must hold the key alone"
        )
    return SecretStr(value)
