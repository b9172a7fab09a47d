"""How a hook that the host calls plainly does asynchronous work.

One design choice: under slime the work goes to slime's own background loop, where its rollouts run,
so that pooled connections are shared with them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Coroutine
from typing import Any

from slime_ext.host.types import HAVE_SLIME


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`; call it from outside any running loop."""
    if HAVE_SLIME:
        return importlib.import_module("slime.utils.async_utils").run(work)
    return asyncio.run(work)
