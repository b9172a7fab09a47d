"""Where the engines of a run are reached, written into the run folder.

One design choice: slime chooses the router's address when it starts and tells nobody outside, so
the first hook that is called with it writes it down for whoever looks at the run from outside.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from slime_ext.rollout.runtime import Runtime

FILE = "engines.json"


def note_engines(runtime: Runtime, args: Any) -> None:
    """Write the router that `args` name to the run folder, once for each address."""
    host, port = (getattr(args, f"sglang_router_{part}", None) for part in ("ip", "port"))
    router = f"http://{host}:{port}"
    if not (host and port) or router == runtime.router:
        return
    runtime.router = router
    path = runtime.folder / FILE
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"router": router}) + "\n")
    partial.replace(path)


def noted_router(run: Path) -> str | None:
    """The router of the run in `run`, None where no request was made yet."""
    try:
        return str(json.loads((run / FILE).read_text())["router"])
    except FileNotFoundError:
        return None
