"""The export of a smoke run believes what was written, not an exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from launch.job.export import CONVERTER, ExportError, export
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from tests.launch.recipes import dense_recipe

CONVERT = """
import json, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out = pathlib.Path(given["--output-dir"])
out.mkdir()
(out / "argv.json").write_text(json.dumps(sys.argv[1:]))
(out / "config.json").write_text("{{}}")
(out / "model.safetensors.index.json").write_text(json.dumps({{"weight_map": {weights}}}))
sys.exit({code})
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return dense_recipe(tmp_path, f"slime.path={tmp_path}", f"cluster.python={sys.executable}")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run with a whole checkpoint and a newer half one."""
    folder = RunFolder(tmp_path / "run")
    for number in (1, 2):
        place = folder.checkpoints / f"iter_{number:07d}"
        place.mkdir(parents=True)
        for name in ("__0_0.distcp", "common.pt", "metadata.json"):
            (place / name).write_bytes(b"__0_0.distcp")
    return folder


def converter(folder: Path, weights: str = '{"a": "model.safetensors"}', code: int = 0) -> None:
    (folder / CONVERTER).parent.mkdir()
    (folder / CONVERTER).write_text(CONVERT.format(weights=weights, code=code))


def test_the_newest_whole_checkpoint_is_converted(
    recipe: Recipe, folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter(tmp_path)
    monkeypatch.setattr("launch.job.export.incomplete", lambda one: one.name.endswith("2"))
    assert export(recipe, folder) == 1
    argv = json.loads((folder.hf / "argv.json").read_text())
    assert argv[argv.index("--input-dir") + 1].endswith("iter_0000001")
    assert argv[argv.index("--origin-hf-dir") + 1] == recipe.model.path


@pytest.mark.parametrize(
    ("weights", "code", "said"), [("{}", 0, "wrote no model"), ("{}", 3, "ended with 3")]
)
def test_a_converter_that_wrote_nothing_is_not_believed(
    weights: str, code: int, said: str, recipe: Recipe, folder: RunFolder, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    converter(tmp_path, weights, code)
    monkeypatch.setattr("launch.job.export.incomplete", lambda _: False)
    with pytest.raises(ExportError, match=said):
        export(recipe, folder)


def test_a_run_without_a_checkpoint_has_nothing_to_export(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no complete checkpoint"):
        export(recipe, RunFolder(tmp_path / "empty"))
