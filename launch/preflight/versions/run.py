"""Runs the probes in the job's interpreter, some at a time, and reads what they say.

One design choice: how a probe ended is a value with five cases; whoever judges a package never
meets an exit code or a traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from launch.preflight.versions.probe import MARK

SCRIPT = Path(__file__).with_name("probe.py")
LONGEST_S = 120.0
"""For one import; SGLang takes half a minute from a network disk."""
AT_ONCE = 4

Ending = Literal["works", "absent", "broken", "crashed", "slow"]


@dataclass(frozen=True, slots=True)
class Probe:
    """How importing one package and calling it went; `error` is one line where it did not work."""

    package: str
    ending: Ending
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def version(self) -> str | None:
        """As the package or its metadata states it."""
        return self.facts.get("version")


def run_probes(
    packages: Iterable[str], python: str, path: Iterable[str], longest_s: float = LONGEST_S
) -> dict[str, Probe]:
    """Probe each package with `path` in front of PYTHONPATH; no exception for a bad package.

    Raises OSError where `python` cannot be started.
    """
    names = list(packages)
    entries = [*path, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entries)}

    def one(name: str) -> Probe:
        return _probe(name, python, environment, longest_s)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def _probe(name: str, python: str, environment: Mapping[str, str], longest_s: float) -> Probe:
    try:
        done = subprocess.run(
            [python, str(SCRIPT), name],
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=longest_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(name, "slow", {}, f"not imported after {longest_s:g} s")
    facts = _facts(done.stdout)
    if done.returncode == 0:
        return Probe(name, "works", facts)
    if done.returncode < 0:
        return Probe(name, "crashed", facts, f"killed by signal {-done.returncode}")
    error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    absent = error.startswith("ModuleNotFoundError") and not facts
    return Probe(name, "absent" if absent else "broken", facts, error)


def _facts(output: str) -> dict[str, Any]:
    """The last answer in what a probe printed."""
    answers = [line for line in output.splitlines() if line.startswith(MARK)]
    found: dict[str, Any] = json.loads(answers[-1].removeprefix(MARK)) if answers else {}
    return found
