"""`longrl watch`: a terminal view of a live run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.live import Live

from launch.cli.options import RunName, RunsFolder
from launch.watch.frame import frame
from launch.watch.read import run_to_watch, snapshot


def watch(
    run: RunName,
    runs: RunsFolder = Path("runs"),
    once: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    every: float = 2.0,
) -> int:
    """Show a run as it goes: reward parts, lengths, judge, throughput, what is left, events.

    Needs nothing but the run folder. Ends with the run, or with Ctrl-C, which leaves the run alone.

    Args:
        run: Name or folder of a run.
        runs: Folder that holds the run folders.
        once: Print one view and end; without a terminal that is so anyway.
        every: Seconds from one look to the next.
    """
    folder, console = run_to_watch(run, runs), Console(highlight=False)
    plain = console.options.ascii_only
    seen = snapshot(folder)
    if once or not console.is_terminal or seen.ended:
        console.print(frame(seen, plain))
        return 0
    with Live(frame(seen, plain), console=console, screen=False, auto_refresh=False) as live:
        while not seen.ended:
            time.sleep(every)
            seen = snapshot(folder)
            live.update(frame(seen, plain), refresh=True)
    return 0
