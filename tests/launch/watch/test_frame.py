"""What a person sees of a run."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from launch.watch.frame import frame
from launch.watch.read import snapshot
from tests.launch.watch.records import BEGAN, STEP_S, Run, restarted_run


def drawn(run: Run, now: float, plain: bool = False, width: int = 120) -> str:
    text = io.StringIO()
    Console(file=text, width=width).print(frame(snapshot(run.folder.path, now), plain))
    return text.getvalue()


def test_a_restarted_run_shows_progress_time_left_and_figures(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.event("stopped", BEGAN + 210, step=4, reason="job 7")
    run.event("checkpoint", BEGAN + 4000, step=8)
    text = drawn(run, BEGAN + 3600 + 2 * STEP_S * 5 + 20)
    head, progress = text.splitlines()[:2]
    assert head.startswith("watched")
    assert "attempt 2, 1 restart, 2 steps done again" in head
    assert "step 8 of 20" in progress
    # 12 steps of 80 s, 20 s of which are over.
    assert "16 min left" in progress
    assert "step 80.0 s" in text
    assert "response tokens a second 1,080" in " ".join(text.split())
    assert "stopped" in text
    assert "reason job 7" in text
    assert "checkpoint" in text
    found = {" ".join(line.split()[:-1]) for line in text.splitlines()}
    assert "reward total 0.570 0.535" in found
    assert "outcome 0.250 0.250" in found
    assert "rollout response tokens 900 900" in found
    assert "truncated 12.5% 12.5%" in found
    assert "groups without signal 25.0% 25.0%" in found
    assert "entropy 0.4 0.4" in found


def test_the_judge_has_lines_where_a_run_has_one(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.attempt(BEGAN)
    judge = {"judge/latency_mean_s": 2.5, "judge/cache_hit_rate": 0.75, "judge/retries": 3.0}
    run.step(0, BEGAN + 1, **judge, **{"undetermined/no_verdict:timeout": 24.0})
    found = {" ".join(line.split()[:-1]) for line in drawn(run, BEGAN + 2).splitlines()}
    assert "judge latency 2.5 s 2.5 s" in found
    assert "from the cache 75.0% 75.0%" in found
    assert "tried again 3 3" in found
    assert "without a verdict 25.0% 25.0%" in found


def test_an_alarm_and_silence_stand_on_top(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.event("alarm", BEGAN + 3700, step=4, rule="length", value=2.6, text="responses are long")
    lines = drawn(run, BEGAN + 3600 + 2 * STEP_S * 5 + 1000).splitlines()
    assert "nothing for 17 min" in " ".join(lines[:3])
    assert any("ALARM length: responses are long" in line for line in lines[:4])


def test_a_stopped_run_says_so_until_the_next_attempt(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.event("stopped", BEGAN + 4100, step=8, reason="alarm length: long")
    assert "stopped 1 h 40 min ago" in drawn(run, BEGAN + 10_100)
    run.attempt(BEGAN + 10_000)
    assert "stopped 1 h 40 min ago" not in drawn(run, BEGAN + 10_100).splitlines()[1]


def test_a_finished_run_is_shown_with_its_summary_and_held_out_rows(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    for step, outcome in ((0, 0.1), (4, 0.5), (8, 0.4)):
        run.records.write("eval", step, {"reward/outcome": outcome}, dataset="eval")
    start, end = {"accuracy": 0.1, "format": 0.9}, {"accuracy": 0.4, "format": 1.0}
    summary = {"figures_from": "held-out", "start": start, "end": end}
    run.folder.write_json(run.folder.summary, summary)
    found = [" ".join(line.split()) for line in drawn(run, BEGAN + 5000).splitlines()]
    assert "finished" in found[1]
    assert "accuracy 0.100 0.400" in found
    assert "eval 8 0.400 0.500 4" in found


def test_an_empty_run_says_that_it_waits(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert "step 0 of 20  no step yet" in drawn(run, BEGAN)
    run.attempt(BEGAN)
    assert "attempt 1 began 30 s ago" in drawn(run, BEGAN + 30)


def test_plain_is_ascii_and_a_narrow_terminal_breaks_nothing(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.event("engine_restarted", BEGAN + 3000, step=3, reason="x" * 300)
    for width in (120, 60, 30):
        text = drawn(run, BEGAN + 5000, plain=True, width=width)
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= width
