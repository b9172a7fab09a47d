"""Converted data sets on disk: one JSONL file and one manifest for each name and format.

One design choice: the file's name holds the hash of its content and the manifest names the file, so
a set converted anew never changes a file under a run that reads it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_ext.cache import cache_folder
from slime_ext.data.errors import DataError
from slime_ext.data.hub.names import HubName

SUFFIX = ".longrl.jsonl"
"""A file whose name ends so is in the project's own format, whatever data.format says: converted
sets and files in the published format may stand in one recipe."""
SCHEMA = 1
"""Rises when converted rows change; older conversions then count as not prepared."""


@dataclass(frozen=True)
class Manifest:
    """How a converted file came about.

    `source` is the repository with its commit, or the local folder; `sources` maps each file read
    from a local folder to its SHA-256. `dropped` counts rows left out by the key that was wrong,
    and `examples` quotes the first of them.
    """

    name: str
    format: str
    source: str
    commit: str | None
    file: str
    sha256: str
    size: int
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def lines(self) -> list[str]:
        """What a person wants to know of it."""
        text = [f"{self.name}: {self.rows} rows from {self.source}, SHA-256 {self.sha256[:16]}"]
        text += [f"  left out {count} rows: {key}" for key, count in self.dropped.items()]
        return text + [f"    {example}" for example in self.examples]


def data_folder() -> Path:
    """Folder of converted sets inside the cache."""
    return cache_folder() / "data"


def manifest_path(name: HubName, format: str) -> Path:
    """Where the manifest of a set read as `format` lies."""
    return data_folder() / f"{name.key(format)}.json"


def read_manifest(name: HubName, format: str) -> Manifest | None:
    """The manifest where the set is prepared and its file is whole, else None."""
    path = manifest_path(name, format)
    try:
        values: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    known = {one.name for one in dataclasses.fields(Manifest)}
    if values.get("schema") != SCHEMA or set(values) != known:
        return None
    manifest = Manifest(**values)
    file = path.with_name(manifest.file)
    return manifest if file.is_file() and file.stat().st_size == manifest.size else None


def write_manifest(name: HubName, manifest: Manifest) -> Path:
    """Store a manifest under a temporary name, then rename; returns its path."""
    path = manifest_path(name, manifest.format)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(dataclasses.asdict(manifest), indent=2, ensure_ascii=False))
    partial.replace(path)
    return path


def prepared_file(name: HubName, format: str) -> Path:
    """The converted JSONL file of a set; raises DataError where it is not prepared."""
    manifest = read_manifest(name, format)
    if manifest is None:
        raise DataError(
            f"{name} is not prepared here (looked in {data_folder()})",
            key="data",
            remedy="type `longrl prepare RECIPE` on a machine with network, or set LONGRL_CACHE "
            "to the folder that holds it",
        )
    return data_folder() / manifest.file


def file_format(path: Path, format: str) -> str:
    """Name of the importer that reads `path` where data.format is `format`."""
    return "longrl" if path.name.endswith(SUFFIX) else format
