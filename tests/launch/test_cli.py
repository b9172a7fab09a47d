"""The command line on good and bad input: exit codes, and messages with a remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.cli.main import main

LAB = "configs/embedded/lab.toml"
Longrl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def longrl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Longrl:
    """Run `longrl WORDS` in this process; returns exit code, output, errors."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["longrl", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capsys.readouterr()
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return run


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{number}",
            "source": "test",
            "question": "ent1 rel1",
            "context": [
                {"id": f"CHUNK_{c}", "title": "", "text": f"ent{c} rel1 ent{c + 1}"} for c in (1, 2)
            ],
            "answer": "ent2",
            "gold_entities": [["ent2"]],
            "gold_chunks": ["CHUNK_1"],
        }
        | changes
        for number in range(count)
    ]


def write(path: Path, lines: list[Any]) -> str:
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return str(path)


def test_show_names_the_origin_of_every_value(longrl: Longrl) -> None:
    code, out, _ = longrl("show", LAB, "--set", "seed=3")
    assert code == 0
    line = {row.split("│")[1].strip(): row for row in out.splitlines() if row.count("│") == 4}
    assert "--set seed=3" in line["seed"]
    assert "default" in line["loss.kl_coef"]


def test_check_passes_the_shipped_recipe(longrl: Longrl, tmp_path: Path) -> None:
    code, out, _ = longrl("check", LAB, "--set", "data.options.rows=5", "--runs", str(tmp_path))
    assert code == 0
    assert "5 rows: 5 ok" in out
    assert "2.000" in out


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("reward.chunk.btea=3", "did you mean 'beta'?"),
        ("reward.kind=chnk", "did you mean 'chunk'"),
        ("reward.kind=nowhere:Reward", "no module 'nowhere'"),
        ("model.path=builtin:lab-hx", "did you mean 'lab-hs'?"),
        ("data.train=builtin:lob", "did you mean 'lab'?"),
        ("data.options.hop=3", "builtin:lab knows rows, eval_rows, hops"),
        ("model.path=/does/not/exist", "/does/not/exist"),
        ("data.train=/does/not/exist.jsonl", "/does/not/exist.jsonl"),
        ("data.prompt=numbered_chunk", "numbered_chunks"),
    ],
)
def test_a_wrong_setting_ends_with_a_remedy_and_no_traceback(
    longrl: Longrl, override: str, expected: str
) -> None:
    code, out, err = longrl("check", LAB, "--set", override)
    assert code == 2, out + err
    assert expected in out + err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "empty"),
        ([*rows(1), '{"id": "cut", "que'], ":2"),
        ([*rows(1), rows(1)[0]], "q0"),
    ],
    ids=["empty file", "truncated line", "duplicate ids"],
)
def test_a_broken_file_ends_with_its_line(
    longrl: Longrl, tmp_path: Path, lines: list[Any], expected: str
) -> None:
    path = write(tmp_path / "rows.jsonl", lines)
    code, out, err = longrl("check", LAB, "--set", f"data.train={path}")
    assert code == 2, out + err
    assert expected in out
    assert "rows.jsonl" in out


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": ""}, "answer"),
        ({"anwser": "x"}, "anwser"),
        ({"gold_chunks": ["CHUNK_9"]}, "CHUNK_9"),
        ({"gold_entities": [["!!"]]}, "!!"),
        ({"question": 3}, "question"),
        ({"gold_chunks": []}, "gold_chunks"),
        ({"question": "ent1 " * 300}, "limit 180"),
    ],
    ids=[
        "no answer",
        "unknown key",
        "no such chunk",
        "empty entity",
        "type",
        "no gold",
        "too long",
    ],
)
def test_a_bad_row_is_counted_named_and_refused_by_training(
    longrl: Longrl, tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    bad = rows(1, id="bad", **changes)
    path = write(tmp_path / "rows.jsonl", [*rows(3), *bad])
    code, out, err = longrl("check", LAB, "--set", f"data.train={path}")
    assert code == 2, out + err
    assert "4 rows: 3 ok" in out
    assert expected in out
    code, out, err = longrl(
        "train", LAB, "--set", f"data.train={path}", "--runs", str(tmp_path / "runs")
    )
    assert code == 2, out + err
    assert expected in err
    assert not (tmp_path / "runs" / "lab" / "checkpoints").exists()


def test_a_group_of_one_is_refused(longrl: Longrl) -> None:
    code, _, err = longrl("show", LAB, "--set", "rollout.group_size=1")
    assert code == 2
    assert "group_size" in err
