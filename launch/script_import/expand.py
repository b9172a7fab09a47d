"""Words of a script with its own variables put in; what only a run would know stays as written.

One design choice: an unknown variable stays `${NAME}` in the text instead of becoming empty, as
bash would have it, so that a person sees what to fill in.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from launch.script_import.tokens import Word, closing

_NAME = re.compile(r"\w+")
_PARAMETER = re.compile(r"(\w+)(?:\[([@*])\])?(?::?([-=])(.*))?", re.DOTALL)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
UNKNOWN = re.compile(r"\$\{(\w+)\}|\$\(")
"""What an expansion leaves where it does not know."""


class Variables:
    """Variables and arrays of a script so far."""

    def __init__(self, defined: Mapping[str, str]) -> None:
        self.fixed = dict(defined)
        """Given by the person; the script does not change them."""
        self.values = dict(defined)
        self.arrays: dict[str, list[str]] = {}
        self.missing: list[str] = []
        """Arrays that were asked for and are nowhere set."""

    def assign(self, name: str, value: str, certain: bool) -> None:
        """Remember a value, unless only a run knows it or whether it is set at all."""
        if name in self.fixed:
            return
        self.values.pop(name, None)
        if certain and "$(" not in value and "`" not in value:
            self.values[name] = value

    def expand(self, word: Word) -> list[str]:
        """The fields one word becomes: none, one, or several where an array stands in it."""
        fields: list[str] = []
        current = ""
        started = False
        for piece in word:
            if piece.quoting == "single":
                current, started = current + piece.text, True
                continue
            quoted = piece.quoting == "double"
            parts = self._parts(piece.text, quoted)
            if not quoted:
                parts = [one for part in parts for one in part.split()] if parts else []
            elif not parts:
                parts = [""] if "[@]" not in piece.text else []
            for number, part in enumerate(parts):
                if number:
                    fields.append(current)
                    current = ""
                current, started = current + part, True
        return [*fields, current] if started else fields

    def _parts(self, text: str, quoted: bool) -> list[str]:
        """The text with expansions; several parts where it is exactly one array."""
        whole = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", text)
        if whole and whole.group(1) in self.arrays:
            return list(self.arrays[whole.group(1)])
        expanded = self.text(text, quoted)
        return [expanded] if expanded or not text else []

    def text(self, text: str, quoted: bool = False) -> str:
        """`text` with variables and arithmetic put in."""
        found, place = "", 0
        while place < len(text):
            if quoted and text[place] == "\\" and text[place + 1 : place + 2] in '"\\$`':
                found += text[place + 1 : place + 2]
                place += 2
            elif text.startswith("$((", place):
                end = closing(text, place + 1)
                found += self._arithmetic(text[place + 3 : end - 2], text[place:end])
                place = end
            elif text.startswith("$(", place):
                end = closing(text, place + 1)
                found += "$(...)"
                place = end
            elif text.startswith("${", place):
                end = closing(text, place + 1)
                found += self._parameter(text[place + 2 : end - 1])
                place = end
            elif text[place] == "$" and (name := _NAME.match(text, place + 1)):
                found += self._parameter(name.group())
                place = name.end()
            else:
                found += text[place]
                place += 1
        return found

    def _parameter(self, inside: str) -> str:
        match = _PARAMETER.fullmatch(inside)
        if match is None:
            return "${" + inside + "}"
        name, array, otherwise, default = match.groups()
        if array:
            if name not in self.arrays:
                self.missing.append(name)
            return " ".join(self.arrays.get(name, []))
        if name in self.values:
            return self.values[name]
        unquoted = re.sub(r"[\"']", "", default or "")
        return self.text(unquoted) if otherwise else "${" + name + "}"

    def _arithmetic(self, inside: str, written: str) -> str:
        known = self.text(inside)
        known = re.sub(r"[A-Za-z_]\w*", lambda name: self._parameter(name.group()), known)
        try:
            return str(_calculate(ast.parse(known.strip().replace("/", "//"), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return "".join(written.split())


def _calculate(node: ast.expr) -> int:
    """Integers and + - * / % only. Raises ValueError for anything else."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_calculate(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_calculate(left), _calculate(right))
    raise ValueError("not a whole number")
