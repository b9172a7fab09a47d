"""Runs a module as a program that ends when whoever started it is gone, however that went.

One design choice: the sign of life is the pipe on standard input. The kernel closes it even when
the parent is killed; a death signal (PR_SET_PDEATHSIG) would follow the thread that started us.
Standard library only, as it also runs inside SGLang's own environment:

    python -P lifeline.py MODULE [ARGUMENT ...]
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def end_with_parent() -> None:
    """Watch standard input in a thread; kill the process group at its end of file."""

    def watch() -> None:
        # Anything the parent might write is read and ignored.
        while os.read(0, 4096):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


if __name__ == "__main__":
    end_with_parent()
    module, sys.argv = sys.argv[1], sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
