"""Runs a measurement in a process of its own and collects its terms.

One design choice: terms arrive one by one, so running out of memory still tells how far it got and
what the terms before it took.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from launch.plan.measure.meter import MALLOC
from launch.plan.measure.share import MeasureError, Share

ROOT = Path(__file__).parents[3]
"""Holds the package `launch`."""


@dataclass(frozen=True, slots=True)
class Device:
    """Where a share is measured."""

    kind: str
    """`cuda` or `cpu`."""
    name: str
    memory: int | None
    """Bytes of this machine that are free; None for a GPU, which says so itself."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes by term, in the order of the step."""

    device: str
    """As the measuring process saw it."""
    terms: dict[str, int]
    out_of_memory: bool
    """The terms end where memory did."""


def find_device() -> Device:
    """The first GPU where there is one, else this machine's CPU. Raises MeasureError without torch.

    The GPU's name is left to the measuring process: asking for it takes memory of the GPU.
    """
    if importlib.util.find_spec("torch") is None:
        raise MeasureError(
            "--measure needs torch, which is not installed; install longrl[embedded], or run the "
            "command inside slime's image"
        )
    import torch

    if torch.cuda.is_available():
        return Device("cuda", "GPU 0", None)
    pages = {name: os.sysconf(f"SC_{name}") for name in ("AVPHYS_PAGES", "PAGE_SIZE")}
    return Device("cpu", f"CPU, {os.cpu_count()} cores", pages["AVPHYS_PAGES"] * pages["PAGE_SIZE"])


def measure(share: Share, device: Device) -> Measured:
    """Train one step of `share` on `device`, in bf16.

    Raises MeasureError where the process fails for another reason than memory.
    """
    order = {"share": dataclasses.asdict(share), "device": device.kind}
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    environment = {**os.environ, **MALLOC, "PYTHONPATH": path}
    terms: dict[str, int] = {}
    name, out_of_memory = device.name, False
    with tempfile.TemporaryFile("w+") as orders, tempfile.TemporaryFile("w+") as errors:
        json.dump(order, orders)
        orders.seek(0)
        with subprocess.Popen(
            [sys.executable, "-m", "launch.plan.measure.worker"],
            stdin=orders,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None
            for line in tqdm(process.stdout, desc="measuring", unit=" terms", disable=None):
                record = json.loads(line)
                if "error" in record:
                    raise MeasureError(record["error"])
                name = record.get("device", name)
                if "term" in record:
                    terms[record["term"]] = record["bytes"]
                out_of_memory |= "out_of_memory" in record
        # The kernel ends a process that takes the machine's last memory with signal 9.
        if process.returncode == -signal.SIGKILL:
            out_of_memory = True
        elif process.returncode:
            errors.seek(0)
            tail = "\n".join(errors.read().splitlines()[-8:])
            raise MeasureError(f"the measuring process failed:\n{tail}")
    return Measured(name, terms, out_of_memory)
