"""`longrl import-script`: a shell script that starts slime, as a recipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tomli_w
import tyro

from launch.cli.options import Overrides
from launch.script_import.convert import convert
from launch.script_import.read import ScriptError, read_script
from launch.script_import.report import report
from slime_ext.recipe.load import parse_override

Definitions = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(name="define", metavar="NAME=VALUE", help="A variable the machine would set."),
]


def import_script(
    script: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="TRAIN.sh")],
    overrides: Overrides = (),
    define: Definitions = (),
    out: Path | None = None,
    host: Literal["v0.3.1", "v0.2.4"] = "v0.3.1",
) -> int:
    """Turn a script into a recipe and say what became of each flag; nothing of it is executed.

    Args:
        script: The script that starts slime's train.py.
        overrides: Recipe keys that go before what the script says.
        define: Variables that the script takes from its machine; may be repeated.
        out: The recipe file to write; without it the recipe is printed, the report as errors are.
        host: The slime the recipe is for.
    """
    if not script.is_file():
        raise FileNotFoundError(f"{script}: no such script")
    if out is not None and out.exists():
        raise ScriptError(f"{out} exists already; name another file")
    read = read_script(script.read_text(encoding="utf-8"), dict(_definition(one) for one in define))
    found = convert(read, script.stem, host, dict(parse_override(one) for one in overrides))
    text = tomli_w.dumps(found.table)
    if out is None:
        print(text)
    else:
        out.write_text(text)
    for line in report(read, found):
        print(line, file=sys.stderr if out is None else sys.stdout)
    return 0


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ScriptError(f"--define {text}: write --define NAME=VALUE")
    return name, value
