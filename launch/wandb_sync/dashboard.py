"""The dashboard of a project: a W&B workspace made from `panels.py`.

One design choice: the same object is saved and is compared with a golden file in the tests, so what
a project gets is in the repository to read.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from launch.wandb_sync.account import find_account
from launch.wandb_sync.cursor import read_cursor, replaced_dashboard
from launch.wandb_sync.panels import SECTIONS, PanelSpec
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe

NAME = "LongRL"
OPEN = ("Reward", "Held-out", "Response length", "Judge health")


def workspace(entity: str, project: str) -> Any:
    """The dashboard as an object of wandb-workspaces; nothing is sent.

    Raises ExplainedError where wandb-workspaces is not installed.
    """
    try:
        import wandb_workspaces.workspaces as ws
    except ModuleNotFoundError as error:
        raise ExplainedError(
            'the dashboard needs the extra: pip install "longrl[track]"'
        ) from error
    sections = [
        ws.Section(
            name=name,
            panels=[_plot(spec) for spec in panels],
            is_open=name in OPEN,
        )
        for name, panels in SECTIONS.items()
    ]
    return ws.Workspace(entity=entity, project=project, name=NAME, sections=sections)


def save_dashboard(folder: RunFolder) -> str:
    """Save the dashboard in the project of a run, over the one saved from here before; its address.

    Raises AccountError where W&B cannot be used.
    """
    track = load_recipe(folder.recipe).recipe.track
    account = find_account(track.host)
    os.environ |= {"WANDB_BASE_URL": account.url, "WANDB_API_KEY": account.key}
    made = workspace(track.team or account.entity, track.project)
    saved = _saved_before(read_cursor(folder).dashboard)
    if saved is not None:
        saved.sections = made.sections
        made = saved
    made.save()
    replaced_dashboard(folder, str(made.url))
    return str(made.url)


def _saved_before(address: str) -> Any:
    """The saved workspace, None where there is none or somebody has removed it."""
    if not address:
        return None
    import wandb_workspaces.workspaces as ws

    try:
        return ws.Workspace.from_url(address)
    except ValueError:
        return None


def _plot(spec: PanelSpec) -> Any:
    # wandb-workspaces has types for its own use only.
    reports: Any = importlib.import_module("wandb_workspaces.reports.v2")
    names = spec.names()
    lines = {"y": list(names)} if names else {"metric_regex": spec.pattern()}
    return reports.LinePlot(title=spec.title, x=spec.axis, **lines)
