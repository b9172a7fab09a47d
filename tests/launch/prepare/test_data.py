"""What `longrl prepare` does about the files of `[data]` before anything is fetched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from launch.prepare.data import COPIES, prepare_data
from launch.prepare.space import MARGIN
from slime_ext.data.errors import DataError
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import DataSection

SIZE = 1000


@pytest.fixture(autouse=True)
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local copy of one set, of 1,000 bytes, and a cache of this test's own."""
    folder = tmp_path / "copies" / "owner" / "set"
    folder.mkdir(parents=True)
    (folder / "data.jsonl").write_bytes(b" " * SIZE)
    monkeypatch.setenv("LONGRL_HUB_FOLDER", str(tmp_path / "copies"))
    monkeypatch.setenv("LONGRL_CACHE", str(tmp_path / "cache"))
    return folder


def section(train: str, **others: object) -> DataSection:
    return DataSection.model_validate({"train": train, "max_prompt_tokens": 8, **others})


@pytest.mark.parametrize("spare", [-1, 1])
def test_room_is_asked_for_three_copies(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    free = int(COPIES * SIZE * MARGIN) + spare
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    monkeypatch.setattr(
        "launch.prepare.data.prepare_set", lambda *asked: SimpleNamespace(lines=lambda: ["done"])
    )
    if spare > 0:
        assert prepare_data(section("hub:owner/set")) == ["data: done"]
    else:
        with pytest.raises(ExplainedError, match=r"data set owner/set needs .*LONGRL_CACHE"):
            prepare_data(section("hub:owner/set"))


def test_a_misspelt_last_name_does_not_wait_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("launch.prepare.data.prepare_set", lambda *asked: pytest.fail("fetched"))
    with pytest.raises(DataError, match="write hub:OWNER/NAME"):
        prepare_data(section("hub:owner/set", eval_sets={"last": "hub:owner"}))


def test_a_file_that_is_absent_and_not_published_is_said(tmp_path: Path) -> None:
    there = tmp_path / "rows.jsonl"
    there.write_text("{}\n")
    lines = prepare_data(section(str(there), eval="builtin:lab", eval_sets={"x": "nowhere.jsonl"}))
    assert len(lines) == 1
    assert "nowhere.jsonl is not there" in lines[0]
