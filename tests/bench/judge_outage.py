"""A judge that is down for 60 s in the middle of a run: does the run go on, and is anything lost?

The same recipe and seed run twice, undisturbed and with the outage; the rewards of every step must
be the same. `--seconds` shortens the outage.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from slime_ext.metrics.records import last_rows
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import FakeJudge, fake_judge
from tests.fakes.runs import finish, start, trained_steps, wait_for


def rewards(run: Path) -> list[float]:
    """Mean reward of every step."""
    return [row["reward/total"] for row in last_rows(run / "metrics" / "rollout.jsonl").values()]


def train(judge: FakeJudge, runs: Path, outage_s: float) -> Path:
    """One run; the judge goes down after its second step for `outage_s`."""
    settings = ['outcome.kind="judge"', f'outcome.judge.endpoints=[{{url="{judge.url}"}}]']
    process = start(runs, *settings)
    if outage_s:
        wait_for(lambda: trained_steps(runs / "lab") >= 2, process)
        judge.down = True
        time.sleep(outage_s)
        judge.down = False
    finish(process)
    return runs / "lab"


def main() -> None:
    """Print what the outage cost and what it changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with fake_judge(exact_reply, latency_s=0.05) as judge, tempfile.TemporaryDirectory() as scratch:
        quiet = train(judge, Path(scratch) / "quiet", 0.0)
        disturbed = train(judge, Path(scratch) / "disturbed", seconds)
        differences = [abs(a - b) for a, b in zip(rewards(quiet), rewards(disturbed), strict=True)]
        steps = last_rows(disturbed / "metrics" / "train.jsonl").values()
        longest = max(row["wall_seconds"] for row in steps)
    print(f"figure judge_outage_s {seconds:.1f}")
    print(f"figure judge_outage_longest_step_s {longest:.1f}")
    print(f"figure judge_outage_steps_trained {len(differences)}")
    print(f"figure judge_outage_largest_reward_change {max(differences):.2e}")


if __name__ == "__main__":
    main()
