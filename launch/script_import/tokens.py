"""A shell script as statements of words, each word as pieces that know how they were quoted.

One design choice: only the part of bash that training scripts are written in is read (words,
quotes, arrays, comments, line continuations, here-documents as text to skip); nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Quoting = Literal["none", "double", "single"]

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_ENDS_WORD = " \t\n;&|()"


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one word between two changes of quoting; unquoted and double-quoted text may hold
    expansions."""

    quoting: Quoting
    text: str


Word = tuple[Piece, ...]


@dataclass(slots=True)
class Statement:
    """Words up to the end of a command; `array` where it is `NAME=( ... )`, whose name is the first
    word. `comments` are those that stand inside or after it."""

    line: int
    words: list[Word] = field(default_factory=list)
    array: bool = False
    comments: list[str] = field(default_factory=list)


def statements(script: str) -> Iterator[Statement]:
    """The statements of a script, in order; unbalanced quotes end at the end of the text."""
    text = _without_heredocs(script)
    place, current = 0, Statement(1)
    while place < len(text):
        char = text[place]
        if char in " \t":
            place += 1
        elif text.startswith("\\\n", place):
            place += 2
        elif char == "#":
            end = _line_end(text, place)
            current.comments.append(text[place + 1 : end].strip())
            place = end
        elif char == ")" and current.array:
            place += 1
            yield current
            current = Statement(_line(text, place))
        elif char == "\n" and current.array:
            place += 1
        elif char in "\n;&|()":
            place += 1
            if current.words or current.comments:
                yield current
            current = Statement(_line(text, place))
        else:
            word, place = _word(text, place)
            current.words.append(word)
            if text.startswith("(", place) and _opens_array(current):
                current.array = True
                place += 1
    if current.words or current.comments:
        yield current


def _opens_array(statement: Statement) -> bool:
    last = statement.words[-1]
    return len(last) == 1 and re.fullmatch(r"\w+\+?=", last[0].text) is not None


def _word(text: str, place: int) -> tuple[Word, int]:
    pieces: list[Piece] = []
    plain = ""

    def flush() -> None:
        nonlocal plain
        if plain:
            pieces.append(Piece("none", plain))
        plain = ""

    while place < len(text) and text[place] not in _ENDS_WORD:
        char = text[place]
        if text.startswith("\\\n", place):
            place += 2
        elif char == "\\":
            flush()
            pieces.append(Piece("single", text[place + 1 : place + 2]))
            place += 2
        elif char == "'":
            flush()
            end = _find(text, "'", place + 1)
            pieces.append(Piece("single", text[place + 1 : end]))
            place = end + 1
        elif char == '"':
            flush()
            end = _closing_quote(text, place + 1)
            pieces.append(Piece("double", text[place + 1 : end]))
            place = end + 1
        elif text.startswith(("$(", "${"), place):
            end = closing(text, place + 1)
            plain += text[place:end]
            place = end
        else:
            plain += char
            place += 1
    flush()
    return tuple(pieces), place


def closing(text: str, opening: int) -> int:
    """Index just after the bracket that closes the one at `opening`, quotes inside skipped."""
    pairs = {"(": ")", "{": "}"}
    opened, closed = text[opening], pairs[text[opening]]
    depth, place = 0, opening
    while place < len(text):
        char = text[place]
        if char == "\\":
            place += 1
        elif char in "'\"":
            place = _find(text, char, place + 1)
        elif char == opened:
            depth += 1
        elif char == closed:
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return len(text)


def _closing_quote(text: str, place: int) -> int:
    while place < len(text) and text[place] != '"':
        if text.startswith(("$(", "${"), place):
            place = closing(text, place + 1)
        else:
            place += 2 if text[place] == "\\" else 1
    return place


def _find(text: str, what: str, start: int) -> int:
    found = text.find(what, start)
    return len(text) if found < 0 else found


def _line_end(text: str, place: int) -> int:
    return _find(text, "\n", place)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _without_heredocs(script: str) -> str:
    """The script with the bodies of here-documents as empty lines, so that lines keep numbers."""
    lines, ending = [], None
    for line in script.splitlines():
        if ending is not None:
            ending = None if line.strip() == ending else ending
            lines.append("")
            continue
        start = None if line.lstrip().startswith("#") or "<<<" in line else _HEREDOC.search(line)
        ending = start.group(2) if start else None
        lines.append(line)
    return "\n".join(lines)
