"""The model folder of a recipe: what is missing of `model.hub` is fetched to `model.path`.

One design choice: a folder counts as whole by its own files (config, tokenizer, every file the
weight index names), so that a model copied by hand needs no network and no record of ours.
"""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from launch.prepare.space import gigabytes, require_space
from launch.prepare.trouble import explained
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import ModelSection

FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "*.model",
    "*.tiktoken",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "preprocessor_config.json",
    "model*.safetensors",
    "model.safetensors.index.json",
    "LICENSE*",
)
"""All that trainer and engines read; not the same weights in other formats."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


def prepare_model(model: ModelSection) -> list[str]:
    """Bring the model to `model.path`; returns what was done, line by line.

    Raises ExplainedError where it cannot: no such repository, no access, no network, no room.
    """
    if model.path.startswith("builtin:"):
        return [f"model: {model.path} is made when it is first used"]
    folder = Path(model.path)
    missing = missing_files(folder)
    if not missing:
        return [f"model: {folder} is complete"]
    if model.hub is None:
        raise ExplainedError(
            f"model.path = {model.path!r} lacks {', '.join(missing)} and model.hub names no "
            'repository; add model.hub = "OWNER/NAME", or copy the model there'
        )
    by_hand = f"copy the repository's files to {folder}"
    with explained(f"model {model.hub}", by_hand):
        size = _fetch(model.hub, folder)
    missing = missing_files(folder)
    if missing:
        raise ExplainedError(
            f"model {model.hub}: {folder} still lacks {', '.join(missing)} after the download; the "
            "repository holds no complete model in safetensors, name another in model.hub"
        )
    return [f"model: {gigabytes(size)} of {model.hub} fetched to {folder}"]


def missing_files(folder: Path) -> list[str]:
    """What a model folder lacks, by file name; empty where it can be loaded."""
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    if not any((folder / name).is_file() for name in TOKENIZERS):
        missing.append("tokenizer.json")
    index = folder / "model.safetensors.index.json"
    wanted = ["model.safetensors"]
    if index.is_file():
        table: dict[str, Any] = json.loads(index.read_text())
        wanted = sorted(set(table["weight_map"].values()))
    return missing + [name for name in wanted if not (folder / name).is_file()]


def _fetch(repository: str, folder: Path) -> int:
    """Download what is missing; an interrupted download goes on. Returns bytes fetched."""
    from huggingface_hub import HfApi, snapshot_download

    info = HfApi().model_info(repository, files_metadata=True)
    size = sum(
        one.size or 0
        for one in info.siblings or []
        if any(fnmatch(one.rfilename, pattern) for pattern in FILES)
        and not (folder / one.rfilename).is_file()
    )
    require_space(folder, size, f"model {repository}", "model.path")
    snapshot_download(repository, revision=info.sha, local_dir=folder, allow_patterns=list(FILES))
    return size
