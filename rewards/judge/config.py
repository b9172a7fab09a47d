"""Settings of a judge, validated before the first call is paid for.

One design choice: the budgets are nested here and checked against each other, because a retry
budget that exceeds the outer deadline is a retry that never happens.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MAX_BACKOFF_S = 8.0
"""Longest wait between two attempts, unless the server asks for another by Retry-After."""


class EndpointConfig(BaseModel):
    """One OpenAI-compatible server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(pattern=r"^https?://")
    """Base address up to and including /v1, e.g. http://judge:30000/v1. `${NAME}` stands for an
    environment variable, e.g. the host of a server that the job starts itself."""
    model: str | None = None
    """Name of the model there; None takes the judge's."""
    key_env: str | None = None
    """Environment variable that holds the key; a key itself is never part of a recipe."""
    key_file: Path | None = None
    """File that holds the key, mode 600."""

    @property
    def variables(self) -> list[str]:
        """Names of the environment variables in `url`."""
        return _VARIABLE.findall(self.url)

    def address(self) -> str:
        """`url` with its variables filled in. Raises ValueError for one that is not set."""
        for name in self.variables:
            if name not in os.environ:
                raise ValueError(
                    f"the judge's address {self.url} needs the environment variable {name}, which "
                    "is not set; a job sets LONGRL_SERVICE_NAME for its [[cluster.services]]"
                )
        return _VARIABLE.sub(lambda match: os.environ[match[1]], self.url)

    @model_validator(mode="after")
    def _one_key(self) -> EndpointConfig:
        if self.key_env and self.key_file:
            raise ValueError("give key_env or key_file, not both")
        return self


class JudgeConfig(BaseModel):
    """The [outcome.judge] section."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal["aa_lcr", "longrlvr", "eapo", "json"] = "aa_lcr"
    """Prompt and reply form; see rewards/judge/protocols/."""
    endpoints: tuple[EndpointConfig, ...] = ()
    """Servers that serve the same judge; a sick one is left out until it recovers."""
    model: str | None = None
    """None takes the model the protocol's paper used."""
    temperature: float | None = Field(default=None, ge=0)
    """None takes the protocol's."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Tokens of the reply; None takes the protocol's. A thinking judge needs several thousand."""
    structured: bool = False
    """Ask for JSON by `response_format` json_schema; the server must support it."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request, e.g. { chat_template_kwargs = { enable_thinking = false } }."""
    concurrency: int = Field(default=64, gt=0)
    """Requests under way at the same time, over all endpoints, in one process."""
    request_timeout_s: float = Field(default=60.0, gt=0)
    """Of one attempt, from sending it to the end of the reply."""
    attempts: int = Field(default=4, gt=0)
    deadline_s: float = Field(default=300.0, gt=0)
    """Of one verdict, waiting for a free place included."""
    breaker_failures: int = Field(default=5, gt=0)
    """Failures in a row after which an endpoint is left out."""
    breaker_reset_s: float = Field(default=10.0, gt=0)
    """How long it is left out before one request probes it."""
    cache: Path | None = None
    """SQLite file of verdicts; None keeps verdicts for this process only."""
    max_no_verdict_share: float = Field(default=0.1, ge=0, le=1)
    """Above this share of undecided samples a step waits and asks again."""
    retry_every_s: float = Field(default=5.0, gt=0)
    """Pause between two rounds of asking again."""
    outage_limit_s: float = Field(default=1800.0, gt=0)
    """After so long the run saves and stops; the same command goes on."""

    @model_validator(mode="after")
    def _budgets_nest(self) -> JudgeConfig:
        waits = sum(min(MAX_BACKOFF_S, 0.5 * 2**n) for n in range(self.attempts - 1))
        needed = self.attempts * self.request_timeout_s + waits
        if needed > self.deadline_s:
            raise ValueError(
                f"attempts x request_timeout_s and the waits between them take up to {needed:g} s, "
                f"more than deadline_s = {self.deadline_s:g}; raise deadline_s or lower the others"
            )
        return self
