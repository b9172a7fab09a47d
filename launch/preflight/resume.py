"""Whether a run that exists already will go on from where it stopped.

One design choice: checkpoints without the marker `latest_checkpointed_iteration.txt` are a failure,
because slime then starts over from step 0 in silence and everything looks well. `longrl train` and
`longrl submit` put the marker right; a command typed by hand does not.
"""

from __future__ import annotations

import re
from pathlib import Path

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder, RunFolderError, check_run
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import MARKER, incomplete, iteration_of


def check_resume(recipe: Recipe, context: Context) -> list[Finding]:
    """The run folder of this name, if there is one."""
    area = Area("resume")
    folder = context.folder
    if not folder.path.exists():
        area.ok("run", f"{folder.path} does not exist: a new run")
    elif folder.summary.is_file():
        # No warning: `longrl train` refuses at once, and whoever tries a reward wants no new run.
        area.ok(
            "run",
            f"{folder.path} holds a finished run; a new one needs --fresh or another name",
        )
    else:
        _same_recipe(context, area)
        _checkpoints(folder, area)
        if context.cluster:
            _data_source(folder, area)
    return area.findings


def _same_recipe(context: Context, area: Area) -> None:
    """A run goes on only with the recipe it was started with, but for keys that may change."""
    if not context.folder.recipe.is_file():
        return
    # The run folder holds the recipe as it was submitted, or with its paths made absolute.
    changed: RunFolderError | None = None
    for recipe in (context.asked, _resolved(context)):
        try:
            check_run(context.runs, recipe, fresh=False)
        except RunFolderError as error:
            changed = error
        else:
            area.ok("recipe", f"the one {context.folder.path} was started with")
            return
    head, *keys, remedy = str(changed).splitlines()
    area.fail("recipe", head.rstrip(":"), remedy, keys)


def _resolved(context: Context) -> Recipe:
    """The recipe with the paths a run on this machine would store."""
    from slime_ext.embedded.builtin import resolve

    try:
        return resolve(context.asked, context.folder.path.absolute())
    except (ExplainedError, OSError, ImportError):
        return context.asked  # what is absent has a finding of its own


def _checkpoints(folder: RunFolder, area: Area) -> None:
    root = folder.checkpoints
    there = iterations(root)
    faults = {number: incomplete(root / _name(number)) for number in there}
    complete = [number for number in there if faults[number] is None]
    marked = marked_iteration(root)
    if not there and marked is None:
        area.ok("run", f"{folder.path} holds no checkpoint yet: the run starts at step 0")
    elif marked is None:
        area.fail(
            "marker",
            f"{root} holds {len(there)} checkpoints but no usable {MARKER}: slime alone would "
            "start over at step 0",
            _write_marker(root, complete),
        )
    elif marked not in complete:
        state = f"is incomplete ({faults[marked]})" if marked in faults else "is gone"
        area.fail(
            "marker",
            f"{root / MARKER} names {_name(marked)}, which {state}",
            _write_marker(root, complete),
        )
    else:
        area.ok("marker", f"goes on from {root / _name(marked)}")
        if complete[-1] > marked:
            area.warn(
                "newest",
                f"{_name(complete[-1])} is complete and newer than the {_name(marked)} that "
                f"{MARKER} names",
                _write_marker(root, complete),
            )


def _data_source(folder: RunFolder, area: Area) -> None:
    """Our data source ends the run where the state of the loaded iteration is missing."""
    marked = marked_iteration(folder.checkpoints)
    if marked is None or incomplete(folder.checkpoints / _name(marked)):
        return
    state = folder.checkpoints / "rollout" / f"longrl_data_source_{marked}.json"
    if state.is_file():
        area.ok("data position", str(state))
    else:
        area.fail(
            "data position",
            f"{state} is missing: the next prompt is unknown",
            "bring it back, let the marker name a checkpoint that has it, or add --fresh",
        )


def _write_marker(root: Path, complete: list[int]) -> str:
    if not complete:
        return "no checkpoint there is complete; add --fresh to start over"
    newest = complete[-1]
    return f"{_name(newest)} is the newest complete one; type: echo {newest} > {root / MARKER}"


def marked_iteration(root: Path) -> int | None:
    """The iteration the marker names; None where there is no marker or no number in it."""
    marker = root / MARKER
    text = marker.read_text(errors="replace").strip() if marker.is_file() else ""
    return int(text) if re.fullmatch(r"\d{1,12}", text) else None


def iterations(root: Path) -> list[int]:
    """Numbers of the checkpoints in `root`, complete or not, in order."""
    folders = [one for one in root.glob("iter_*") if one.name.removeprefix("iter_").isdigit()]
    return sorted(iteration_of(folder) for folder in folders)


def _name(iteration: int) -> str:
    return f"iter_{iteration:07d}"
