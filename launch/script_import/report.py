"""What became of a script's flags, for a person to read.

One design choice: first what a person must do, then what the script believed and slime never did,
last the plain renamings.
"""

from __future__ import annotations

from collections.abc import Iterator

from launch.script_import.convert import Imported
from launch.script_import.read import Script


def report(script: Script, found: Imported) -> Iterator[str]:
    """The lines of the report."""
    yield from _part("fill in, only the script's machine knows", found.fill_in)
    yield from _part("never had effect", found.no_effect)
    yield from _part("unknown to slime", found.fork)
    yield from _part("not carried over", found.dropped)
    yield from _part("passed on under [extra]", found.extra)
    yield from _part("became a recipe key", found.keys)
    yield from _part("said again by LongRL", found.same)
    yield from _words("commented out in the script", script.commented)
    yield from _words("after a comment that ended the command, so never given", script.lost)
    yield from _words("in arrays that the script does not set", script.missing)
    yield from _words("files the script reads and that were not read", script.sourced)


def _part(title: str, lines: list[tuple[str, str]]) -> Iterator[str]:
    if lines:
        yield f"{title}: {len(lines)}"
        width = min(60, max(len(said) for said, _ in lines))
        yield from (f"  {said:<{width}}  {what}" for said, what in lines)


def _words(title: str, words: list[str]) -> Iterator[str]:
    if words:
        yield f"{title}: {len(words)}"
        yield from (f"  {word}" for word in words)
