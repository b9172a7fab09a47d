"""Run one file of slime's plugin contract tests as slime says to: as a script, with paths as flags.

    python run_contracts.py FILE --custom-rm-path MODULE.NAME ... [pytest's own options]

One design choice: the real packages are imported first. The contract tests put placeholders in the
place of ray and transformers where these are not loaded yet, and our hooks need a real tokenizer.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import ray
import sglang_router
import transformers

REAL = (ray, sglang_router, transformers)

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
