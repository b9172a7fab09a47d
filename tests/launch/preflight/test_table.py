"""The report as text and as JSON."""

from __future__ import annotations

import io
import json

from launch.preflight.finding import Finding
from launch.preflight.table import as_json, show_table

LONG = "/data/" + "x" * 300 + " [not markup]"
FINDINGS = [
    Finding("paths", "data", "fail", LONG, "type: longrl prepare RECIPE"),
    Finding("data", "train", "pass", "3 rows", details=("  q1: 4.0",)),
    Finding("judge", "http://j/v1", "skip", "not asked"),
]


def test_a_pipe_gets_whole_lines() -> None:
    out = io.StringIO()
    show_table("lab.toml", FINDINGS, out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "lab.toml"
    assert any(line.startswith("fail") and line.endswith(LONG) for line in lines)
    assert any(line.strip() == "-> type: longrl prepare RECIPE" for line in lines)
    assert lines[lines.index("data, train:") + 1] == "  q1: 4.0"
    assert lines[-1] == "1 pass, 1 fail, 1 skip"


def test_json_holds_everything_and_the_exit_code() -> None:
    report = json.loads(as_json("lab.toml", FINDINGS))
    assert report["exit_code"] == 2
    assert report["recipe"] == "lab.toml"
    assert [one["status"] for one in report["findings"]] == ["fail", "pass", "skip"]
    assert report["findings"][0]["remedy"] == "type: longrl prepare RECIPE"
    assert report["findings"][1]["details"] == ["  q1: 4.0"]
