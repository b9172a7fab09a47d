"""An export that does not ask how much room there is: `python -m ... MADE OUT`; run by tests in a
process whose disk, or whose files, cannot hold it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from slime_ext.weights.export import write
from slime_ext.weights.export.plan import plan_export

SHARD_BYTES = 30_000


def main(made: Path, out: Path) -> None:
    """Print the error, and what is left of the export."""
    write._require_space = lambda partial, needed: None
    case = made / "qwen3-untied"
    config = json.loads((case / "hf" / "config.json").read_text())
    plan = plan_export(case / "tp2" / "iter_0000007", config)
    try:
        write.export_weights(plan, out, lambda folder: None, SHARD_BYTES)
    except write.ExportError as error:
        print(error)
    left = sorted(path.name for path in out.with_name(f"{out.name}.partial").iterdir())
    print("left:", *left)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
