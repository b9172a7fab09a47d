"""Rows by position and id; the index on disk; files that are not what they should be."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slime_ext.data import index
from slime_ext.data.errors import DataError
from slime_ext.data.store import RowStore

Write = Callable[..., Path]


def _numbered(raw: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [{**raw, "id": f"q{number}"} for number in range(count)]


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode()


def test_rows_by_position_and_id(raw: dict[str, Any], write: Write) -> None:
    store = RowStore(write(_numbered(raw, 50)))
    assert len(store) == 50
    assert [row.id for row in store] == [f"q{number}" for number in range(50)]
    assert [store.position(f"q{number}") for number in (49, 0, 17)] == [49, 0, 17]
    with pytest.raises(KeyError, match="q50"):
        store.position("q50")
    for outside in (-1, 50):
        with pytest.raises(IndexError):
            store.row(outside)


@pytest.mark.parametrize(
    "identity", ["plain", "Ur \u00e9\u4e2d", 'quo"te', "back\\slash", "tab\t", "ends in blank "]
)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_ids_in_any_spelling_and_place(
    raw: dict[str, Any], write: Write, identity: str, ascii_only: bool, first: bool
) -> None:
    rest = {key: value for key, value in raw.items() if key != "id"}
    row = {"id": identity, **rest} if first else {**rest, "id": identity}
    other = {**raw, "id": "other"}
    text = "\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in (other, row))
    store = RowStore(write(text.encode()))
    assert store.position(identity) == 1
    assert store.row(1).id == identity


def test_the_id_is_the_top_level_one(raw: dict[str, Any], write: Write) -> None:
    rest = {key: value for key, value in raw.items() if key != "id"}
    nested = {"metadata": {"id": "inner"}, **{k: v for k, v in rest.items() if k != "metadata"}}
    store = RowStore(write([{**nested, "id": "outer"}]))
    assert store.position("outer") == 0
    with pytest.raises(KeyError):
        store.position("inner")


def test_an_id_written_twice_in_a_row_is_refused(raw: dict[str, Any], write: Write) -> None:
    line = _line(raw)[:-1] + b', "id": "second"}'
    store = RowStore(write(line))
    with pytest.raises(DataError, match="write the id once"):
        store.row(0)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b" \t\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_and_byte_order_mark(
    raw: dict[str, Any], write: Write, ending: bytes, bom: bytes, last: bool
) -> None:
    lines = [_line(row) for row in _numbered(raw, 3)]
    store = RowStore(write(bom + ending.join(lines) + (ending if last else b"")))
    assert [row.id for row in store] == ["q0", "q1", "q2"]


def test_a_good_row_far_down_is_blamed_by_its_line(raw: dict[str, Any], write: Write) -> None:
    rows = _numbered(raw, 5)
    rows[3] = {**rows[3], "answr": "x"}
    path = write(rows)
    with pytest.raises(DataError) as caught:
        RowStore(path).row(3)
    assert str(caught.value).startswith(f"{path}:4: answr: unknown key; did you mean 'answer'?")


def _broken(good: bytes) -> list[tuple[bytes, int | None, str]]:
    return [
        (b"", None, "empty"),
        (b"\n", 1, "blank"),
        (b"\xef\xbb\xbf", 1, "blank"),
        (good + b"\n\n" + good, 2, "blank"),
        (good + b"\n  \n", 2, "blank"),
        (good + b"\n" + good[:-20], 2, "cut off"),
        (good + b"\n" + good[:-20] + b"\n", 2, "cut off"),
        (good[:-20] + b"\n" + good.replace(b"q1", b"q2"), 1, "cut off"),
        (good + b'\n{"id": "x", "metadata": {"a": 1}', 2, "invalid JSON"),
        (good + b"\n{nonsense}\n", 2, "invalid JSON"),
        (good + b"\n[1]\n", 2, "must be a JSON object, not list"),
        (good + b'\n{"question": "?"}\n', 2, "required"),
        (good + b'\n{"id": 7}\n', 2, "must be a string"),
        (good + b'\n{"id": "  "}\n', 2, "not blank"),
        (b"[" + good + b"]", 1, "one JSON array"),
        (b"PAR1\x15\x04", None, "parquet"),
        (b"\x1f\x8b\x08", None, "gzip"),
        (b"\xff\xfe{\x00", None, "UTF-16"),
        (b'{\n "id": "x"\n}\n', 1, "one whole line"),
    ]


@pytest.mark.parametrize("case", range(len(_broken(b"{}"))))
def test_broken_files_name_the_line(raw: dict[str, Any], write: Write, case: int) -> None:
    content, line, words = _broken(_line(raw))[case]
    path = write(content)
    with pytest.raises(DataError) as caught:
        RowStore(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert caught.value.remedy
    assert not list(path.parent.glob("*.npy"))


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_cut_last_line_is_found_without_ids_too(write: Write, cut: int) -> None:
    row = _line({"prompt": [{"role": "user", "content": "x" * 200}], "extra_info": {}})
    with pytest.raises(DataError, match=":2: "):
        RowStore(write(row + b"\n" + row[:-cut]), "longrlvr")


def test_duplicate_ids_name_both_lines(raw: dict[str, Any], write: Write) -> None:
    rows = _numbered(raw, 6)
    rows[4]["id"] = "q1"
    with pytest.raises(DataError, match="'q1' is the id of line 2 and of line 5"):
        RowStore(write(rows))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        RowStore(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match="folder"):
        RowStore(tmp_path)


def test_unknown_format_is_suggested(raw: dict[str, Any], write: Write) -> None:
    with pytest.raises(DataError, match="did you mean 'musique'"):
        RowStore(write([raw]), "musiqe")


def test_a_stored_index_is_used_again(
    raw: dict[str, Any], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(_numbered(raw, 4))
    first = RowStore(path)
    assert [p.name for p in path.parent.glob("*.npy")] == ["rows.jsonl.longrl.index.npy"]
    monkeypatch.setattr(index, "scan_lines", lambda *_: pytest.fail("scanned again"))
    second = RowStore(path)
    assert [row.id for row in second] == ["q0", "q1", "q2", "q3"]
    assert second.fingerprint == first.fingerprint


def test_a_changed_file_is_indexed_again(raw: dict[str, Any], write: Write) -> None:
    path = write(_numbered(raw, 4))
    before = RowStore(path).fingerprint
    write([*_numbered(raw, 4), {**raw, "id": "more"}])
    assert RowStore(path).position("more") == 4
    assert RowStore(path).fingerprint != before
    # The same size, another time: still another file.
    write([*_numbered(raw, 4), {**raw, "id": "mire"}])
    os.utime(path, ns=(1, 1))
    assert RowStore(path).position("mire") == 4


def test_a_file_edited_behind_an_open_store_is_noticed(raw: dict[str, Any], write: Write) -> None:
    path = write(_numbered(raw, 4))
    store = RowStore(path)
    write([{**row, "id": row["id"].replace("q", "z")} for row in _numbered(raw, 4)])
    with pytest.raises(DataError, match="not the id the index has"):
        store.row(2)
    write(b"")
    with pytest.raises(DataError, match="shorter than when it was opened"):
        store.row(2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: place.write_bytes(b""),
        lambda place: place.write_bytes(place.read_bytes()[:200]),
        lambda place: np.save(place, np.zeros(3)),
        lambda place: np.save(place, np.load(place)[:-1]),
        lambda place: np.save(place, np.concatenate([[99], np.load(place)[1:]]).astype(np.uint64)),
    ],
)
def test_a_damaged_index_is_replaced(
    raw: dict[str, Any], write: Write, damage: Callable[[Path], object]
) -> None:
    path = write(_numbered(raw, 4))
    RowStore(path)
    (place,) = path.parent.glob("*.npy")
    good = place.read_bytes()
    damage(place)
    assert RowStore(path).position("q3") == 3
    assert place.read_bytes() == good


def test_cache_folder(raw: dict[str, Any], write: Write, tmp_path: Path) -> None:
    path = write(_numbered(raw, 2))
    other = write(_numbered(raw, 3)[::-1], "other.jsonl")
    twin = tmp_path / "folder" / "rows.jsonl"
    twin.parent.mkdir()
    other.rename(twin)
    cache = tmp_path / "cache" / "deep"
    assert len(RowStore(path, cache=cache)) == 2
    assert len(RowStore(twin, cache=cache)) == 3
    assert len(list(cache.glob("rows.jsonl.*.npy"))) == 2
    assert not list(path.parent.glob("*.npy"))


def test_an_index_that_cannot_be_stored_is_kept_in_memory(
    raw: dict[str, Any], write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    store = RowStore(write(_numbered(raw, 2)), cache=blocked)
    assert store.position("q1") == 1
    assert "cannot store the index" in caplog.text


def test_fingerprint_moves_with_the_file(raw: dict[str, Any], write: Write, tmp_path: Path) -> None:
    path = write(_numbered(raw, 3))
    copy = tmp_path / "elsewhere.jsonl"
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(5, 5))
    assert RowStore(copy).fingerprint == RowStore(path).fingerprint


def test_colliding_hashes_are_told_apart(
    raw: dict[str, Any], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slime_ext.data.scan._digest", lambda identity: b"\x01" * 8)
    store = RowStore(write(_numbered(raw, 3)))
    assert [store.position(f"q{number}") for number in range(3)] == [0, 1, 2]


def test_a_store_travels_to_another_process(raw: dict[str, Any], write: Write) -> None:
    store = RowStore(write(_numbered(raw, 2)))
    again = pickle.loads(pickle.dumps(store))
    del store
    assert again.row(1).id == "q1"
