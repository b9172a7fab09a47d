"""`longrl judge-check`: compare judges on labelled answers before a run depends on one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import orjson
import tyro
from longrl_tools.judge_check.check import Options, check_judges
from longrl_tools.judge_check.judges import (
    NamedJudge,
    judges_at,
    load_judges,
    parse_judge,
    require_distinct,
)
from longrl_tools.judge_check.measure import Measured
from longrl_tools.judge_check.rows import Row, read_rows
from longrl_tools.judge_check.table import as_json, comparison, skipped_lines
from rich.console import Console

from slime_ext.errors import ExplainedError

LabelledPath = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="LABELLED.jsonl")]
Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


def judge_check(
    labelled: LabelledPath,
    endpoint: str | None = None,
    model: str | None = None,
    protocol: Repeated = (),
    judge: Repeated = (),
    judges: Path | None = None,
    attacks: bool = False,
    attack_rows: int = 20,
    probes: bool = True,
    max_false_yes: float | None = None,
    json: Path | None = None,
) -> int:
    """Ask judges about labelled answers and compare them.

    Exit code 1 where a judge says yes to too many wrong answers.

    Args:
        labelled: Rows of question, answer, candidate and label; see tools/judge_check/README.md.
        endpoint: Address of one judge's server, up to and including /v1.
        model: Name of the model there.
        protocol: Judge protocol there; repeat it to compare several.
        judge: A judge as "name=NAME,url=URL,model=MODEL,protocol=PROTOCOL"; may be repeated.
        judges: TOML file of [[judge]] tables.
        attacks: Also put wrong answers into the templates of an attack set.
        attack_rows: Wrong answers that are attacked.
        probes: Also ask with answers swapped, references reordered and answers padded.
        max_false_yes: Largest share of yes to wrong answers that passes.
        json: File that gets every number.
    """
    rows = read_rows(labelled)
    asked = [parse_judge(text) for text in judge]
    asked += load_judges(judges) if judges else []
    asked += judges_at(endpoint, model, protocol) if endpoint else []
    require_distinct(asked)
    for line in skipped_lines(rows):
        print(line)
    results = _run(rows.rows, asked, Options(probes, attacks, attack_rows))
    Console().print(comparison(results))
    if json:
        json.write_bytes(orjson.dumps(as_json(results, rows), option=orjson.OPT_INDENT_2) + b"\n")
    too_gullible = [] if max_false_yes is None else _above(results, max_false_yes)
    for line in too_gullible:
        print(line)
    return 1 if too_gullible else 0


def _run(rows: Sequence[Row], asked: Sequence[NamedJudge], options: Options) -> list[Measured]:
    try:
        return asyncio.run(check_judges(rows, asked, options))
    except ValueError as error:
        raise ExplainedError(str(error)) from error


def _above(results: Sequence[Measured], limit: float) -> list[str]:
    lines = []
    for one in results:
        rate = one.agreement.false_yes_rate()
        if rate.value is None:
            lines.append(
                f"{one.name}: it decided no answer labelled wrong, so --max-false-yes {limit:g} "
                "cannot be checked"
            )
        elif rate.value > limit:
            lines.append(
                f"{one.name}: says yes to {rate.hits} of {rate.n} wrong answers "
                f"({rate.value:.3f}), above --max-false-yes {limit:g}"
            )
    return lines
