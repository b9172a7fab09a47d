"""From the rows of a published data set to a JSONL file in the project's own schema.

One design choice: a row that the schema refuses is left out and counted under the key that was
wrong, because a published set cannot be repaired at its source; a set without a usable row is an
error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from typing import IO

import orjson
from tqdm import tqdm

from slime_ext.data.errors import DataError
from slime_ext.data.hub.load import Loaded, load_rows
from slime_ext.data.hub.names import HubName
from slime_ext.data.hub.stored import (
    SUFFIX,
    Manifest,
    data_folder,
    read_manifest,
    write_manifest,
)
from slime_ext.data.importers import Importer, importer_for
from slime_ext.data.schema import Row

EXAMPLES = 10
"""Rows left out that the manifest quotes; the counts cover all."""


def prepare_set(name: HubName, format: str, refresh: bool = False) -> Manifest:
    """Fetch and convert a set unless that is done already; returns its manifest.

    `format` names the importer of the published rows. Rows without ids of their own are called
    FORMAT:SPLIT:NUMBER, counted from 1 within the split. Raises DataError, and what `load_rows`
    raises.
    """
    importer = importer_for(format)
    if not refresh and (known := read_manifest(name, format)) is not None:
        return known
    loaded = load_rows(name)
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name.key(format)}.{os.getpid()}.partial"
    try:
        with partial.open("wb") as file:
            digest, dropped, examples = _write(file, loaded, importer, name)
        rows = len(loaded) - dropped.total()
        if not rows:
            problem = f"none of its {len(loaded)} rows can be read as {format}"
            first = f": {examples[0]}" if examples else ""
            raise DataError(problem + first, key=str(name), remedy="check data.format")
        target = folder / f"{name.owner}--{name.name}-{digest[:16]}{SUFFIX}"
        size = partial.stat().st_size
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    manifest = Manifest(
        name=str(name),
        format=format,
        source=loaded.source,
        commit=loaded.commit,
        file=target.name,
        sha256=digest,
        size=size,
        rows=rows,
        dropped=dict(dropped),
        examples=examples,
        sources=loaded.sources,
    )
    write_manifest(name, manifest)
    return manifest


def _write(
    file: IO[bytes], loaded: Loaded, importer: Importer, name: HubName
) -> tuple[str, Counter[str], list[str]]:
    """Write usable rows; returns the SHA-256 of what was written, and the others by reason."""
    digest = hashlib.sha256()
    dropped: Counter[str] = Counter()
    examples: list[str] = []
    bar = tqdm(loaded, total=len(loaded), desc=f"convert {name}", unit="row", disable=None)
    for number, raw in enumerate(bar, 1):
        try:
            row = importer.row(raw, number)
        except DataError as error:
            dropped[_general(error)] += 1
            if len(examples) < EXAMPLES:
                examples.append(f"row {number}: {error}")
            continue
        identity = row.id if importer.id_keys else f"{importer.name}:{name.split}:{number}"
        line = _line(row, identity)
        digest.update(line)
        file.write(line)
    return digest.hexdigest(), dropped, examples


def _line(row: Row, identity: str) -> bytes:
    """One line of JSON, `id` first (such lines are indexed without being parsed), defaults left
    out."""
    values = row.model_dump(mode="json", exclude_defaults=True) | {"id": identity}
    ordered = {"id": identity, **values}
    return orjson.dumps(ordered, option=orjson.OPT_APPEND_NEWLINE)


def _general(error: DataError) -> str:
    """The key that was wrong without positions, so that equal faults are counted together."""
    return re.sub(r"\[\d+\]", "[]", error.key or error.problem)
