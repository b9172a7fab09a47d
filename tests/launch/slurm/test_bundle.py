"""A bundle holds what a bug report needs, no key and no text."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.cli.main import main
from launch.slurm.bundle import bundle
from launch.slurm.redact import REMOVED, redact_keys, redact_log
from slime_ext.metrics.records import Records

KEYS = (
    "sk-planted0123456789abcdef",
    "hf_abcdefghijklmnopqrstuvwx",
    "0123456789abcdef0123456789abcdef01234567",
    "AKIAABCDEFGHIJKLMNOP",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
)
TEXT = "In the year of the flood the engineer was born in Osmere."
OWN = "correct horse battery"


@pytest.fixture
def full_run(run: Path) -> Path:
    """A run with keys in its logs and texts in its rollouts."""
    lines = [f"using {key} here" for key in KEYS]
    lines += [f"JUDGE_KEY={OWN}", f"told {OWN}", "Authorization: Bearer abcdefghijkl"]
    lines += ["http://me:hunter2@judge:30000/v1", f"First rollout sample: ['{TEXT}']"]
    lines += [f"prompt {TEXT * 50}", "step 3: loss 0.25"]
    (run / "logs" / "job-11.out").write_text("\n".join(lines))
    for name in ("rollouts", "data", "hf", "checkpoints", "tensorboard", "wandb"):
        (run / name).mkdir()
        (run / name / "rows.jsonl").write_text(TEXT)
    (run / ".token-11").write_text("token")
    Records(run).write("rollout", 0, {"reward/total": 0.5})
    Records(run).event("start")
    attempt = run / "attempts" / "1" / "logs"
    attempt.mkdir(parents=True)
    (attempt / "stacks_1.txt").write_text(f"key {KEYS[0]}")
    (attempt.parent / "env.json").write_text("{}")
    (attempt.parent / "command.json").write_text('["train.py"]')
    return run


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {
            member.name: archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive.getmembers()
        }


def test_a_bundle_holds_no_key_and_no_text(
    full_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"JUDGE_KEY={OWN}\n")
    keys.chmod(0o600)
    recipe = (full_run / "recipe.toml").read_text()
    (full_run / "recipe.toml").write_text(
        recipe.replace("[cluster]\n", f'[cluster]\nsecrets_file = "{keys}"\n', 1)
    )
    out = tmp_path / "report.tar.gz"
    monkeypatch.setattr(sys, "argv", ["longrl", "bundle", str(full_run), str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    whole = "\n".join(contents(out).values())
    for secret in (*KEYS, OWN, "abcdefghijkl", "hunter2", TEXT, "token\n"):
        assert secret not in whole, secret
    assert "step 3: loss 0.25" in whole


def test_it_holds_what_a_report_needs_and_nothing_else(full_run: Path, tmp_path: Path) -> None:
    made = bundle(full_run, tmp_path / "b.tar.gz")
    names = {name.removeprefix("dense/") for name in contents(made.path)}
    assert names == {
        "recipe.toml",
        "submitted.toml",
        "job.sh",
        "jobs.txt",
        "events.jsonl",
        "metrics/rollout.jsonl",
        "attempts/1/env.json",
        "attempts/1/command.json",
        "attempts/1/logs/stacks_1.txt",
        "logs/job-11.out",
    }
    assert made.changed_lines >= len(KEYS)
    assert '"reward/total":0.5' in contents(made.path)["dense/metrics/rollout.jsonl"]
    assert "temperature = 1.0" in contents(made.path)["dense/recipe.toml"]


@pytest.mark.parametrize(
    "line",
    [
        "step 3: loss 0.25, 128 tokens",
        "max_tokens_per_gpu = 8192",
        "/shared/runs/longtracerl-qwen3-4b/checkpoints/iter_0000019",
        "http://judge:30000/v1",
    ],
)
def test_ordinary_lines_stay(line: str) -> None:
    assert redact_log(line) == (line, 0)


@given(st.text(), st.text(min_size=4))
def test_a_known_value_never_survives(before: str, secret: str) -> None:
    if secret not in REMOVED:
        assert secret not in redact_keys(before + secret + before, [secret]).replace(REMOVED, "\0")
