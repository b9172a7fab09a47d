"""Stacks of every Python process of this job on this node, for a run that hangs.

One design choice: py-spy looks in from outside, since a process inside a stuck collective answers
no signal; only processes that bear the job's mark are looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

MARK = "LONGRL_JOB"
"""Environment variable of every process of a job; its value is the job's id."""


def marked_processes(job: str) -> list[int]:
    """Process ids on this node whose environment bears `job`, this process left out."""
    wanted = f"{MARK}={job}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if wanted in variables:
            found.append(int(folder.name))
    return sorted(found)


def save_stacks(folder: Path, seconds: float = 20.0) -> int:
    """Write `stacks_PID.txt` for each marked process; how many could be read.

    Processes that are no Python, or that py-spy may not look into, are named in `stacks.txt`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("py-spy")
    job = os.environ.get(MARK, "")
    if program is None or not job:
        missing = "py-spy is not installed" if program is None else f"{MARK} is not set"
        (folder / "stacks.txt").write_text(f"no stacks: {missing}\n")
        return 0
    unread, saved = [], 0
    for pid in marked_processes(job):
        command = [program, "dump", "--nonblocking", "--pid", str(pid)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            unread.append(f"{pid}: no answer in {seconds:g} s")
            continue
        if done.returncode:
            unread.append(f"{pid}: {done.stderr.strip()}")
            continue
        (folder / f"stacks_{pid}.txt").write_text(done.stdout)
        saved += 1
    (folder / "stacks.txt").write_text(f"{saved} read\n" + "".join(f"{one}\n" for one in unread))
    return saved
