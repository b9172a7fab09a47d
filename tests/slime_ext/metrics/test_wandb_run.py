"""The id of a W&B run: W&B takes it, it stays, and two runs never have the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import wandb
from hypothesis import given
from hypothesis import strategies as st

from slime_ext.metrics.wandb_run import ID_FILE, MAX_ID, RunIdError, wandb_run_id


@pytest.mark.parametrize(
    "name", ["lab", "a.b_c-1", "x" * 200, "with blank", "o/p:q;r,s#t?u'v", "é"]
)
def test_every_run_folder_has_an_id_that_wandb_takes(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name.replace("/", "%")
    folder.mkdir()
    found = wandb_run_id(folder)
    assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_ID}}}", found)
    assert wandb.Settings(run_id=found).run_id == found
    assert found.startswith(re.sub(r"[^A-Za-z0-9_-]", "-", folder.name)[:55])


def test_it_stays_and_a_run_of_the_same_name_has_another(tmp_path: Path) -> None:
    (tmp_path / "a" / "lab").mkdir(parents=True)
    (tmp_path / "b" / "lab").mkdir(parents=True)
    first = wandb_run_id(tmp_path / "a" / "lab")
    assert wandb_run_id(tmp_path / "a" / "lab") == first
    assert wandb_run_id(tmp_path / "b" / "lab") != first


@given(st.text(alphabet=":;,#?/'% \n", min_size=1, max_size=5))
def test_an_id_that_wandb_refuses_is_refused_by_its_file(
    tmp_path_factory: pytest.TempPathFactory, odd: str
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / ID_FILE).write_text('{"id": "lab' + odd.replace("\n", "\\n") + '"}')
    with pytest.raises(RunIdError, match="put the old id back"):
        wandb_run_id(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": ""}', '{"id": 7}', '{"id": "' + "x" * 65])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / ID_FILE).write_text(text)
    with pytest.raises(RunIdError, match=ID_FILE):
        wandb_run_id(tmp_path)
