"""Paths of the recipe: what it names exists here, and no path breaks a command line.

One design choice: everything is looked at before anything is loaded, so that one report names all
that is absent.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.recipe.schema import Recipe

_RISKY = re.compile(r"[\s$`\"'\\;&|<>*?]")
"""Ours are quoted; a module file, a container's mount or a converter of the host may not be."""


def check_paths(recipe: Recipe, context: Context) -> list[Finding]:
    """Model, data, host and run folder."""
    area = Area("paths")
    _model(recipe, context, area)
    _data(recipe, context, area)
    if context.cluster:
        _host(recipe, context, area)
        _characters(recipe, context, area)
    _run_folder(context, area)
    return area.findings


def _model(recipe: Recipe, context: Context, area: Area) -> None:
    path = Path(recipe.model.path)
    if not path.is_dir():
        facts = recipe.model.facts
        context.absent(
            area,
            "model",
            f"model.path = {recipe.model.path!r} is not here",
            f"type: longrl prepare RECIPE (brings {recipe.model.hub})"
            if recipe.model.hub
            else "name the folder of a Hugging Face model",
            f"its shape is taken from the facts {facts!r}; tokenizer and template were not looked "
            "at"
            if facts
            else "shape, tokenizer and template were not looked at",
        )
    elif not (path / "config.json").is_file():
        area.fail(
            "model",
            f"{path} holds no config.json",
            "name the folder that holds it (in a Hugging Face cache: snapshots/HASH)",
        )
    else:
        area.ok("model", str(path))
    start = recipe.model.megatron_checkpoint
    if start is not None:
        _start(Path(start), context, area)


def _start(path: Path, context: Context, area: Area) -> None:
    marker = path / "latest_checkpointed_iteration.txt"
    if not path.is_dir():
        context.absent(
            area,
            "megatron checkpoint",
            f"model.megatron_checkpoint = {str(path)!r} is not here",
            "type: longrl prepare RECIPE",
            "the weights to start from were not looked at",
        )
    elif not marker.is_file():
        area.fail(
            "megatron checkpoint",
            f"{path} holds no {marker.name}: slime would start from other weights in silence",
            "name the folder the converter wrote, above iter_NNNNNNN or release",
        )
    else:
        area.ok("megatron checkpoint", str(path))


def _data(recipe: Recipe, context: Context, area: Area) -> None:
    missing = context.missing_data
    if missing:
        context.absent(
            area,
            "data",
            f"not here: {', '.join(missing)}",
            "type: longrl prepare RECIPE"
            if any("hub:" in one for one in missing)
            else "name JSON Lines files that this machine can read",
            "rows, prompt lengths and gold chunks were not looked at",
        )
    else:
        area.ok("data", recipe.data.train)


def _host(recipe: Recipe, context: Context, area: Area) -> None:
    if context.host_elsewhere:
        area.skip("slime", f"{context.host_elsewhere}: the host was not looked at")
        return
    slime, megatron = Path(recipe.slime.path), Path(recipe.slime.megatron_path)
    for name, root, file, image in (
        ("slime.path", slime, slime / "train.py", "/root/slime"),
        ("slime.megatron_path", megatron, megatron / "megatron/training", "/root/Megatron-LM"),
    ):
        if file.exists():
            area.ok(name, str(root))
        else:
            area.fail(
                name,
                f"{root} holds no {file.relative_to(root)}",
                f"set {name} to the checkout; in slime's image that is {image}",
            )


def _characters(recipe: Recipe, context: Context, area: Area) -> None:
    paths = {
        "model.path": recipe.model.path,
        "model.megatron_checkpoint": recipe.model.megatron_checkpoint or "",
        "data.train": recipe.data.train,
        "data.eval": recipe.data.eval or "",
        "slime.path": recipe.slime.path,
        "slime.megatron_path": recipe.slime.megatron_path,
        "the run folder": str(context.folder.path.absolute()),
    }
    risky = [f"{key} = {path!r}" for key, path in paths.items() if _RISKY.search(path)]
    if risky:
        area.warn(
            "characters",
            f"white space or a character of the shell in {', '.join(risky)}",
            "scripts of the host and of the site may take it apart: rename, or link to, a folder "
            "whose path has letters, digits, '/', '.', '_' and '-' only",
        )
    on_path = [key for key in ("slime.path", "slime.megatron_path") if ":" in paths[key]]
    if on_path:
        area.fail(
            "characters",
            f"':' in {', '.join(on_path)} splits it on PYTHONPATH",
            "rename or link to the folder",
        )
    if not risky and not on_path:
        area.ok("characters", "every path survives a shell")


def _run_folder(context: Context, area: Area) -> None:
    here = existing(context.folder.path)
    try:
        # The only honest test: ACLs and read-only mounts do not show in mode bits.
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError as error:
        area.fail(
            "run folder",
            f"{here} cannot be written to: {error.strerror}",
            "choose another folder with --runs",
        )
    else:
        area.ok("run folder", str(context.folder.path))


def existing(path: Path) -> Path:
    """`path`, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.is_dir():
        path = path.parent
    return path
