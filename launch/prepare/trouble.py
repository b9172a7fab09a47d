"""What goes wrong between here and the hub, as messages that say what to do.

One design choice: only errors whose cause is known are explained; any other keeps its traceback.
`huggingface_hub` speaks through requests, httpx or httpx2, by its version; `errors.HTTPError` is
the base class of whichever it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from slime_ext.errors import ExplainedError


@contextmanager
def explained(what: str, by_hand: str) -> Iterator[None]:
    """Turn errors of `huggingface_hub` and `datasets` into ExplainedError.

    `what` is the repository, as in "model Qwen/Qwen3-14B"; `by_hand` says how to bring the files
    here without network.
    """
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    try:
        yield
    except (OSError, HTTPError) as error:
        remedy = _remedy(error, by_hand)
        if remedy is None:
            raise
        raise ExplainedError(f"{what}: {remedy}") from error


def _remedy(error: BaseException, by_hand: str) -> str | None:
    """The first known cause in the chain of `error`, explained; None where there is none."""
    seen: BaseException | None = error
    while seen is not None:
        text = _known(seen, by_hand)
        if text is not None:
            return text
        seen = seen.__cause__ or seen.__context__
    return None


def _known(error: BaseException, by_hand: str) -> str | None:
    from huggingface_hub import constants, errors

    if isinstance(error, errors.GatedRepoError):
        return (
            "its owners want to be asked first (HTTP 401 or 403, gated); ask on the repository's "
            "page, then log in here with `hf auth login` or set HF_TOKEN"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "the hub knows no such repository, or it is private; check the spelling, and for a "
            "private one log in with `hf auth login` or set HF_TOKEN"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return "the repository has no such revision; check what stands after the @"
    if isinstance(error, errors.HfHubHTTPError) and error.response is not None:
        status = error.response.status_code
        if status in (401, 403):
            return f"access denied (HTTP {status}); log in with `hf auth login` or set HF_TOKEN"
        return f"{constants.ENDPOINT} answered HTTP {status}; try again later, or {by_hand}"
    transport = isinstance(error, ConnectionError | errors.HTTPError)  # type: ignore[attr-defined]
    if transport or type(error).__module__ == "requests.exceptions":
        if constants.HF_HUB_OFFLINE:
            return f"HF_HUB_OFFLINE is set; run `HF_HUB_OFFLINE=0 longrl prepare ...`, or {by_hand}"
        return (
            f"no connection to {constants.ENDPOINT}; run this on a machine with network (set "
            f"HTTPS_PROXY behind a proxy, HF_ENDPOINT for a mirror), or {by_hand}"
        )
    return None
