"""Limits of the service, and who may use it.

One design choice: a service that other machines can reach does not start without a token, so
forgetting one is an error message and not an open judge bill.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import stat
from dataclasses import dataclass
from pathlib import Path

MIN_TOKEN_CHARACTERS = 16
_MAX_TOKEN_BYTES = 4096
_HOW = (
    "write one with `(umask 077; openssl rand -hex 32 > judge.token)` and add "
    "`--token-file judge.token`, or name an environment variable that holds it by `--token-env`"
)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What one request may cost and how many are taken in; all times in seconds."""

    max_body_bytes: int = 4 * 1024 * 1024
    body_timeout_s: float = 30.0
    """For the body to arrive."""
    request_timeout_s: float = 600.0
    """For the scores of one request; what is undecided then has no verdict. The released
    LongTraceRL server allows 600."""
    concurrency: int = 256
    """Responses scored at the same time."""
    waiting: int = 2048
    """Responses that may wait for a place; further requests are answered 503."""
    retry_after_s: int = 2
    """Pause asked of a client that was answered 503."""
    drain_s: float = 30.0
    """For requests under way when the service is told to stop."""
    outcome_only: bool = False
    """Score a task that lacks the gold its reward needs by the outcome alone; else refuse it."""


class Guard:
    """Tells whether an Authorization header bears the token; without a token everyone may."""

    def __init__(self, token: str | None) -> None:
        self._digest = None if token is None else _digest(token)

    @property
    def open(self) -> bool:
        """Whether no token is asked for."""
        return self._digest is None

    def admits(self, authorization: str | None) -> bool:
        """Compares digests in constant time: neither length nor content can be measured."""
        if self._digest is None:
            return True
        scheme, _, given = (authorization or "").partition(" ")
        return hmac.compare_digest(_digest(given.strip()), self._digest) and (
            scheme.lower() == "bearer"
        )


def read_token(env: str | None, file: Path | None) -> str | None:
    """The token from an environment variable or a file of mode 600; None where neither is named.

    Raises ValueError for a token that is missing, short, or readable by others.
    """
    if env and file:
        raise ValueError("give --token-env or --token-file, not both")
    if env:
        token = os.environ.get(env, "").strip()
        if not token:
            raise ValueError(f"--token-env {env}: the variable is not set; {_HOW}")
        return _long_enough(token, f"--token-env {env}")
    if file:
        return _long_enough(_read_private(file), f"--token-file {file}")
    return None


def require_token_beyond_loopback(host: str, token: str | None) -> None:
    """ValueError where `host` is reachable from other machines and there is no token."""
    if token is None and not is_loopback(host):
        raise ValueError(
            f"--host {host} can be reached from other machines and needs a token: {_HOW}; or leave "
            "--host at 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`; a name other than localhost counts as reachable."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_private(file: Path) -> str:
    with file.open("rb") as opened:
        mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
        if mode & 0o077:
            raise ValueError(
                f"--token-file {file}: mode {mode:o} lets others read it; chmod 600 {file}"
            )
        return opened.read(_MAX_TOKEN_BYTES).decode("utf-8", "replace").strip()


def _long_enough(token: str, where: str) -> str:
    if len(token) < MIN_TOKEN_CHARACTERS:
        raise ValueError(
            f"{where}: the token has fewer than {MIN_TOKEN_CHARACTERS} characters; {_HOW}"
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
