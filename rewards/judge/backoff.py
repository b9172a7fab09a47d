"""How long to wait before the next attempt.

One design choice: full jitter (a uniform draw from zero to a doubling bound), because equal waits
send the requests that failed together back together. Where the endpoint has answered others in the
meantime the bound is 20 ms and does not double: the fault was this request's, and the limit on
requests under way already bounds the load.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from rewards.judge.config import MAX_BACKOFF_S

BASE_S = 0.5
QUICK_S = 0.02
"""Not doubled: chance fails as often after a long wait, and at 20% errors one request in a thousand
kept its whole batch waiting for seconds."""


def bound_s(failures: int, *, answers_others: bool) -> float:
    """Upper bound in seconds of the wait after the `failures`-th failure of a request."""
    if answers_others:
        return QUICK_S
    return float(min(MAX_BACKOFF_S, BASE_S * 2 ** (failures - 1)))


def retry_after_s(value: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for, None where it is absent or malformed.

    `now` is seconds since the epoch. Both forms of RFC 9110, section 10.2.3: seconds and HTTP date.
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return max(0.0, moment.timestamp() - now)
    except (ValueError, OverflowError):
        return None
