"""What squeue, sacct and scancel are asked, and what is made of their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.slurm.queue import QueueError, accounted, cancel, job_ids, queued
from tests.launch.slurm.programs import Programs, hide, line


def test_only_jobs_with_the_runs_script_are_its_own(run: Path, programs: Programs) -> None:
    other = run.parent / "other" / "job.sh"
    text = line("11", "RUNNING", run / "job.sh") + line("12", "RUNNING", other)
    programs.add("squeue", text + line("13", "RUNNING", run / "job.sh"))
    assert [(job.id, job.state, job.nodes) for job in queued(run)] == [
        ("11", "RUNNING", "2: n[1-2]")
    ]


def test_a_chained_job_is_its_own_too(run: Path, programs: Programs) -> None:
    script = f"{run / 'job.sh'} chained"
    programs.add("squeue", line("12", "PENDING", Path(script), "Dependency"))
    assert [(job.id, job.reason, job.active) for job in queued(run)] == [("12", "Dependency", True)]


def test_cancel_ends_waiting_jobs_before_running_ones(run: Path, programs: Programs) -> None:
    script = run / "job.sh"
    programs.add("squeue", line("11", "RUNNING", script) + line("12", "PENDING", script))
    programs.add("scancel")
    assert cancel(run) == ["11", "12"]
    assert programs.calls("scancel") == ["scancel 12 11"]


def test_cancel_of_an_ended_run_calls_nothing(run: Path, programs: Programs) -> None:
    programs.add("squeue", line("11", "COMPLETED", run / "job.sh"))
    programs.add("scancel")
    assert cancel(run) == []
    assert programs.calls("scancel") == []


def test_a_run_that_was_never_submitted_asks_nothing(run: Path, programs: Programs) -> None:
    (run / "jobs.txt").unlink()
    programs.add("squeue", code=1)
    assert job_ids(run) == []
    assert queued(run) == []
    assert programs.calls("squeue") == []


def test_slurms_own_words_are_handed_on(run: Path, programs: Programs) -> None:
    programs.add("squeue", code=1, error="slurm_load_jobs error: Unable to contact controller")
    with pytest.raises(QueueError, match="Unable to contact controller"):
        queued(run)


def test_without_slurm_the_error_says_where_to_go(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, tmp_path)
    with pytest.raises(QueueError, match="no squeue on this machine; run this on a login node"):
        cancel(run)


def test_accounts_are_read_and_their_absence_is_no_error(programs: Programs) -> None:
    programs.add("sacct", "11|CANCELLED by 0|None|00:10:00|4|n[1-4]|0:15\n")
    (job,) = accounted(["11", "12"])
    assert (job.id, job.state, job.exit_code, job.active) == ("11", "CANCELLED", "0:15", False)
    assert "--jobs=11,12" in programs.calls("sacct")[0]
    programs.add("sacct", code=1, error="Slurm accounting storage is disabled")
    assert accounted(["11"]) == []
