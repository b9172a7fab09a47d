"""The demo with real SGLang as rollout engine, seed 0; needs `make sglang`.

Limits are the demo's: accuracy at least 0.7 and evidence recall at least 0.6 at the end.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from slime_ext.embedded.sglang.process import sglang_installed
from tests.bench.demo import run


def main() -> int:
    """One run; exit code 1 where SGLang is not installed."""
    if not sglang_installed():
        print("SGLang is not installed; run `make sglang`", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as runs:
        summary = run(0, "chunk", ["embedded.engine=sglang"], Path(runs))
    for key in ("accuracy", "evidence_recall"):
        for when in ("start", "end"):
            print(f"figure sglang_demo_{key}_{when} {summary[when][key]:.4f}")
    print(f"figure sglang_demo_cpu_seconds {summary['cpu_seconds']:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
