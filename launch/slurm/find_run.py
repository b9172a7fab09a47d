"""The run folder that a word on the command line means.

One design choice: a word is a path where such a folder exists, else a name below `--runs`; a name
that is neither is answered with the nearest run there is.
"""

from __future__ import annotations

from pathlib import Path

from slime_ext.errors import ExplainedError, nearest

MARKS = ("recipe.toml", "submitted.toml", "job.sh")
"""A folder with any of these is a run."""


class NoRunError(ExplainedError):
    """There is no such run."""


def find_run(word: str, runs: Path) -> Path:
    """The absolute folder of the run `word`. Raises NoRunError, naming the nearest run."""
    for folder in (Path(word), runs / word):
        if is_run(folder):
            return folder.resolve()
    known = [folder.name for folder in all_runs(runs)]
    remedy = nearest(word, known) if known else "there is none; choose another with --runs"
    raise NoRunError(f"no run {word!r} in {runs}; {remedy}")


def all_runs(runs: Path) -> list[Path]:
    """Every run folder below `runs`, by name."""
    return sorted(folder.resolve() for folder in runs.glob("*") if is_run(folder))


def is_run(folder: Path) -> bool:
    """Whether the folder is one of a run."""
    return folder.is_dir() and any((folder / mark).is_file() for mark in MARKS)
