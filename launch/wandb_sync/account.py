"""The W&B server and whether it knows our key, asked before anything is uploaded.

One design choice: asked with a request of our own and a short timeout. The client of wandb tries a
dead server for minutes, and a refused key reaches it as one more temporary fault.
"""

from __future__ import annotations

import netrc
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from slime_ext.errors import ExplainedError

ANSWER_S = 15.0
PUBLIC = "https://api.wandb.ai"


class AccountError(ExplainedError):
    """W&B cannot be used: no key, a wrong one, or no server."""


@dataclass(frozen=True, slots=True)
class Account:
    """A server and the key it takes."""

    url: str
    entity: str
    """Where runs go that name no team."""
    key: str = field(repr=False)

    def rows_of(self, entity: str | None, project: str, run: str) -> int:
        """Number of history rows the server has of a run, 0 where it has no such run.

        Raises AccountError where it does not answer.
        """
        query = (
            "query Rows($entity: String, $project: String, $run: String!) {"
            " project(name: $project, entityName: $entity) {"
            " run(name: $run) { historyLineCount } } }"
        )
        names = {"entity": entity or self.entity, "project": project, "run": run}
        data = _ask(self.url, self.key, query, names)
        found = (data.get("project") or {}).get("run") or {}
        return int(found.get("historyLineCount") or 0)


def find_account(host: str | None) -> Account:
    """The server of the recipe (`track.host`), of WANDB_BASE_URL or the public one, and its key.

    Raises AccountError where there is no key, the server refuses it or does not answer.
    """
    url = (host or os.environ.get("WANDB_BASE_URL") or PUBLIC).rstrip("/")
    key = os.environ.get("WANDB_API_KEY") or _netrc_key(url)
    if not key:
        raise AccountError(
            f"there is no key for {url}: export WANDB_API_KEY, or type `wandb login`; "
            "`longrl sync RUN --offline` needs none"
        )
    viewer = _ask(url, key, "query Viewer { viewer { entity username } }", {}).get("viewer")
    if not viewer:
        raise _refused(url)
    return Account(url, str(viewer.get("entity") or viewer.get("username")), key)


def _ask(url: str, key: str, query: str, variables: dict[str, str]) -> dict[str, Any]:
    body = {"query": query, "variables": variables}
    try:
        answer = httpx.post(f"{url}/graphql", json=body, auth=("api", key), timeout=ANSWER_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AccountError(
            f"no W&B server answers at {url} ({error or type(error).__name__}); check track.host "
            "and the network, or use `longrl sync RUN --offline`"
        ) from error
    if answer.status_code in (401, 403):
        raise _refused(url)
    try:
        data = answer.json()["data"]
    except (ValueError, KeyError, TypeError):
        data = None
    if answer.status_code != 200 or not isinstance(data, dict):
        raise AccountError(
            f"{url} answers with HTTP status {answer.status_code} and not as a W&B server does; "
            "check track.host and WANDB_BASE_URL"
        )
    return data


def _refused(url: str) -> AccountError:
    return AccountError(
        f"{url} refuses the key: copy it anew from {url.replace('api.', '', 1)}/authorize into "
        "WANDB_API_KEY"
    )


def _netrc_key(url: str) -> str | None:
    """What `wandb login` stored."""
    path = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    try:
        found = netrc.netrc(path).authenticators(urlsplit(url).netloc)
    except (FileNotFoundError, netrc.NetrcParseError):
        return None
    return found[2] if found else None
