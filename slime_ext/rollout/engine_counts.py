"""What this process met at the rollout engines since it was last asked: lost calls, refused aborts.

One design choice: counted where the requests are made, because hosts do not tell hooks: slime
repeats a refused abort sixty times, a second apart, and then leaves one line in a log.
"""

from __future__ import annotations

import logging
from collections import Counter

SHOWN = 500
"""Characters of an engine's answer in the log."""

_log = logging.getLogger(__name__)
_lost: Counter[str] = Counter()
_refused: set[int] = set()
_refusing: dict[str, int] = {}


def note_lost(url: str, why: str) -> None:
    """Count a call of /generate that got no answer; each address's first since `take` is logged."""
    address = url.removesuffix("/generate")
    _lost[address] += 1
    if _lost[address] == 1:
        _log.warning("%s lost a request (%s); it is asked again, there or elsewhere", address, why)


def note_refusal(status: int, text: str) -> None:
    """Log the first answer of each error status since `take`; its sample is counted as failed."""
    if status not in _refused:
        _refused.add(status)
        _log.warning("an engine answered %d to POST /generate: %s", status, text[:SHOWN])


def note_abort_answer(worker: str, status: int) -> None:
    """Remember how `worker` answers POST /abort_request; a refusal is logged once."""
    if status < 400:
        _refusing.pop(worker, None)
    elif worker not in _refusing:
        _refusing[worker] = status
        _log.warning(
            "the engine at %s answers %d to POST /abort_request, so no request can be taken back: "
            "slime asks it for a minute at the end of each step and then waits for what it still "
            "generates; serve it with SGLang, or take it off the router",
            worker,
            status,
        )


def take() -> dict[str, float]:
    """Metrics `engine/NAME`: calls lost since the last call, workers that refuse to abort."""
    lost = _lost.total()
    _lost.clear()
    _refused.clear()
    return {"engine/lost_calls": float(lost), "engine/abort_refused": float(len(_refusing))}
