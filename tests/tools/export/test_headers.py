"""Headers of safetensors files: what a good one says, and every way one can be damaged."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from longrl_tools.export.headers import BrokenFileError, read_header
from safetensors.torch import save_file

from tests.tools.export.folders import edit_header


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tensors = {"a": torch.ones(3, 4), "b": torch.ones(2, dtype=torch.bfloat16)}
    save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt"})
    return tmp_path / "x.safetensors"


def test_names_dtypes_shapes_and_places(file: Path) -> None:
    found = read_header(file)
    assert {name: (one.dtype_name, one.shape, one.numel) for name, one in found.items()} == {
        "a": ("float32", (3, 4), 12),
        "b": ("bfloat16", (2,), 2),
    }
    data = file.read_bytes()
    one = found["b"]
    assert data[one.start : one.start + one.length] == b"\x80\x3f\x80\x3f"


def test_a_file_cut_off_names_the_tensor(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    last = list(read_header_names(file))[-1]
    with pytest.raises(BrokenFileError, match=f"cut off before the end of {last}"):
        read_header(file)


def test_a_longer_file_is_no_whole_file(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(BrokenFileError, match="its header says"):
        read_header(file)


@pytest.mark.parametrize(
    "data", [b"", b"1234567", struct.pack("<Q", 2**62), struct.pack("<Q", 4) + b"[1, ", b"\0" * 8]
)
def test_what_is_no_safetensors_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(BrokenFileError):
        read_header(path)


def _shape(table: dict[str, Any]) -> None:
    table["a"]["shape"] = [3, 5]


def _gap(table: dict[str, Any]) -> None:
    table["b"]["data_offsets"] = [n + 4 for n in table["b"]["data_offsets"]]


def _dtype(table: dict[str, Any]) -> None:
    table["a"]["dtype"] = "F31"


def _entry(table: dict[str, Any]) -> None:
    table["a"] = 7


@pytest.mark.parametrize("change", [_shape, _gap, _dtype, _entry])
def test_a_header_that_does_not_add_up(file: Path, change: Callable[..., None]) -> None:
    edit_header(file, change)
    with pytest.raises(BrokenFileError, match=r"\b[ab]\b"):
        read_header(file)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_nothing_else_is_raised_for_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(data)) + data)
    with contextlib.suppress(BrokenFileError):
        assert read_header(path) == {}


def read_header_names(file: Path) -> list[str]:
    """In the order of their bytes."""
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    table = json.loads(data[8 : 8 + length])
    table.pop("__metadata__")
    return sorted(table, key=lambda name: table[name]["data_offsets"][0])
