"""A scan of all rows before anything is spent: what is usable, what is not, and why.

One design choice: the scan goes on after a bad row and counts it, because a user who repairs a file
wants to know of all kinds of trouble at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tqdm import tqdm

from slime_ext.data.budget import PromptTooLong, prompt_ids
from slime_ext.data.errors import DataError
from slime_ext.data.render import renderer_for
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

Trouble = Literal["invalid", "over_budget", "missing_gold"]
LISTED = 20
"""Offenders listed by name; the counts cover all."""


@dataclass
class CheckReport:
    """Which rows are usable; a row with several troubles counts once, in the order of `Trouble`.

    `positions` lists all rows of each trouble. `offenders` names the first 20 as (id, or "line N"
    where a row could not be read; trouble; detail). `longest` is the longest prompt that fits, in
    tokens.
    """

    rows: int
    longest: int = 0
    positions: dict[Trouble, list[int]] = field(
        default_factory=lambda: {"invalid": [], "over_budget": [], "missing_gold": []}
    )
    offenders: list[tuple[str, Trouble, str]] = field(default_factory=list)

    @property
    def invalid(self) -> int:
        """Rows that cannot be read or rendered."""
        return len(self.positions["invalid"])

    @property
    def over_budget(self) -> int:
        """Rows whose prompt is too long."""
        return len(self.positions["over_budget"])

    @property
    def missing_gold(self) -> int:
        """Rows without the gold field that the reward needs."""
        return len(self.positions["missing_gold"])

    @property
    def ok(self) -> int:
        """Rows without trouble."""
        return self.rows - self.invalid - self.over_budget - self.missing_gold

    def add(self, position: int, name: str, trouble: Trouble, detail: str) -> None:
        """Count one row."""
        self.positions[trouble].append(position)
        if len(self.offenders) < LISTED:
            self.offenders.append((name, trouble, detail))

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
            report.add(position, name, "over_budget", f"{error.length} tokens, limit {error.limit}")
            continue
        except DataError as error:
            report.add(position, name, "invalid", str(error))
            continue
        report.longest = max(report.longest, len(ids))
        missing = [need for need in wanted if not getattr(task, need)]
        if missing:
            report.add(position, name, "missing_gold", ", ".join(missing))
    return report
