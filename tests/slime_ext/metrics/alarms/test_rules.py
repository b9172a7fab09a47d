"""Every rule by the rows of a run that trips it and of one that does not, looked at step by step as
a running loop does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_ext.metrics.alarms.alarms import Alarms
from slime_ext.metrics.alarms.rules import RULES
from slime_ext.metrics.alarms.series import rise
from slime_ext.metrics.records import Records, read_rows
from slime_ext.recipe.alarm_section import AlarmRule, AlarmsSection

Figures = Callable[[int], dict[str, float]]
STEPS = 40
HEALTHY: dict[str, float] = {
    "samples": 96.0,
    "truncated_share": 0.1,
    "reward/total": 0.5,
    "reward/outcome": 0.4,
    "reward/evidence_recall": 0.6,
    "length/mean": 900.0,
    "advantage/groups": 12.0,
    "group/zero_advantage": 3.0,
    "undetermined": 0.0,
}
TRAINED: dict[str, float] = {
    "loss": 0.01,
    "entropy": 0.4,
    "train_rollout_logprob_abs_diff": 0.02,
    "grad_norm": 0.3,
}


def noise(step: int) -> float:
    """A wave between -1 and 1 that goes nowhere."""
    return math.sin(2.4 * step)


TRIPS: dict[str, list[tuple[Figures, int]]] = {
    "truncation": [(lambda s: {"truncated_share": 0.1 if s < 5 else 0.6}, 6)],
    "evidence": [
        (lambda s: {"reward/outcome": 0.3 + 0.01 * s, "reward/evidence_recall": 0.7 - 0.01 * s}, 29)
    ],
    "reward": [(lambda s: {"reward/total": 0.3 + 0.01 * s, "reward/outcome": 0.5 - 0.01 * s}, 29)],
    "log_prob": [(lambda s: {"train_rollout_logprob_abs_diff": 0.02 if s < 10 else 0.3}, 12)],
    "entropy": [
        (lambda s: {"entropy": 0.4 if s < 20 else 0.02}, 25),
        (lambda s: {"entropy_loss": 0.4 if s < 20 else 0.02}, 25),
    ],
    "length": [(lambda s: {"length/mean": 900.0 if s < 20 else 2400.0}, 25)],
    "no_verdict": [(lambda s: {"undetermined/no_verdict:timeout": 0.0 if s < 9 else 9.0}, 11)],
    "zero_signal": [
        (lambda s: {"group/zero_advantage": 3.0 if s < 5 else 11.0}, 6),
        (lambda s: {"host/groups_dropped": 60.0}, 2),
        (lambda s: {"host/rollout/dynamic_filter/drop_flat": 60.0}, 2),
    ],
    "not_finite": [(lambda s: {"grad_norm": math.nan if s == 7 else 0.3}, 7)],
}
"""By rule: figures that trip it, and at which step."""

STAYS: dict[str, Figures] = {
    "truncation": lambda s: {"truncated_share": 0.9 if s % 3 == 0 else 0.4},
    "evidence": lambda s: {
        "reward/outcome": 0.4 + 0.1 * noise(s),
        "reward/evidence_recall": 0.6 - 0.1 * noise(s),
    },
    "reward": lambda s: {"reward/total": 0.3 + 0.01 * s, "reward/outcome": 0.2 + 0.01 * s},
    "log_prob": lambda s: {"train_rollout_logprob_abs_diff": 5.0 if s % 5 == 0 else 0.09},
    "entropy": lambda s: {"entropy": 0.4 * 0.95**s},
    "length": lambda s: {"length/mean": 900.0 * 1.05**s + (9000.0 if s % 7 == 0 else 0.0)},
    "no_verdict": lambda s: {
        "undetermined/no_verdict:timeout": 40.0 if s % 4 == 0 else 3.0,
        "undetermined/aborted": 50.0,
    },
    "zero_signal": lambda s: {"group/zero_advantage": 12.0 if s % 4 == 0 else 9.0},
    "not_finite": lambda s: {"host/rollout/something": math.nan},
}
"""By rule: figures that come close, or are bad for single steps."""


def looked_at(
    run: Path, figures: Figures, section: AlarmsSection | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Alarm events of a run with these figures, and the reasons for which it was to stop."""
    stops: list[str] = []
    records = Records(run)
    alarms = Alarms(section or AlarmsSection(), records, stops.append)
    for step in range(STEPS):
        changed = figures(step)
        train = {k: v for k, v in changed.items() if k in TRAINED or k == "entropy_loss"}
        rollout = {k: v for k, v in changed.items() if k not in train}
        records.write("rollout", step, HEALTHY | rollout)
        alarms.look(step)
        usual = {k: v for k, v in TRAINED.items() if k != "entropy" or "entropy_loss" not in train}
        records.write("train", step, usual | train)
        alarms.look(step)
    return read_rows(run / "events.jsonl"), stops


