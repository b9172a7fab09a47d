"""The command line that a script gives to slime's train.py, and what it does not.

One design choice: what stands under a condition or in a loop is unknown, because whether it holds
is the machine's business; it is reported, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from launch.script_import.expand import UNKNOWN, Variables
from launch.script_import.tokens import Statement, Word, statements
from slime_ext.errors import ExplainedError

_ASSIGNMENT = re.compile(r"(\w+)(\+?)=")
_PROGRAM = re.compile(r"(^|/)train(_async)?\.py$")
_OPENS = {"if", "for", "while", "until", "case"}
_CLOSES = {"fi", "done", "esac"}


class ScriptError(ExplainedError, ValueError):
    """A script from which no command line can be read."""


@dataclass(slots=True)
class Script:
    """What was read from a script."""

    argv: list[str] = field(default_factory=list)
    """Words after train.py."""
    unknown: list[str] = field(default_factory=list)
    """Variables whose value only a run knows, sorted."""
    commented: list[str] = field(default_factory=list)
    """Flags that are commented out."""
    lost: list[str] = field(default_factory=list)
    """Flags after a comment that ended the command: bash takes them for another command."""
    missing: list[str] = field(default_factory=list)
    """Arrays of flags that stand in none of the lines read."""
    sourced: list[str] = field(default_factory=list)
    """Files that the script reads and that were not read here."""


def read_script(text: str, defined: Mapping[str, str] | None = None) -> Script:
    """Read a script; `defined` gives variables that the machine would set.

    Raises ScriptError where it never calls train.py.
    """
    variables, script, depth, found = Variables(defined or {}), Script(), 0, False
    for statement in statements(text):
        script.commented += [note for note in statement.comments if note.startswith("--")]
        if not statement.words:
            continue
        head = _plain(statement.words[0])
        if head in _OPENS:
            depth += 1
        elif head in _CLOSES:
            depth -= 1
        if _assigned(statement, variables, certain=depth == 0):
            continue
        words = [field for word in statement.words for field in variables.expand(word)]
        program = next((n for n, word in enumerate(words) if _PROGRAM.search(word)), None)
        if program is not None:
            script.argv, found = words[program + 1 :], True
            script.missing = list(variables.missing)
        elif words[:1] in (["source"], ["."]):
            script.sourced += words[1:2]
        elif found and head.startswith("--"):
            script.lost += words
    if not found:
        raise ScriptError("no statement of this script calls train.py; name the script that does")
    named = (match for word in script.argv for match in UNKNOWN.finditer(word))
    script.unknown = sorted({match.group(1) for match in named if match.group(1)})
    return script


def _assigned(statement: Statement, variables: Variables, certain: bool) -> bool:
    """Whether the statement only sets variables; remembers what it sets."""
    words = statement.words
    if statement.array:
        match = _ASSIGNMENT.fullmatch(_plain(words[-1] if len(words) == 1 else words[0]))
        name, more = (match.group(1), match.group(2)) if match else ("", "")
        fields = [field for word in words[1:] for field in variables.expand(word)]
        variables.arrays[name] = (variables.arrays.get(name, []) if more else []) + fields
        if not certain:
            variables.arrays.pop(name)
        return True
    if _plain(words[0]) in ("export", "declare", "local", "readonly", "then", "else", "do"):
        words = words[1:]
    heads = [_ASSIGNMENT.match(_plain(word)) for word in words]
    if not words or not all(heads):
        return False
    for word, head in zip(words, heads, strict=True):
        assert head is not None
        fields = variables.expand(word)
        value = "".join(fields)[head.end() :] if fields else ""
        variables.assign(head.group(1), value, certain)
    return True


def _plain(word: Word) -> str:
    """The unquoted text at the start of a word."""
    return word[0].text if word and word[0].quoting == "none" else ""
