"""A run folder as one file for a bug report: no key, no prompt, no response, no weights.

One design choice: a list of what goes in, never of what stays out, so that a file nobody thought of
is not sent.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from launch.slurm.redact import redact_keys, redact_log

PLAIN = (
    "recipe.toml",
    "submitted.toml",
    "job.sh",
    "jobs.txt",
    "plan.json",
    "summary.json",
    "longrl.yaml",
    "events.jsonl",
    "stop",
    "stopped",
    "metrics/*.jsonl",
    "attempts/*/env.json",
    "attempts/*/command.json",
)
LOGS = ("logs/*", "attempts/*/logs/*")


@dataclass(frozen=True, slots=True)
class Bundled:
    """What went into the file."""

    path: Path
    files: int
    changed_lines: int
    """Lines of logs from which a key or a text was taken."""


def bundle(run: Path, out: Path, known: Sequence[str] = ()) -> Bundled:
    """Write `out` (tar.gz) from the run folder; `known` are values of keys to be taken out.

    Raises OSError where `out` cannot be written.
    """
    files = changed = 0
    partial = out.with_name(out.name + ".partial")
    with tarfile.open(partial, "w:gz") as archive:
        for path in _matching(run, PLAIN):
            _add(archive, run, path, redact_keys(path.read_text(errors="replace"), known))
            files += 1
        for path in _matching(run, LOGS):
            text, lines = redact_log(path.read_text(errors="replace"), known)
            _add(archive, run, path, text)
            files, changed = files + 1, changed + lines
    partial.replace(out)
    return Bundled(out, files, changed)


def _matching(run: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        for path in sorted(run.glob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield path


def _add(archive: tarfile.TarFile, run: Path, path: Path, text: str) -> None:
    entry = tarfile.TarInfo(f"{run.name}/{path.relative_to(run)}")
    body = text.encode()
    entry.size, entry.mtime = len(body), int(path.stat().st_mtime)
    archive.addfile(entry, io.BytesIO(body))
