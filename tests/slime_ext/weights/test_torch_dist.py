"""The index of a checkpoint read without running it, and the copy without optimiser state."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_ext.weights.torch_dist import METADATA, BrokenIndexError, copy_weights, pieces
from tests.fakes.torch_dist import OPTIMISER, WEIGHTS, read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("run"), 7)


def test_every_tensor_has_its_bytes_within_its_file(checkpoint: Path) -> None:
    found = pieces(checkpoint)
    assert {piece.key for piece in found} == {*WEIGHTS, *OPTIMISER}
    for piece in found:
        assert piece.offset + piece.length <= (checkpoint / piece.file).stat().st_size


def test_a_copy_without_optimiser_loads_and_holds_the_same_weights(
    checkpoint: Path, tmp_path: Path
) -> None:
    written = copy_weights(checkpoint, tmp_path / "copy")
    assert read_checkpoint(tmp_path / "copy") == dict.fromkeys(WEIGHTS, 7.0)
    assert {piece.key for piece in pieces(tmp_path / "copy")} == set(WEIGHTS)
    assert (tmp_path / "copy" / "common.pt").is_file()
    assert written < sum(path.stat().st_size for path in checkpoint.iterdir())


def test_a_checkpoint_of_the_embedded_trainer_loses_its_moments_only(
    model_folder: Path, tmp_path: Path
) -> None:
    from megatron.core import dist_checkpointing

    from slime_ext.embedded.trainer import Trainer
    from slime_ext.recipe.schema import Recipe

    recipe = Recipe.model_validate(
        {
            "name": "t",
            "model": {"path": str(model_folder)},
            "data": {"train": "unused", "max_prompt_tokens": 8},
            "rollout": {
                "steps": 1,
                "prompts": 1,
                "group_size": 2,
                "max_response_tokens": 8,
                "context_tokens": 32,
            },
            "reward": {"kind": "chunk"},
            "optimiser": {"lr": 0.1},
        }
    )
    Trainer(model_folder, recipe).save(tmp_path / "checkpoints")
    (whole,) = (tmp_path / "checkpoints").glob("iter_*")
    copy_weights(whole, tmp_path / "weights")
    left = {piece.key for piece in pieces(tmp_path / "weights")}
    assert left == {piece.key for piece in pieces(whole) if "optimizer" not in piece.key}
    for name in dist_checkpointing.load_tensors_metadata(str(tmp_path / "weights")):
        assert not name.startswith("optimizer")


class Evil:
    """What an attacker would put into `.metadata`."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("reader", ["pieces", "copy_weights"])
def test_nothing_in_the_index_is_run(reader: str, tmp_path: Path) -> None:
    folder = tmp_path / "iter_0000001"
    folder.mkdir()
    (folder / METADATA).write_bytes(pickle.dumps(Evil(tmp_path / "trace")))
    with pytest.raises(BrokenIndexError):
        pieces(folder) if reader == "pieces" else copy_weights(folder, tmp_path / "copy")
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "copy").exists()


@given(cut=st.floats(0, 1), noise=st.binary(max_size=8))
@settings(max_examples=60, deadline=None)
def test_a_damaged_index_is_called_so(
    checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, cut: float, noise: bytes
) -> None:
    data = (checkpoint / METADATA).read_bytes()
    folder = tmp_path_factory.mktemp("damaged")
    (folder / METADATA).write_bytes(noise + data[: int(cut * (len(data) - 1))])
    with pytest.raises(BrokenIndexError):
        pieces(folder)
