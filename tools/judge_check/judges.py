"""Which judges are compared: short specifications on the command line, or a TOML file.

One design choice: the keys are those of [outcome.judge], so that the judge that did best is copied
into a recipe as it stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rewards.judge.config import EndpointConfig, JudgeConfig
from slime_ext.errors import ExplainedError, nearest

_ENDPOINT_KEYS = ("url", "key_env", "key_file")
_KEYS = (*JudgeConfig.model_fields, *_ENDPOINT_KEYS, "name")
_EXAMPLE = '--judge "name=qwen,url=http://HOST:30000/v1,model=NAME,protocol=aa_lcr"'


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge and the name it has in the table."""

    name: str
    config: JudgeConfig


def parse_judge(text: str) -> NamedJudge:
    """A judge from "key=value,key=value"; `url` may be repeated for several servers of one judge.

    Values are TOML; a bare word is a string. Raises ExplainedError.
    """
    table: dict[str, Any] = {}
    for part in re.split(r",(?=\s*\w+\s*=)", text):
        key, equals, raw = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not raw:
            raise ExplainedError(f"--judge {text}: {part!r} is not key=value; write {_EXAMPLE}")
        if key == "url":
            table.setdefault("url", []).append(raw.strip('"'))
        elif key in table:
            raise ExplainedError(f"--judge {text}: {key} is given twice")
        else:
            table[key] = _value(raw)
    return _judge(table, f"--judge {text}")


def load_judges(path: Path) -> list[NamedJudge]:
    """Judges from the [[judge]] tables of a TOML file. Raises ExplainedError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("judge")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExplainedError(f"{path}: not valid TOML: {error}") from None
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise ExplainedError(
            f'{path}: write one [[judge]] table a judge, with url = "http://HOST:30000/v1" in it'
        )
    return [_judge(one, f"{path}: judge {n}") for n, one in enumerate(tables, 1)]


def judges_at(endpoint: str, model: str | None, protocols: Sequence[str]) -> list[NamedJudge]:
    """One judge per protocol, all at one address."""
    tables = [
        {"url": endpoint, "protocol": protocol} | ({"model": model} if model else {})
        for protocol in protocols or ("aa_lcr",)
    ]
    return [_judge(table, f"--endpoint {endpoint}") for table in tables]


def require_distinct(judges: Sequence[NamedJudge]) -> None:
    """ExplainedError where there is no judge, or two would share a name."""
    if not judges:
        raise ExplainedError(f"no judge to check; write --endpoint URL, or {_EXAMPLE}")
    names = [judge.name for judge in judges]
    for name in names:
        if names.count(name) > 1:
            raise ExplainedError(f"two judges are called {name!r}; give each a name=...")


def _judge(table: Mapping[str, Any], where: str) -> NamedJudge:
    for key in table:
        if key not in _KEYS:
            raise ExplainedError(f"{where}: unknown key {key!r}; {nearest(key, _KEYS)}")
    settings = {k: v for k, v in table.items() if k not in (*_ENDPOINT_KEYS, "name")}
    urls = table.get("url", [])
    keys = {k: table[k] for k in ("key_env", "key_file") if k in table}
    try:
        given = [
            EndpointConfig(url=url, **keys) for url in ([urls] if isinstance(urls, str) else urls)
        ]
        if given:
            settings["endpoints"] = [*settings.get("endpoints", ()), *given]
        config = JudgeConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ExplainedError(f"{where}: {place}: {first['msg']}") from None
    if not config.endpoints:
        raise ExplainedError(f"{where}: no url; write {_EXAMPLE}")
    name = str(table.get("name") or "/".join(filter(None, (config.model, config.protocol))))
    return NamedJudge(name, config)


def _value(raw: str) -> Any:
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw
