"""Stacks of every Python process of this job on this node, for a run that hangs.

    python -m launch.job.stacks RUN

One design choice: py-spy looks in from outside, since a process inside a stuck collective answers
no signal; only processes that bear the job's mark are looked at.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from slime_ext.metrics.run_folder import RunFolder

MARK = "LONGRL_JOB"
"""Environment variable of every process of a job; its value is the job's id."""
AT_ONCE = 8


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
    """Write `stacks_NODE_PID.txt` for each marked process; how many could be read.

    Processes that are no Python, or that py-spy may not look into, are named in
    `stacks_NODE.txt`. Each gets `seconds`, AT_ONCE of them at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = os.environ.get("SLURMD_NODENAME", platform.node())
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    job = os.environ.get(MARK, "")
    if program is None or not job:
        missing = "py-spy is not installed" if program is None else f"{MARK} is not set"
        (folder / f"stacks_{node}.txt").write_text(f"no stacks: {missing}\n")
        return 0

    def look(pid: int) -> str | None:
        """Save one process's stacks; what was wrong, or None."""
        command = [program, "dump", "--nonblocking", "--pid", str(pid)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"{pid}: no answer in {seconds:g} s"
        if done.returncode:
            return f"{pid}: {done.stderr.strip()}"
        (folder / f"stacks_{node}_{pid}.txt").write_text(done.stdout)
        return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(look, marked_processes(job)))
    unread = [one for one in said if one is not None]
    read = len(said) - len(unread)
    (folder / f"stacks_{node}.txt").write_text("\n".join([f"{read} read", *unread, ""]))
    return read


def main() -> int:
    """Entry point of the script's stacks step; a full disk is said, not raised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    folder = RunFolder(parser.parse_args().run)
    logs = folder.path / "attempts" / str(folder.attempt()) / "logs"
    try:
        print(f"{platform.node()}: stacks of {save_stacks(logs)} processes in {logs}")
    except OSError as error:
        print(f"longrl: no stacks: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
