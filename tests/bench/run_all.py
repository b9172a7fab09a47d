"""Runs every benchmark and writes `bench.json`: what `make bench` does.

A benchmark is a script beside this file that prints lines `figure NAME VALUE`; each runs in a
process of its own, one thread, and a script that fails is reported and makes the exit code 1. One
that prints `skipped REASON` cannot run on this machine and is no failure.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
OUTPUT = Path("bench.json")


def run(script: Path) -> tuple[dict[str, float], int, bool]:
    """The figures one script prints, its exit code, and whether it was skipped; its output is
    passed on as it comes."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    )
    figures: dict[str, float] = {}
    skipped = False
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        words = line.split()
        if len(words) == 3 and words[0] == "figure":
            figures[words[1]] = float(words[2])
        skipped = skipped or line.startswith("skipped ")
    return figures, process.wait(), skipped


def main() -> int:
    """Run all scripts, or those named on the command line."""
    named = sys.argv[1:]
    scripts = [p for p in sorted(HERE.glob("*.py")) if p != Path(__file__)]
    figures: dict[str, float] = {}
    failed, skipped = [], []
    for script in scripts:
        if named and script.stem not in named:
            continue
        print(f"== {script.stem}", flush=True)
        found, code, was_skipped = run(script)
        figures |= found
        if was_skipped:
            skipped.append(script.stem)
        if code != 0 or not (found or was_skipped):
            failed.append(script.stem)
    result = {"time": time.time(), "machine": platform.platform(), "figures": figures}
    OUTPUT.write_text(json.dumps(result | {"failed": failed, "skipped": skipped}, indent=2) + "\n")
    print(f"{len(figures)} figures in {OUTPUT}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
