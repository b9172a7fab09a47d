"""The wish to stop and its answer, as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from slime_ext.metrics.stop_flag import ALARMED, STOPPED, StopFlag, exit_code


def test_a_wish_without_an_answer_is_no_stop(tmp_path: Path) -> None:
    flag = StopFlag(tmp_path)
    assert flag.asked() is None
    flag.ask("job 7")
    assert (flag.asked(), flag.saved_step()) == ("job 7", None)
    flag.answer(3)
    assert flag.saved_step() == 3
    flag.clear()
    assert (flag.asked(), flag.saved_step()) == (None, None)
    flag.clear()


def test_an_empty_file_is_a_wish(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    assert StopFlag(tmp_path).asked() == "somebody"


@pytest.mark.parametrize(
    ("reason", "code"), [("job 7", STOPPED), ("alarm nan: loss", ALARMED), (None, STOPPED)]
)
def test_only_an_alarm_is_left_to_a_person(reason: str | None, code: int) -> None:
    assert exit_code(reason) == code
