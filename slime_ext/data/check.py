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
from slime_ext.data.numbering import required_number
from slime_ext.data.render import render, renderer_for
from slime_ext.data.schema import Row
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

Trouble = Literal["invalid", "over_budget", "gold_outside", "missing_gold"]
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
        default_factory=lambda: {
            "invalid": [],
            "over_budget": [],
            "gold_outside": [],
            "missing_gold": [],
        }
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
    def gold_outside(self) -> int:
        """Rows whose prompt does not show a gold chunk."""
        return len(self.positions["gold_outside"])

    @property
    def missing_gold(self) -> int:
        """Rows without the gold field that the reward needs."""
        return len(self.positions["missing_gold"])

    @property
    def ok(self) -> int:
        """Rows without trouble."""
        return self.rows - sum(len(positions) for positions in self.positions.values())

    def add(self, position: int, name: str, trouble: Trouble, detail: str) -> None:
        """Count one row."""
        self.positions[trouble].append(position)
        if len(self.offenders) < LISTED:
            self.offenders.append((name, trouble, detail))

    def lines(self) -> list[str]:
        """The report as text, one line for each count and each listed offender."""
        outside = f"{self.gold_outside} gold outside the prompt, " if self.gold_outside else ""
        text = [
            f"{self.rows} rows: {self.ok} ok, {self.over_budget} over budget, {outside}"
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
            outside = unseen_gold(row, prompt)
        except PromptTooLong as error:
            report.add(position, name, "over_budget", f"{error.length} tokens, limit {error.limit}")
            continue
        except DataError as error:
            report.add(position, name, "invalid", str(error))
            continue
        report.longest = max(report.longest, len(ids))
        if outside:
            detail = f"the prompt does not show {', '.join(outside)}"
            report.add(position, name, "gold_outside", detail)
            continue
        missing = [need for need in wanted if not getattr(task, need)]
        if missing:
            report.add(position, name, "missing_gold", ", ".join(missing))
    return report


def unseen_gold(row: Row, prompt: str) -> list[str]:
    """Gold chunks that the rendered prompt does not show: documents by their text, chunks of
    rendered messages by their marker. A renderer may leave documents out, and published messages
    may have been cut."""
    shown = "\n".join(message["content"] for message in render(row, prompt))
    gold = set(row.gold_chunks)
    if row.context:
        return [one.id for one in row.context if one.id in gold and one.text.strip() not in shown]
    markers = {chunk: f"<CHUNK_{required_number(chunk)}>" for chunk in row.gold_chunks}
    return [chunk for chunk, marker in markers.items() if marker not in shown]
