"""`longrl status`, `logs`, `cancel` and `submit` with and without SLURM."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.cli.main import main
from launch.slurm.logs import follow, log_of
from launch.slurm.progress import progress
from slime_ext.metrics.records import Records
from tests.launch.recipes import DENSE
from tests.launch.slurm.programs import Programs, hide, line

Longrl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def longrl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Longrl:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["longrl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    path = tmp_path / "recipe.toml"
    path.write_text(DENSE)
    return path


def test_status_shows_jobs_and_steps(run: Path, programs: Programs, longrl: Longrl) -> None:
    programs.add("squeue", line("12", "RUNNING", run / "job.sh"))
    programs.add("sacct", "11|TIMEOUT|TimeLimit|1-00:00:00|4|n[1-4]|0:0\n")
    records = Records(run)
    for step in (0, 1, 2, 2):
        records.write("rollout", step, {"reward/total": 0.5})
    code, out, _ = longrl("status", "dense", "--runs", run.parent)
    assert code == 0
    assert [one for one in ("11", "TIMEOUT", "12", "RUNNING", "1-00:00:00") if one not in out] == []
    assert "3 of 200, 1 done again" in out
    code, out, _ = longrl("status", run)
    assert "RUNNING" in out


def test_status_without_slurm_reads_the_records(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longrl: Longrl
) -> None:
    hide(monkeypatch, tmp_path)
    code, out, _ = longrl("status", "dense", "--runs", run.parent)
    assert code == 0
    assert "its last job is 12" in out
    assert "no squeue on this machine" in out
    assert "0 of 200" in out


def test_status_of_all_runs(run: Path, programs: Programs, longrl: Longrl) -> None:
    programs.add("squeue", line("12", "PENDING", run / "job.sh"))
    code, out, _ = longrl("status", "--runs", run.parent)
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["dense", "12", "PENDING"]


@pytest.mark.parametrize("command", ["status", "logs", "cancel", "bundle"])
def test_a_run_that_is_none_is_answered_with_the_nearest(
    command: str, run: Path, longrl: Longrl
) -> None:
    code, _, err = longrl(command, "dnese", "--runs", run.parent)
    assert code == 2
    assert "did you mean 'dense'?" in err


def test_progress_of_an_ended_run(run: Path) -> None:
    (run / "summary.json").write_text("{}")
    assert progress(run)["ended"].startswith("yes")


def test_logs_prints_the_newest_output(run: Path, longrl: Longrl) -> None:
    code, _, err = longrl("logs", run)
    assert code == 2
    assert "job 12 has printed nothing yet" in err
    log_of(run, "11").write_text("first\n")
    assert longrl("logs", run)[1] == "first\n"
    log_of(run, "12").write_text("second\n")
    assert longrl("logs", run)[1] == "second\n"


def test_logs_of_one_attempt_over_requeues(run: Path, longrl: Longrl) -> None:
    starts = [
        f"job 11: starts on n1, restart {n}\nRay\nattempt {n + 1}, Ray job x\nend {n + 1}\n"
        for n in range(2)
    ]
    log_of(run, "11").write_text("".join(starts))
    log_of(run, "12").write_text(starts[0].replace("attempt 1", "attempt 3"))
    assert longrl("logs", run, "--attempt", 2)[1] == starts[1]
    assert "attempt 3" in longrl("logs", run, "--attempt", 3)[1]
    code, _, err = longrl("logs", run, "--attempt", 9)
    assert code == 2
    assert "there are: 1, 2, 3" in err


def test_following_goes_from_job_to_job_until_the_last_has_ended(run: Path) -> None:
    alive = [["11", "12"], ["11", "12"], ["12"], ["12"], []]
    texts = iter(["one\n", "two\n", "", "three\n"])
    log_of(run, "11").write_text("zero\n")

    def sleep(_: float) -> None:
        job = "11" if len(alive) > 2 else "12"
        with log_of(run, job).open("a") as file:
            file.write(next(texts, ""))

    seen = "".join(follow(run, lambda: alive.pop(0) if alive else [], sleep))
    assert seen.startswith("zero\none\ntwo\n")
    assert seen.count("zero") == 1


def test_following_without_slurm_ends(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longrl: Longrl
) -> None:
    hide(monkeypatch, tmp_path)
    log_of(run, "12").write_text("second\n")
    code, out, err = longrl("logs", run, "-f")
    assert (code, out) == (0, "second\n")
    assert "no SLURM here" in err


def test_cancel_names_the_jobs(run: Path, programs: Programs, longrl: Longrl) -> None:
    programs.add("squeue", line("12", "RUNNING", run / "job.sh"))
    programs.add("scancel")
    assert "cancelled job 12 of dense" in longrl("cancel", run)[1]


def test_each_combination_is_a_run_of_its_own(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path
) -> None:
    programs.add("sbatch", "77\n")
    programs.add("squeue")
    code, out, err = longrl(
        *("submit", recipe, "--runs", tmp_path / "r", "--seed", "0,1"),
        *("--set", "optimiser.lr=1e-6,2e-6", "--set", "loss.icepop=[0.5, 2.0]"),
    )
    assert code == 0, err
    names = [f"dense-lr{lr}-seed{seed}" for lr in ("1e-6", "2e-6") for seed in (0, 1)]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == names
    assert [name for name in names if name not in out] == []
    assert len(programs.calls("sbatch")) == 4


def test_nothing_is_submitted_where_one_combination_is_wrong(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path
) -> None:
    programs.add("sbatch", "77\n")
    code, _, err = longrl(
        "submit", recipe, "--runs", tmp_path / "r", "--set", "rollout.prompts=16,-1"
    )
    assert code == 2
    assert "rollout.prompts" in err
    assert programs.calls("sbatch") == []


def test_a_chain_waits_for_the_job_before_and_does_not_requeue(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path
) -> None:
    programs.add("sbatch", "77\n")
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r", "--chain", 3)
    assert code == 0, err
    script = tmp_path / "r" / "dense" / "job.sh"
    assert programs.calls("sbatch") == [
        f"sbatch --parsable {script}",
        f"sbatch --parsable --dependency=afterany:77 {script} chained",
        f"sbatch --parsable --dependency=afterany:77 {script} chained",
    ]
    assert "--no-requeue" in script.read_text()
    assert "scontrol requeue" not in script.read_text()
    assert (script.parent / "jobs.txt").read_text() == "77\n" * 3


def test_a_run_with_a_waiting_job_is_not_submitted_again(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path
) -> None:
    programs.add("sbatch", "77\n")
    programs.add("squeue")
    runs = tmp_path / "r"
    assert longrl("submit", recipe, "--runs", runs)[0] == 0
    programs.add("squeue", line("77", "PENDING", runs / "dense" / "job.sh"))
    code, _, err = longrl("submit", recipe, "--runs", runs)
    assert code == 2
    assert "job 77 of dense is PENDING" in err
    assert len(programs.calls("sbatch")) == 1


def test_without_slurm_submit_says_what_to_type(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longrl: Longrl
) -> None:
    hide(monkeypatch, tmp_path)
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r")
    assert code == 2
    assert "no sbatch on this machine" in err
    assert "longrl train RECIPE --backend slime" in err


def test_sbatchs_own_words_are_handed_on(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path
) -> None:
    programs.add("sbatch", code=1, error="sbatch: error: invalid partition specified: nope")
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r")
    assert code == 2
    assert "sbatch refused the job: sbatch: error: invalid partition specified: nope" in err
    assert not (tmp_path / "r" / "dense" / "jobs.txt").exists()


def test_missing_keys_are_named_before_anything_is_written(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("WANDB_API_KEY")
    changes = ("--set", 'cluster.secrets=["OTHER_KEY"]')
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r", *changes)
    assert code == 2
    assert "OTHER_KEY, WANDB_API_KEY" in err
    assert not (tmp_path / "r").exists()
    keys = tmp_path / "keys"
    keys.write_text("OTHER_KEY=a\nexport WANDB_API_KEY='b'\n")
    changes += ("--set", f"cluster.secrets_file={keys}")
    keys.chmod(0o644)
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r", *changes)
    assert code == 2
    assert f"chmod 600 {keys}" in err
    keys.chmod(0o600)
    programs.add("sbatch", "77\n")
    assert longrl("submit", recipe, "--runs", tmp_path / "r", *changes)[0] == 0


@pytest.mark.parametrize("name", ["a b", "a/b", "../x", ".hidden", ""])
def test_a_name_that_is_no_folder_is_refused(name: str, recipe: Path, longrl: Longrl) -> None:
    code, _, err = longrl("submit", recipe, "--set", f"name={json.dumps(name)}", "--dry-run")
    assert code == 2
    assert "name" in err
    assert "Traceback" not in err


def test_a_full_disk_is_said_without_a_traceback(
    recipe: Path, programs: Programs, longrl: Longrl, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    programs.add("sbatch", "77\n")

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = longrl("submit", recipe, "--runs", tmp_path / "r")
    assert code == 2
    assert "No space left on device; free space" in err
    assert programs.calls("sbatch") == []
