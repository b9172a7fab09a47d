"""Published rows become a file in the project's schema, once, and nothing is lost in silence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.hub.convert import prepare_set
from slime_ext.data.hub.names import parse_hub
from slime_ext.data.hub.stored import data_folder, file_format, prepared_file, read_manifest
from slime_ext.data.importers import importer_for
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

TRACE = parse_hub("hub:THU-KEG/LongTraceRL")
VERL = parse_hub("hub:Guanzheng/LongRLVR-Data")
Make = Callable[..., Any]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_rows_of_longtracerl_come_out_as_their_importer_reads_them(
    kind: str, local_set: Make, trace: Make
) -> None:
    rows = [trace(1), trace(2)]
    folder = local_set(TRACE.repository, rows, kind)
    manifest = prepare_set(TRACE, "longtracerl")
    path = prepared_file(TRACE, "longtracerl")
    store = RowStore(path, file_format(path, "longtracerl"))
    expected = [importer_for("longtracerl").row(raw, 1) for raw in rows]
    ids = [f"longtracerl:train:{number}" for number in (1, 2)]
    assert list(store) == [
        row.model_copy(update={"id": name}) for row, name in zip(expected, ids, strict=True)
    ]
    assert (manifest.rows, manifest.dropped, manifest.commit) == (2, {}, None)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert manifest.sha256 == digest
    assert digest[:16] in path.name
    for name in manifest.sources:
        assert manifest.sources[name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert len(manifest.sources) == 2


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_key_that_only_some_rows_have_is_no_null_in_the_others(
    kind: str, local_set: Make, verl: Make
) -> None:
    local_set(VERL.repository, [verl(1), verl(2, texts=False)], kind)
    prepare_set(VERL, "longrlvr")
    store = RowStore(prepared_file(VERL, "longrlvr"))
    assert [task_from_row(row).chunk_texts for row in store] == [{1: "Ur."}, {1: "Ur. Which?"}]


def test_slices_share_the_rows_out(local_set: Make, trace: Make) -> None:
    local_set(TRACE.repository, [trace(n) for n in range(5)])
    contents = []
    for split in ("train[2:]", "train[:2]"):
        name = parse_hub(f"hub:{TRACE.repository}:{split}")
        prepare_set(name, "longtracerl")
        contents += [r.messages[0].content for r in RowStore(prepared_file(name, "longtracerl"))]
    assert contents == [f"Documents {n}. Which city?" for n in (2, 3, 4, 0, 1)]


def test_rows_left_out_are_counted_by_the_key_that_was_wrong(local_set: Make, trace: Make) -> None:
    bad = [trace(2, label=" "), trace(3, rubrics=("Ur", "...")), trace(4, rubrics=("...",))]
    local_set(TRACE.repository, [trace(1), *bad])
    manifest = prepare_set(TRACE, "longtracerl")
    rubrics = "metadata.extra_reward_info.rubrics[]"
    assert (manifest.rows, manifest.dropped) == (1, {"label": 1, rubrics: 2})
    text = "\n".join(manifest.lines())
    assert f"left out 2 rows: {rubrics}" in text
    assert "row 2: label" in text


def test_a_set_without_a_usable_row_is_an_error(local_set: Make, trace: Make) -> None:
    local_set(TRACE.repository, [trace(1)])
    with pytest.raises(DataError, match=r"none of its 1 rows can be read as longrlvr"):
        prepare_set(TRACE, "longrlvr")
    assert list(data_folder().iterdir()) == []


def test_it_is_converted_once(
    local_set: Make, trace: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_set(TRACE.repository, [trace(1)])
    first = prepare_set(TRACE, "longtracerl")
    monkeypatch.setattr("slime_ext.data.hub.convert.load_rows", lambda name: pytest.fail("again"))
    assert prepare_set(TRACE, "longtracerl") == first


def test_converting_anew_leaves_the_file_of_a_running_run(local_set: Make, trace: Make) -> None:
    local_set(TRACE.repository, [trace(1)])
    prepare_set(TRACE, "longtracerl")
    old = prepared_file(TRACE, "longtracerl")
    local_set(TRACE.repository, [trace(7)])
    prepare_set(TRACE, "longtracerl", refresh=True)
    new = prepared_file(TRACE, "longtracerl")
    assert old != new
    assert "Documents 1." in old.read_text()
    assert "Documents 7." in new.read_text()


@pytest.mark.parametrize("damage", ["cut", "gone", "manifest", "schema"])
def test_a_damaged_conversion_counts_as_not_prepared(
    damage: str, local_set: Make, trace: Make
) -> None:
    local_set(TRACE.repository, [trace(1)])
    manifest = prepare_set(TRACE, "longtracerl")
    file = data_folder() / manifest.file
    record = next(data_folder().glob("*.json"))
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    elif damage == "gone":
        file.unlink()
    elif damage == "manifest":
        record.write_text("{")
    else:
        record.write_text(json.dumps({**json.loads(record.read_text()), "schema": 0}))
    assert read_manifest(TRACE, "longtracerl") is None
    with pytest.raises(DataError, match="type `longrl prepare RECIPE`"):
        prepared_file(TRACE, "longtracerl")


def test_a_split_that_is_not_there_names_those_that_are(local_set: Make, trace: Make) -> None:
    local_set(TRACE.repository, [trace(1)])
    with pytest.raises(DataError, match=r'Unknown split "nope".*train.*check the split'):
        prepare_set(parse_hub(f"hub:{TRACE.repository}:nope"), "longtracerl")


def test_entities_and_chunk_ids_may_stand_in_one_column(local_set: Make, trace: Make) -> None:
    chunks = trace(2)
    chunks["metadata"]["extra_reward_info"].update(rubrics=[1], dataset_name="longrlvr")
    local_set(TRACE.repository, [trace(1), chunks])
    prepare_set(TRACE, "longtracerl")
    rows = list(RowStore(prepared_file(TRACE, "longtracerl")))
    assert [(row.gold_entities, row.gold_chunks) for row in rows] == [
        ([["Ada Byrd"], ["Ur"]], []),
        ([], ["1"]),
    ]


@pytest.mark.parametrize("name", ["data.jsonl", "train.parquet"])
def test_a_file_that_was_cut_is_explained(name: str, local_set: Make, trace: Make) -> None:
    folder = local_set(TRACE.repository, [trace(1)], name.rpartition(".")[2])
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"datasets cannot load it.*whole"):
        prepare_set(TRACE, "longtracerl")


def test_files_of_both_formats_may_stand_in_one_recipe(tmp_path: Path) -> None:
    assert file_format(tmp_path / "x.longrl.jsonl", "longtracerl") == "longrl"
    assert file_format(tmp_path / "aa_lcr.jsonl", "longtracerl") == "longtracerl"