def test_every_rule_has_settings_and_every_setting_a_rule() -> None:
    assert set(AlarmsSection.model_fields) - {"on"} == set(RULES) == set(TRIPS) == set(STAYS)


@pytest.mark.parametrize(
    ("name", "figures", "step"),
    [(name, *case) for name, cases in TRIPS.items() for case in cases],
)
def test_a_rule_trips(
    name: str, figures: Figures, step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, stops = looked_at(tmp_path, figures)
    first = events[0]
    assert (first["kind"], first["rule"], first["step"]) == ("alarm", name, step)
    assert {event["rule"] for event in events} == {name}
    assert sum(event["kind"] == "alarm" for event in events) == 1
    out = capsys.readouterr().out
    assert out.count(f"alarm {name} at step {step}: {first['text']}") == 1
    assert stops == []


@pytest.mark.parametrize("name", STAYS)
def test_a_rule_stays_silent(name: str, tmp_path: Path) -> None:
    events, _ = looked_at(tmp_path, STAYS[name])
    assert [event for event in events if event["rule"] == name] == []


def test_a_healthy_run_is_silent(tmp_path: Path) -> None:
    assert looked_at(tmp_path, lambda step: {}) == ([], [])


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_nothing_before_its_window_is_full(name: str) -> None:
    rule = getattr(AlarmsSection(), name)
    figures = TRIPS[name][0][0]
    rows = [HEALTHY | TRAINED | figures(step) for step in range(STEPS)]
    assert RULES[name]([], rule) is None
    if name != "not_finite":
        assert RULES[name](rows[-(rule.window - 1) :], rule) is None


@pytest.mark.parametrize("name", RULES)
def test_a_threshold_out_of_reach_or_off_silences_a_rule(name: str, tmp_path: Path) -> None:
    figures = TRIPS[name][0][0]
    off = AlarmsSection.model_validate({name: {"on": False}})
    assert looked_at(tmp_path / "off", figures, off)[0] == []
    far = {"entropy": 0.0, "truncation": 1.0, "no_verdict": 1.0, "zero_signal": 1.0}.get(name, 1e9)
    lax = AlarmsSection.model_validate({name: {"threshold": far}})
    assert looked_at(tmp_path / "lax", figures, lax)[0] == []


def test_nothing_is_looked_at_with_the_section_off(tmp_path: Path) -> None:
    off = AlarmsSection.model_validate({"on": False, "truncation": {"stop": True}})
    assert looked_at(tmp_path, lambda step: {"truncated_share": 1.0}, off) == ([], [])


def test_a_key_of_a_rule_keeps_the_others_at_their_defaults() -> None:
    rule = AlarmsSection.model_validate({"length": {"stop": True}}).length
    assert (rule.on, rule.threshold, rule.window, rule.stop) == (True, 2.0, 10, True)


@given(st.floats(-0.1, 0.1), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_a_trend_is_exact_on_a_line_and_deaf_to_one_wild_step(slope: float, wild: int) -> None:
    line = [slope * step for step in range(10)]
    assert rise(line, 10) == pytest.approx(9 * slope, abs=1e-9)
    line[wild] += 1e6
    assert abs((rise(line, 10) or 0.0) - 9 * slope) < 1e-6
    assert rise(line, 11) is None


KEYS = [*HEALTHY, *TRAINED, "entropy_loss", "undetermined/no_verdict:x", "host/groups_dropped"]
FIGURE = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), FIGURE), max_size=8))
@settings(max_examples=60, deadline=None)
def test_no_row_makes_a_rule_fail(rows: list[dict[str, float | None]]) -> None:
    for name, judge in RULES.items():
        least = {"evidence": 3, "reward": 3}.get(name, 1)
        rule = type(getattr(AlarmsSection(), name))(window=least)
        finding = judge(rows, rule)
        assert finding is None or finding.text


def test_all_rules_share_their_keys() -> None:
    for name in RULES:
        assert set(type(getattr(AlarmsSection(), name)).model_fields) == set(AlarmRule.model_fields)
