"""The demo on seeds 0, 1 and 2: what it learns and what it costs.

Limits: held-out greedy accuracy at least 0.7 and evidence recall at least 0.6 at the end of every
seed, 60 steps in under 120 CPU-seconds. `--reward KIND` measures another reward on the same task,
`--seeds 0` fewer seeds, `--set` changes the recipe.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RECIPE = Path(__file__).parents[2] / "configs" / "embedded" / "lab.toml"


def run(seed: int, reward: str, extra: list[str], runs: Path) -> dict[str, Any]:
    """Train once and return the run's summary."""
    settings = [f"seed={seed}", f"reward.kind={reward}", f"name=seed{seed}", *extra]
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "launch.cli.main", "train", str(RECIPE), "--runs", str(runs)]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)
    summary: dict[str, Any] = json.loads((runs / f"seed{seed}" / "summary.json").read_text())
    return summary


def main() -> None:
    """Run the seeds one after another and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--reward", default="chunk")
    parser.add_argument("--set", action="append", default=[], dest="extra")
    options = parser.parse_args()
    prefix = "demo" if options.reward == "chunk" else f"demo_{options.reward}"
    ends = []
    for seed in map(int, options.seeds.split(",")):
        with tempfile.TemporaryDirectory() as runs:
            summary = run(seed, options.reward, options.extra, Path(runs))
        ends.append(summary["end"])
        for key in ("accuracy", "evidence_recall", "format", "truncated_ratio", "response_length"):
            for when in ("start", "end"):
                print(f"figure {prefix}_seed{seed}_{key}_{when} {summary[when][key]:.4f}")
        print(f"figure {prefix}_seed{seed}_cpu_seconds {summary['cpu_seconds']:.1f}", flush=True)
    for key in ("accuracy", "evidence_recall"):
        print(f"figure {prefix}_lowest_{key} {min(end[key] for end in ends):.4f}")


if __name__ == "__main__":
    main()
