"""`longrl watch` as it is typed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from launch.cli.main import main
from tests.launch.watch.records import BEGAN, restarted_run


def longrl(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["longrl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


def test_without_a_terminal_one_view_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted_run(tmp_path)
    code, out, _ = longrl(capsys, "watch", "watched", "--runs", tmp_path)
    assert code == 0
    assert out.count("step 8 of 20") == 1
    assert longrl(capsys, "watch", tmp_path / "watched", "--once")[0] == 0


def test_a_live_view_follows_a_new_attempt_to_the_end_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = restarted_run(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    looks: list[float] = []

    def go_on(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 1:
            run.attempt(BEGAN + 9000)
            run.step(8, BEGAN + 9100)
        if len(looks) == 2:
            run.folder.write_json(run.folder.summary, {"start": {}, "end": {}})

    monkeypatch.setattr(time, "sleep", go_on)
    code, out, _ = longrl(capsys, "watch", "watched", "--runs", tmp_path, "--every", "0.5")
    assert code == 0
    assert looks == [0.5, 0.5]
    assert "step 8 of 20" in out
    assert "attempt 3, 2 restarts" in out
    assert "finished" in out.split("step 9 of 20")[-1]


def test_what_is_no_run_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = longrl(capsys, "watch", "nowhere", "--runs", tmp_path)
    assert code == 2
    assert "no run 'nowhere'" in err
    code, _, err = longrl(capsys, "watch", tmp_path)
    assert code == 2
    assert "is no run folder" in err
