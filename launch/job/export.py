"""The last checkpoint of a smoke run as a Hugging Face folder, by the host's own converter.

One design choice: the converter's exit code is not believed alone (it has ended with 0 and written
nothing), the index of what it wrote must name tensors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import checkpoints, incomplete

CONVERTER = "tools/convert_torch_dist_to_hf.py"


class ExportError(ExplainedError):
    """There is nothing to export, or the converter wrote no model."""


def export(recipe: Recipe, folder: RunFolder) -> int:
    """Convert the newest complete checkpoint into `hf/`; the number of its tensors.

    Raises ExportError, with the converter's last words where it failed.
    """
    whole = [one for one in checkpoints(folder.checkpoints) if not incomplete(one)]
    if not whole:
        raise ExportError(f"{folder.checkpoints} holds no complete checkpoint to export")
    program = [recipe.cluster.python, str(Path(recipe.slime.path) / CONVERTER)]
    words = ["--input-dir", str(whole[-1]), "--output-dir", str(folder.hf), "--force"]
    origin = ["--origin-hf-dir", str(Path(recipe.model.path).absolute())]
    done = subprocess.run([*program, *words, *origin], capture_output=True, text=True)
    if done.returncode:
        raise ExportError(f"{CONVERTER} ended with {done.returncode}: {done.stderr[-2000:]}")
    return _tensors(folder.hf)


def _tensors(hf: Path) -> int:
    index = hf / "model.safetensors.index.json"
    found = json.loads(index.read_text())["weight_map"] if index.is_file() else {}
    if not found or not (hf / "config.json").is_file():
        raise ExportError(f"{CONVERTER} wrote no model into {hf}: no tensor, or no config.json")
    return len(found)


def main() -> int:
    """Entry point of the script's last part of a smoke run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    folder = RunFolder(parser.parse_args().run)
    try:
        tensors = export(load_recipe(folder.recipe).recipe, folder)
    except ExplainedError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 2
    print(f"exported {tensors} tensors to {folder.hf}; the smoke run is through")
    return 0


if __name__ == "__main__":
    sys.exit(main())
