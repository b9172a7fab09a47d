"""The console that tables are printed to.

One design choice: where output goes to a file or a pipe, lines are not wrapped, so that a path or a
flag can be searched for and copied.
"""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console

UNWRAPPED = 10_000
"""Columns assumed where there is no terminal."""


def unwrapped_console(file: TextIO | None = None) -> Console:
    """A console as wide as the terminal, or as its longest line where there is none."""
    console = Console(file=file or sys.stdout)
    return console if console.is_terminal else Console(file=file or sys.stdout, width=UNWRAPPED)


def say(console: Console, text: str) -> None:
    """Print a sentence: between words where a person reads, in one line where a program does."""
    console.print(text, soft_wrap=not console.is_terminal, markup=False, highlight=False)
