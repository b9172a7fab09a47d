"""The published data sets a recipe names, fetched and converted once.

One design choice: every name is looked at, training and held-out, before the first is fetched, so
that a misspelt last one does not wait for a long download.
"""

from __future__ import annotations

from pathlib import Path

from launch.prepare.space import require_space
from launch.prepare.trouble import explained
from slime_ext.data.hub.convert import prepare_set
from slime_ext.data.hub.load import FOLDER_VARIABLE, local_copy
from slime_ext.data.hub.names import HubName, is_hub, parse_hub
from slime_ext.data.hub.stored import data_folder, read_manifest
from slime_ext.recipe.schema import DataSection

COPIES = 3
"""A set lies on the disk three times: as published, as the tables of `datasets`, and converted."""


def prepare_data(data: DataSection, refresh: bool = False) -> list[str]:
    """Fetch and convert each `hub:` name of the section; returns what was done, line by line.

    Raises DataError for a set that cannot be used, ExplainedError where it cannot be had.
    """
    lines = []
    names = {file: parse_hub(file) for file in _files(data) if is_hub(file)}
    for file in _files(data):
        if file not in names and not file.startswith("builtin:") and not Path(file).is_file():
            lines.append(f"data: {file} is not there, and is no published set: make or copy it")
    for name in names.values():
        if refresh or read_manifest(name, data.format) is None:
            with explained(f"data set {name.repository}", _by_hand(name)):
                _check_space(name)
                manifest = prepare_set(name, data.format, refresh)
            lines += [f"data: {line}" for line in manifest.lines()]
        else:
            lines.append(f"data: {name} is prepared")
    return lines


def _files(data: DataSection) -> list[str]:
    """Every file the section names, each once."""
    held_out = [data.eval] if data.eval is not None else []
    return list(dict.fromkeys([data.train, *held_out, *data.eval_sets.values()]))


def _by_hand(name: HubName) -> str:
    return (
        f"copy the repository's files to FOLDER/{name.repository} and set {FOLDER_VARIABLE}=FOLDER"
    )


def _check_space(name: HubName) -> None:
    from huggingface_hub import HfApi, constants

    folder = local_copy(name)
    if folder is not None:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    elif constants.HF_HUB_OFFLINE:
        return
    else:
        info = HfApi().dataset_info(name.repository, revision=name.revision, files_metadata=True)
        size = sum(one.size or 0 for one in info.siblings or [])
    require_space(data_folder(), COPIES * size, f"data set {name.repository}", "LONGRL_CACHE")
