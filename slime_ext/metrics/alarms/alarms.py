"""The alarms of a running run: looked at after each step, told once until they clear.

One design choice: what stands is read back from the events of earlier attempts, so that a run that
is preempted every hour does not repeat itself, while an alarm with `stop` stops as long as it
holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tqdm import tqdm

from slime_ext.host.loggers import alert
from slime_ext.metrics.alarms.finding import Finding
from slime_ext.metrics.alarms.history import history
from slime_ext.metrics.alarms.rules import RULES
from slime_ext.metrics.records import Records, read_rows
from slime_ext.recipe.alarm_section import AlarmsSection

KIND, CLEARED = "alarm", "alarm_cleared"
"""Kinds of events."""


class Alarms:
    """All rules of one run; `stop` is called with the reason when one of them asks for it."""

    def __init__(
        self, settings: AlarmsSection, records: Records, stop: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._records = records
        self.stop = stop
        self._standing = standing(records)

    def look(self, step: int, also: Mapping[str, float] | None = None) -> dict[str, Finding]:
        """Judge the recorded rows up to `step`, and tell what is new; returns what holds.

        `also` are figures of that step that could not be recorded.
        """
        if not self._settings.on:
            return {}
        rows = history(self._records.folder, step)
        if also:
            rows = [*rows[:-1], {**(rows[-1] if rows else {}), **also}]
        holding: dict[str, Finding] = {}
        for name, judge in RULES.items():
            rule = getattr(self._settings, name)
            finding = judge(rows, rule) if rule.on else None
            if finding is not None:
                holding[name] = finding
                self._hold(name, step, finding, rule.stop)
            elif name in self._standing:
                self._standing.remove(name)
                self._records.event(CLEARED, step=step, rule=name)
        return holding

    def _hold(self, name: str, step: int, finding: Finding, stop: bool) -> None:
        if name not in self._standing:
            self._standing.add(name)
            said = f"alarm {name} at step {step}: {finding.text}"
            tqdm.write(said)
            self._records.event(KIND, step=step, rule=name, value=finding.value, text=finding.text)
            alert(f"alarm {name}", said)
        if stop:
            self.stop(
                f"alarm {name}: {finding.text}; alarms.{name}.stop = false goes on regardless"
            )


def standing(records: Records) -> set[str]:
    """Rules whose newest event is an alarm."""
    rows = read_rows(records.folder / "events.jsonl")
    newest = {row["rule"]: row["kind"] for row in rows if row["kind"] in (KIND, CLEARED)}
    return {name for name, kind in newest.items() if kind == KIND}
