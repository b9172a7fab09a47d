"""What every W&B client of a run agrees on: the run's id and the axes of its metrics.

One design choice: no row carries W&B's own step while a run is live. That step may never go back
(wandb drops a row whose step does), and a step that a restart does again would be lost; each group
of metrics has an axis of its own among its values, as slime's have.
"""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError

AXES = {"rollout": "rollout/step", "train": "train/step", "eval": "eval/step"}
"""The first part of a metric's name, and the metric that is its x-axis."""
ID_FILE = "wandb_id.json"
MAX_ID = 64
_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_DRAWN = 8


class RunIdError(ExplainedError, ValueError):
    """The file with the id of the W&B run was changed to what W&B refuses."""


def wandb_run_id(folder: Path) -> str:
    """Id of the W&B run of the run folder `folder`: its name and 8 random hexadecimal digits.

    Drawn once and kept in `wandb_id.json`, so that all attempts are one W&B run, while a run begun
    anew and one of the same name elsewhere are others: W&B takes an id once in a project, even
    after the run was deleted. Raises RunIdError where the file holds no id.
    """
    path = folder / ID_FILE
    if not path.is_file():
        name = re.sub(r"[^A-Za-z0-9_-]", "-", folder.name)[: MAX_ID - _DRAWN - 1]
        drawn = f"{name}-{secrets.token_hex(_DRAWN // 2)}"
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps({"id": drawn}) + "\n")
        partial.replace(path)
    try:
        found = json.loads(path.read_text())["id"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str) or len(found) > MAX_ID or not _ALLOWED.fullmatch(found):
        raise RunIdError(
            f'{path} must read {{"id": "..."}} with 1 to {MAX_ID} letters, digits, - and _; '
            "put the old id back, or remove the file to begin a new W&B run"
        )
    return found


def define_axes(run: Any) -> None:
    """Tell the wandb run `run` which metric is the x-axis of which."""
    for group, axis in AXES.items():
        run.define_metric(axis)
        run.define_metric(f"{group}/*", step_metric=axis)
    run.define_metric("perf/*", step_metric=AXES["rollout"])
