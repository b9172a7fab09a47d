"""Models and data named `builtin:NAME` in a recipe: shipped with the package or made on the spot.

One design choice: a name is resolved to a path before anything is compared or stored, so that the
recipe in the run folder names real files and hooks never meet a `builtin:`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slime_ext.cache import cache_folder
from slime_ext.data.hub.names import is_hub, parse_hub
from slime_ext.data.hub.stored import prepared_file
from slime_ext.embedded.lab.rows import write_rows
from slime_ext.embedded.lab.start import builtin_model
from slime_ext.embedded.real.questions import questions_file
from slime_ext.embedded.real.short import write_short_rows
from slime_ext.embedded.real.smollm2 import prepare_smollm2
from slime_ext.errors import nearest
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe

PREFIX = "builtin:"
EVAL_SEED = 7
TRAIN_SEED_OFFSET = 1000
"""Training data of run seed s are made from seed 1000 + s; evaluation rows are the same for all."""


def _lab_rows(path: Path, train: bool, recipe: Recipe) -> None:
    options = _options("lab", recipe, {"rows": 960, "eval_rows": 96, "hops": 4})
    rows = int(options["rows" if train else "eval_rows"])
    seed = recipe.seed + TRAIN_SEED_OFFSET if train else EVAL_SEED
    write_rows(path, rows=rows, hops=int(options["hops"]), seed=seed)


def _questions(path: Path, train: bool, recipe: Recipe) -> None:
    _options("questions", recipe, {})
    shutil.copyfile(questions_file(), path)


def _short(path: Path, train: bool, recipe: Recipe) -> None:
    options = _options("short", recipe, {"path": "", "format": "musique", "documents": 6})
    if not options["path"]:
        raise RecipeError("data.options.path: builtin:short needs the file to take rows from")
    source, form = Path(options["path"]), str(options["format"])
    write_short_rows(source, form, path, int(options["documents"]), recipe.seed)


def _options(name: str, recipe: Recipe, defaults: dict[str, Any]) -> dict[str, Any]:
    """The recipe's `data.options` over the maker's defaults; RecipeError for an unknown one."""
    for key in recipe.data.options:
        if key not in defaults:
            known = ", ".join(defaults) or "no option"
            raise RecipeError(f"data.options.{key}: builtin:{name} knows {known}")
    return defaults | recipe.data.options


DATA: dict[str, Callable[[Path, bool, Recipe], None]] = {
    "lab": _lab_rows,
    "questions": _questions,
    "short": _short,
}
MODELS: dict[str, Callable[[], Path]] = {
    "lab-hs": lambda: builtin_model("lab-hs"),
    "smollm2": lambda: prepare_smollm2(cache_folder() / "smollm2-135m-instruct"),
}


def resolve(recipe: Recipe, run: Path) -> Recipe:
    """The recipe with every `builtin:`, `hub:` and relative path replaced by an absolute path.

    Models are prepared when first used (minutes for a language model); data files are only named,
    `write_data` makes them. Raises RecipeError for an unknown name, DataError for a published set
    that is not prepared.
    """
    model, data = recipe.model, recipe.data
    if model.path.startswith(PREFIX):
        model = model.model_copy(update={"path": str(_known(model.path, MODELS, "model.path")())})
    else:
        if not (Path(model.path) / "config.json").is_file():
            raise RecipeError(
                f"model.path = {model.path!r} is no Hugging Face model folder (no config.json); "
                + ("type `longrl prepare RECIPE`, " if model.hub else "")
                + f"name one, or one of {', '.join(PREFIX + name for name in MODELS)}"
            )
        model = model.model_copy(update={"path": str(Path(model.path).resolve())})
    if model.megatron_checkpoint is not None:
        start = str(Path(model.megatron_checkpoint).resolve())
        model = model.model_copy(update={"megatron_checkpoint": start})
    files = run / "data"
    update: dict[str, Any] = {
        "train": _data_path(data.train, files / "train.jsonl", "data.train", data.format)
    }
    if data.eval is not None:
        update["eval"] = _data_path(data.eval, files / "eval.jsonl", "data.eval", data.format)
    update["eval_sets"] = {
        name: _data_path(file, files / f"{name}.jsonl", f"data.eval_sets.{name}", data.format)
        for name, file in data.eval_sets.items()
    }
    sections = {"model": model, "data": data.model_copy(update=update), "outcome": recipe.outcome}
    if recipe.outcome.judge.cache is not None:
        cache = recipe.outcome.judge.cache.resolve()
        judge = recipe.outcome.judge.model_copy(update={"cache": cache})
        sections["outcome"] = recipe.outcome.model_copy(update={"judge": judge})
    return recipe.model_copy(update=sections)


def write_data(asked: Recipe, resolved: Recipe) -> None:
    """Make the builtin data files of `asked` where `resolved` says they are, unless they exist."""
    pairs = [(asked.data.train, resolved.data.train, True)]
    if asked.data.eval is not None and resolved.data.eval is not None:
        pairs.append((asked.data.eval, resolved.data.eval, False))
    pairs += [
        (file, resolved.data.eval_sets[name], False) for name, file in asked.data.eval_sets.items()
    ]
    for name, target, train in pairs:
        if name.startswith(PREFIX) and not Path(target).is_file():
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            DATA[name.removeprefix(PREFIX)](Path(target), train, asked)


def _data_path(name: str, made: Path, key: str, format: str) -> str:
    if name.startswith(PREFIX):
        _known(name, DATA, key)
        return str(made.resolve())
    if is_hub(name):
        return str(prepared_file(parse_hub(name), format).resolve())
    return str(Path(name).resolve())


def _known(name: str, table: dict[str, Any], key: str) -> Any:
    short = name.removeprefix(PREFIX)
    if short not in table:
        raise RecipeError(f"{key} = {name!r}: no such builtin; {nearest(short, table)}")
    return table[short]
