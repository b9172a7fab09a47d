"""Engines that run already: their addresses, and what they serve.

One design choice: they are asked before anything is started, because slime answers a dead one with
a traceback after a minute, and a wrong model with plausible figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from slime_ext.errors import ExplainedError

INFO_PATHS = ("/server_info", "/get_server_info")
"""Of newer and older SGLang servers."""
TIMEOUT_S = 10.0


def parse_engines(text: str) -> list[str]:
    """`HOST:PORT` of each engine in `URL,URL`; ExplainedError for one that is no such address."""
    return [_address(url.strip()) for url in text.split(",") if url.strip()]


def served_models(engines: Sequence[str]) -> dict[str, str]:
    """The model folder that each engine says it serves.

    Raises ExplainedError for one that does not answer as an SGLang server.
    """
    return {engine: _served(engine) for engine in engines}


def other_models(served: Mapping[str, str], wanted: Path) -> list[str]:
    """One line for each engine whose model is not the folder `wanted`."""
    return [
        f"{engine} serves {path}, not {wanted}"
        for engine, path in served.items()
        if Path(path).resolve() != wanted.resolve()
    ]


def _address(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or parts.hostname is None or port is None:
        raise ExplainedError(
            f"--engines: {url!r} is no address of an engine; write http://HOST:PORT"
        )
    return parts.netloc


def _served(engine: str) -> str:
    said = "it answered nothing"
    for path in INFO_PATHS:
        try:
            answer = httpx.get(f"http://{engine}{path}", timeout=TIMEOUT_S, trust_env=False)
            answer.raise_for_status()
            return str(answer.json()["model_path"])
        except httpx.HTTPError as error:
            said = str(error)
        except (ValueError, KeyError, TypeError):
            said = f"{path} is not SGLang's"
    raise ExplainedError(
        f"--engines: {engine} does not answer as an SGLang server ({said}); start it, or leave out "
        "--engines, and slime starts engines on the GPUs of its Ray"
    )
