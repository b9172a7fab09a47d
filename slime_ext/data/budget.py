"""Token ids of a row's prompt, refused where they are too many, and a scan of all rows for that.

One design choice: a prompt over the limit raises, it is never cut; gold ids would keep pointing at
chunks that the model was not shown (methods: section 2). The scan, in contrast, goes on after a
bad row and counts it: who repairs a file wants to know of all kinds of trouble at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tqdm import tqdm

from slime_ext.data.errors import DataError
from slime_ext.data.render import render, renderer_for
from slime_ext.data.schema import Row
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

Trouble = Literal["invalid", "over_budget", "missing_gold"]
LISTED = 20
"""Offenders listed by name; the counts cover all."""


class PromptTooLong(DataError):  # noqa: N818 - the name says what happened
    """A rendered prompt above the limit. `row_id`, `length` and `limit` (tokens) are attributes."""

    def __init__(self, row_id: str, length: int, limit: int) -> None:
        self.row_id = row_id
        self.length = length
        self.limit = limit
        super().__init__(
            f"the prompt of row {row_id!r} has {length} tokens, the limit is {limit}",
            key="data.max_prompt_tokens",
            remedy='raise the limit, shorten the context, or set data.over_budget = "skip"',
        )

    def __reduce__(self) -> tuple[type[PromptTooLong], tuple[str, int, int]]:
        return PromptTooLong, (self.row_id, self.length, self.limit)


def prompt_ids(
    row: Row,
    name: str,
    tokenizer: Any,
    chat_template_kwargs: Mapping[str, Any],
    max_prompt_tokens: int,
) -> list[int]:
    """Token ids of the row's prompt, the model's own chat template and generation prompt included.

    `name` is a renderer as in `render`. Raises PromptTooLong above `max_prompt_tokens`, DataError
    where the row does not fit the renderer.
    """
    # transformers 5 returns a mapping unless told otherwise.
    ids = tokenizer.apply_chat_template(
        render(row, name),
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
        **chat_template_kwargs,
    )
    if len(ids) > max_prompt_tokens:
        raise PromptTooLong(row.id, len(ids), max_prompt_tokens)
    return [int(token) for token in ids]


@dataclass
class CheckReport:
    """Counts of rows; a row with several troubles counts once, in the order of `Trouble`.

    `offenders` names the first 20 as (id, or LINE where there is none; trouble; detail).
    `longest` is the longest prompt that fits, in tokens.
    """

    rows: int = 0
    ok: int = 0
    invalid: int = 0
    over_budget: int = 0
    missing_gold: int = 0
    longest: int = 0
    offenders: list[tuple[str, Trouble, str]] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The report as text, one line for each count and each listed offender."""
        text = [
            f"{self.rows} rows: {self.ok} ok, {self.over_budget} over budget, "
            f"{self.missing_gold} missing gold, {self.invalid} invalid; "
            f"longest prompt that fits: {self.longest} tokens"
        ]
        text += [f"  {name}: {trouble}: {detail}" for name, trouble, detail in self.offenders]
        hidden = self.rows - self.ok - len(self.offenders)
        return [*text, f"  ... and {hidden} more"] if hidden else text


def check_rows(
    store: RowStore,
    *,
    prompt: str,
    tokenizer: Any,
    chat_template_kwargs: Mapping[str, Any],
    max_prompt_tokens: int,
    needs: Iterable[str] = (),
) -> CheckReport:
    """Validate, render and tokenise every row of `store`.

    `needs` are the fields of `Task` that the reward cannot do without (`Reward.needs`). Raises
    DataError only for an unknown `prompt`; rows are counted, never raised.
    """
    renderer_for(prompt)
    wanted = sorted(needs)
    report = CheckReport(rows=len(store))
    for position in tqdm(range(len(store)), desc="check rows", unit="row", disable=None):
        name = f"line {position + 1}"
        try:
            row = store.row(position)
            name = row.id
            ids = prompt_ids(row, prompt, tokenizer, chat_template_kwargs, max_prompt_tokens)
            task = task_from_row(row)
        except PromptTooLong as error:
            _count(report, name, "over_budget", f"{error.length} tokens, limit {error.limit}")
            continue
        except DataError as error:
            _count(report, name, "invalid", str(error))
            continue
        report.longest = max(report.longest, len(ids))
        missing = [need for need in wanted if not getattr(task, need)]
        if missing:
            _count(report, name, "missing_gold", ", ".join(missing))
        else:
            report.ok += 1
    return report


def _count(report: CheckReport, name: str, trouble: Trouble, detail: str) -> None:
    setattr(report, trouble, getattr(report, trouble) + 1)
    if len(report.offenders) < LISTED:
        report.offenders.append((name, trouble, detail))
