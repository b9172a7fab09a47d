"""Raw rows of a published data set, through the `datasets` library.

One design choice: a local copy (LONGRL_HUB_FOLDER/OWNER/NAME, the repository's files as they are)
goes before the network, so that a site without network needs no other command and no other recipe.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_ext.data.errors import DataError
from slime_ext.data.hub.names import HubName

FOLDER_VARIABLE = "LONGRL_HUB_FOLDER"
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Loaded:
    """The rows and where they came from; `sources` as in `stored.Manifest`."""

    rows: Any
    source: str
    commit: str | None
    sources: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield without_null(row)


def load_rows(name: HubName) -> Loaded:
    """The rows of a set, from the local copy where there is one, else from the hub or its cache.

    Raises DataError for what is wrong with the set, and what `huggingface_hub` raises where the
    network or the repository is at fault.
    """
    folder = local_copy(name)
    if folder is not None:
        return Loaded(_load(str(folder), name, None), str(folder), None, _hashes(folder))
    commit = _newest_commit(name)
    rows = _load(name.repository, name, commit or name.revision)
    return Loaded(rows, f"{name.repository}@{commit or name.revision or 'cached'}", commit)


def local_copy(name: HubName) -> Path | None:
    """Folder of the local copy; None where LONGRL_HUB_FOLDER is unset or holds no such set."""
    root = os.environ.get(FOLDER_VARIABLE)
    folder = Path(root) / name.owner / name.name if root else None
    return folder if folder is not None and folder.is_dir() else None


def without_null(value: Any) -> Any:
    """The same value without keys whose value is null: a column has a value in every row, so a key
    that a row lacks comes back as null."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


def _newest_commit(name: HubName) -> str | None:
    """The commit the revision stands for now; None offline, where the cache decides."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return None
    return HfApi().dataset_info(name.repository, revision=name.revision).sha


def _load(path: str, name: HubName, revision: str | None) -> Any:
    try:
        import datasets
    except ModuleNotFoundError:
        raise DataError(
            "reading a published data set needs the package datasets",
            key=str(name),
            remedy="pip install 'longrl[data]'",
        ) from None
    try:
        return datasets.load_dataset(path, split=name.split, revision=revision)
    except datasets.exceptions.DatasetNotFoundError:
        raise
    except (
        ValueError,
        datasets.exceptions.DatasetGenerationError,
        datasets.exceptions.DataFilesNotFoundError,
    ) as error:
        cause = error.__cause__ or error
        raise DataError(
            f"datasets cannot load it: {cause}",
            key=str(name),
            remedy="check the split, and that the files are whole; or convert them to JSON Lines "
            "yourself and set data.train to the file",
        ) from error


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every data file of a local copy, by path inside it."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not _hidden(p, folder))
    return {str(file.relative_to(folder)): file_sha256(file) for file in files}


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
