"""Pickles are read as data: nothing they name is imported or called."""

from __future__ import annotations

import argparse
import enum
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_ext.weights.pickles import (
    BrokenPickleError,
    Record,
    global_path,
    read_pickle,
    read_torch_file,
)


class Evil:
    """What an attacker would put into a checkpoint."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def absent_module() -> Any:
    """A module with an enum and a list class that is there while pickling and gone after."""
    module = types.ModuleType("absent_megatron")

    class Backend(enum.Enum):
        flash = 1
        auto = 5

    class Plans(list[int]):
        pass

    for kind in (Backend, Plans):
        kind.__module__, kind.__qualname__ = module.__name__, kind.__name__
        setattr(module, kind.__name__, kind)
    sys.modules[module.__name__] = module
    yield module
    sys.modules.pop(module.__name__, None)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_nothing_in_a_pickle_is_run(tmp_path: Path, protocol: int) -> None:
    found = read_pickle(pickle.dumps({"args": Evil(tmp_path / "trace")}, protocol))
    assert not (tmp_path / "trace").exists()
    assert isinstance(found["args"], Record)
    assert found["args"].args == (str(tmp_path / "trace"),)
    assert found["args"].path.endswith(".mkdir")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arguments_of_a_megatron_that_is_not_here_are_read(
    absent_module: Any, protocol: int
) -> None:
    args = argparse.Namespace(
        num_layers=4,
        backend=absent_module.Backend.auto,
        plans=absent_module.Plans([1, 2]),
        kinds={absent_module.Backend.flash: "a", absent_module.Backend.auto: "b"},
        tags={"x"},
    )
    data = pickle.dumps({"args": args}, protocol)
    del sys.modules["absent_megatron"]
    read = read_pickle(data)["args"]
    assert read.path == "argparse.Namespace"
    assert (read.num_layers, read.tags) == (4, {"x"})
    assert (read.backend.path, read.backend.args) == ("absent_megatron.Backend", (5,))
    assert read.plans.items == [1, 2]
    assert list(read.kinds.values()) == ["a", "b"]
    assert "absent_megatron" not in sys.modules


def test_a_common_file_full_of_enums_is_read(absent_module: Any, tmp_path: Path) -> None:
    import torch

    args = argparse.Namespace(num_layers=4, kinds=[absent_module.Backend.auto], rope=1e6)
    torch.save({"args": args, "iteration": 9}, tmp_path / "common.pt")
    del sys.modules["absent_megatron"]
    with pytest.raises(ModuleNotFoundError):
        torch.load(tmp_path / "common.pt", weights_only=False)
    read = read_torch_file(tmp_path / "common.pt")
    assert (read["iteration"], read["args"].num_layers, read["args"].rope) == (9, 4, 1e6)
    assert read["args"].kinds[0].args == (5,)


def test_a_file_of_torch_save_gives_its_values_and_no_tensor(tmp_path: Path) -> None:
    import torch

    torch.save(
        {"args": argparse.Namespace(dtype=torch.bfloat16), "n": 3, "w": torch.ones(2)},
        tmp_path / "common.pt",
    )
    found = read_torch_file(tmp_path / "common.pt")
    assert found["n"] == 3
    assert global_path(found["args"].dtype) == "torch.bfloat16"
    assert found["w"].path == "torch._utils._rebuild_tensor_v2"


def test_a_file_of_another_kind_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "common.pt").write_bytes(pickle.dumps({"args": 1}))
    with pytest.raises(BrokenPickleError, match=r"torch\.save"):
        read_torch_file(tmp_path / "common.pt")


@given(cut=st.floats(0, 1), noise=st.binary(max_size=8))
@settings(max_examples=100, deadline=None)
def test_damaged_bytes_are_called_so(cut: float, noise: bytes) -> None:
    data = pickle.dumps({"args": argparse.Namespace(a=[1, 2], b={"c": (1.5, None)})})
    with pytest.raises(BrokenPickleError):
        read_pickle(noise + data[: int(cut * (len(data) - 1))])
