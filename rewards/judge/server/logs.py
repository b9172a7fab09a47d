"""Structured logs: one JSON object a line on standard error, without contents or keys.

One design choice: other packages' records lose their message texts (an exception may quote an
answer or a header) and keep logger, level, exception type and the lines of code it came through.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from typing import Any, TextIO

import orjson

_log = logging.getLogger("rewards.judge.server.log")
_FIELDS = "fields"


def log(event: str, **fields: str | int | float | bool | None) -> None:
    """Write one record; callers pass counts, names and durations, never texts of a request."""
    _log.info(event, extra={_FIELDS: fields})


def start_logging(stream: TextIO = sys.stderr) -> None:
    """Send every record of this process, ours at INFO and others at WARNING, as JSON lines."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    _log.setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """Formats a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.gmtime(record.created)
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", moment) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
        }
        fields = getattr(record, _FIELDS, None)
        if record.name == _log.name and fields is not None:
            line |= {"event": record.msg, **fields}
        else:
            line |= {"event": "log", "logger": record.name, "line": record.lineno}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = [
                f"{frame.name}:{frame.lineno}"
                for frame in traceback.extract_tb(record.exc_info[2])[-8:]
            ]
        return orjson.dumps(line).decode()
