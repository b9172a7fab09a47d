"""Runs every benchmark and writes `bench.json`: what `make bench` does.

A benchmark is a script beside this file that prints lines `figure NAME VALUE`; each runs in a
process of its own, one thread, and a script that fails is reported and makes the exit code 1.
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


def run(script: Path) -> tuple[dict[str, float], int]:
    """The figures one script prints, and its exit code; its output is passed on as it comes."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    )
    figures: dict[str, float] = {}
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        words = line.split()
        if len(words) == 3 and words[0] == "figure":
            figures[words[1]] = float(words[2])
    return figures, process.wait()


def main() -> int:
    """Run all scripts, or those named on the command line."""
    named = sys.argv[1:]
    scripts = [p for p in sorted(HERE.glob("*.py")) if p != Path(__file__)]
    figures: dict[str, float] = {}
    failed = []
    for script in scripts:
        if named and script.stem not in named:
            continue
        print(f"== {script.stem}", flush=True)
        found, code = run(script)
        figures |= found
        if code != 0 or not found:
            failed.append(script.stem)
    result = {"time": time.time(), "machine": platform.platform(), "figures": figures}
    OUTPUT.write_text(json.dumps(result | {"failed": failed}, indent=2) + "\n")
    print(f"{len(figures)} figures in {OUTPUT}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
