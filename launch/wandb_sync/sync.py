"""Uploading a run folder as one W&B run, as often as one likes.

One design choice: nothing is uploaded twice and nothing is taken back. W&B's history only grows, so
the newest step of a run that goes on waits until it is whole, and a step that was done again after
its upload is reported and not repeated.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from launch.wandb_sync.account import Account, find_account
from launch.wandb_sync.client import ClientError, Job, run_client
from launch.wandb_sync.cursor import Cursor, pending, read_cursor, write_cursor
from launch.wandb_sync.rows import Row, is_over, wandb_rows
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.shown_config import shown_config
from slime_ext.metrics.wandb_run import ID_FILE, wandb_run_id
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

QUIET: dict[str, Any] = {
    "console": "off",
    "silent": True,
    "disable_git": True,
    "disable_code": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
    "init_timeout": 60.0,
}
"""The machine that uploads is not the one that trained: nothing of it belongs into the run."""
CONFIRM_S = 30.0
"""How long the server may take to count what it was sent."""


class SyncError(ExplainedError):
    """The folder cannot be uploaded; the message says why."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What an upload did."""

    rows: int
    changed: list[int]
    held: int | None
    url: str


def begin_anew(folder: RunFolder) -> None:
    """Forget the W&B run of the folder: the next upload is whole and makes another."""
    (folder.path / ID_FILE).unlink(missing_ok=True)
    dashboard = read_cursor(folder).dashboard
    write_cursor(folder, Cursor(wandb_run_id(folder.path), dashboard=dashboard))


def sync_online(folder: RunFolder, everything: bool, limit_s: float) -> Synced:
    """Upload what is new; `everything` includes the newest step of a run that is not over.

    Raises SyncError where there is nothing to upload or the run logs to W&B itself, AccountError,
    ClientError where the server does not take or does not confirm the rows.
    """
    recipe, rows = _read(folder)
    cursor, run = read_cursor(folder), wandb_run_id(folder.path)
    if cursor.run != run:
        cursor = Cursor(dashboard=cursor.dashboard)
    if recipe.track.wandb == "online" and not cursor.run:
        raise SyncError(
            f"{folder.path} logs to W&B while it runs (track.wandb = online): what is there cannot "
            "be filled up afterwards; --anew makes a second W&B run, from the records"
        )
    todo = pending(rows, cursor, everything or is_over(folder))
    if not todo.new:
        return Synced(0, todo.changed, todo.held, "")
    account = find_account(recipe.track.host)
    track = recipe.track
    before = account.rows_of(track.team, track.project, run)
    # Whatever the server lost of what was uploaded goes with the rest: it decides, in `client`.
    sent = [row for row in rows if row.step <= todo.new[-1].step]
    job = _job(recipe, folder, run, sent, {"mode": "online", "resume": "allow"})
    job.settings["base_url"] = account.url
    done = run_client(job, {"WANDB_API_KEY": account.key}, limit_s)
    new = len(sent) - int(done["skipped"])
    _confirm(account, recipe, run, before + new)
    write_cursor(folder, cursor.after(run, sent))
    return Synced(new, todo.changed, todo.held, str(done["url"]))


def sync_offline(folder: RunFolder, limit_s: float) -> Synced:
    """Write all rows as one offline run of wandb under `wandb/` in the run folder.

    Raises SyncError where there is nothing to write, ClientError where wandb fails.
    """
    recipe, rows = _read(folder)
    run = wandb_run_id(folder.path)
    job = _job(recipe, folder, run, rows, {"mode": "offline", "dir": str(folder.path)})
    run_client(job, {}, limit_s)
    newest = max((folder.path / "wandb").glob(f"offline-run-*-{run}"), key=lambda one: one.name)
    return Synced(len(rows), [], None, str(newest))


def _read(folder: RunFolder) -> tuple[Recipe, list[Row]]:
    if not folder.recipe.is_file():
        raise SyncError(f"{folder.path} holds no recipe.toml: the run has not begun")
    rows = wandb_rows(folder)
    if not rows:
        raise SyncError(f"{folder.metrics} holds no record yet: no step was finished")
    return load_recipe(folder.recipe).recipe, rows


def _job(recipe: Recipe, folder: RunFolder, run: str, rows: list[Row], how: dict[str, Any]) -> Job:
    track = recipe.track
    init = {
        "entity": track.team,
        "project": track.project,
        "group": track.group or recipe.name,
        "name": recipe.name,
        "id": run,
        "config": shown_config(recipe),
        **how,
    }
    values = [(row.step, row.values) for row in rows]
    return Job(init, dict(QUIET), values, _summary(folder, rows))


def _summary(folder: RunFolder, rows: list[Row]) -> dict[str, Any]:
    """The figures of summary.json by name, and how many attempts it took."""
    found: dict[str, Any] = {"attempts": max(max(row.attempts) for row in rows)}
    if folder.summary.is_file():
        for name, value in json.loads(folder.summary.read_text()).items():
            if isinstance(value, dict):
                found |= {f"{name}/{inner}": figure for inner, figure in value.items()}
            else:
                found[name] = value
    return found


def _confirm(account: Account, recipe: Recipe, run: str, wanted: int) -> None:
    """wandb's client ends well even where its server refused the rows, so the server is asked."""
    deadline = time.monotonic() + CONFIRM_S
    while (
        have := account.rows_of(recipe.track.team, recipe.track.project, run)
    ) < wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    if have < wanted:
        raise ClientError(
            f"{account.url} has {have} of {wanted} rows of {run}; the same command sends the rest"
        )
