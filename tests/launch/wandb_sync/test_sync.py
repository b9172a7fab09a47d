"""`longrl sync` with the real client of wandb, against a server that keeps what it is sent."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from launch.cli.main import main
from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.wandb_run import wandb_run_id
from tests.fakes.wandb_file import axes, complete, config_of, history, offline_files, run_ids
from tests.fakes.wandb_server import KEY, FakeWandb
from tests.launch.wandb_sync.records import make_run, write_steps

PLANTED = "planted-judge-key"


def sync(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Exit code of `longrl sync`."""
    monkeypatch.setattr("sys.argv", ["longrl", "sync", str(folder.path), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def shown(rows: list[dict[str, Any]]) -> list[tuple[int, Any, Any]]:
    return [(r["_step"], r["rollout/reward/total"], r["rollout/step"]) for r in rows]


def test_a_run_is_uploaded_as_one_and_goes_on_where_it_was(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JUDGE_KEY", PLANTED)
    folder = make_run(tmp_path, 'cluster.secrets=["JUDGE_KEY"]', f"track.group=by-{PLANTED}")
    run = wandb_run_id(folder.path)
    assert sync(folder, monkeypatch) == 0
    assert "4 rows sent" in (said := capsys.readouterr().out)
    assert "step 4 is not sent" in said
    assert shown(server.history(run)) == [(0, 0.1, 0), (1, 1.1, 1), (2, 2.2, 2), (3, 3.2, 3)]
    assert list(server.rows) == [run]

    assert sync(folder, monkeypatch) == 0
    assert "0 rows sent" in capsys.readouterr().out
    assert len(server.history(run)) == 4

    write_steps(folder, 3, range(3, 6))
    folder.write_json(folder.summary, {"end": {"accuracy": 0.75}, "steps": 6})
    assert sync(folder, monkeypatch) == 0
    assert "recorded again since they were sent: steps 3" in capsys.readouterr().out
    assert shown(server.history(run))[3:] == [(3, 3.2, 3), (4, 4.3, 4), (5, 5.3, 5)]
    assert server.summary[run]["end/accuracy"] == 0.75
    assert server.summary[run]["attempts"] == 3
    assert server.config[run]["rollout"]["value"]["steps"] > 0
    assert KEY.encode() not in server.raw


def test_the_config_holds_no_secret(
    server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", PLANTED)
    endpoint = f'[{{url="http://judge/v1?key={PLANTED}",key_env="JUDGE_KEY"}}]'
    folder = make_run(
        tmp_path,
        "outcome.kind=judge",
        "outcome.judge.model=m",
        f"outcome.judge.endpoints={endpoint}",
    )
    assert sync(folder, monkeypatch, "--all") == 0
    assert len(server.history(wandb_run_id(folder.path))) == 5
    assert PLANTED.encode() not in server.raw
    assert b"key_env" in server.raw


def test_rows_the_server_lost_are_sent_again_and_none_twice(
    server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path)
    run = wandb_run_id(folder.path)
    assert sync(folder, monkeypatch) == 0
    del server.rows[run][3], server.rows[run][2]
    server.summary[run]["_step"] = 1
    write_steps(folder, 3, range(5, 7))
    assert sync(folder, monkeypatch, "--all") == 0
    assert [row["_step"] for row in server.history(run)] == list(range(7))
    (folder.path / "wandb_sync.json").unlink()
    assert sync(folder, monkeypatch, "--all") == 0
    assert [row["_step"] for row in server.history(run)] == list(range(7))


def test_anew_makes_another_run_with_the_newest_values(
    server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path, "track.wandb=online")
    old = wandb_run_id(folder.path)
    assert sync(folder, monkeypatch) == 2
    assert sync(folder, monkeypatch, "--anew", "--all") == 0
    new = wandb_run_id(folder.path)
    assert new != old
    assert list(server.rows) == [new]
    assert len(server.history(new)) == 5


def test_rows_that_are_refused_are_not_taken_for_sent(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("launch.wandb_sync.sync.CONFIRM_S", 0.1)
    folder = make_run(tmp_path)
    server.refuse_rows = True
    assert sync(folder, monkeypatch) == 2
    assert "has 0 of 4 rows" in capsys.readouterr().err
    server.refuse_rows = False
    assert sync(folder, monkeypatch) == 0
    assert len(server.history(wandb_run_id(folder.path))) == 4


def test_a_server_that_stops_answering_ends_it_in_bounded_time(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_run(tmp_path)
    server.silent_rows = True
    assert sync(folder, monkeypatch, "--limit-s", "6") == 2
    assert "within 6 s" in capsys.readouterr().err
    processes = [(p / "cmdline").read_bytes() for p in Path("/proc").glob("[0-9]*") if _mine(p)]
    assert not [one for one in processes if b"longrl-sync-" in one]


def _mine(process: Path) -> bool:
    try:
        return bool((process / "cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize(
    ("key", "says"),
    [("", "there is no key"), ("f" * 40, "refuses the key"), ("short", "refuses the key")],
)
def test_a_missing_or_wrong_key_is_said(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: str,
    says: str,
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", key)
    assert sync(make_run(tmp_path), monkeypatch) == 2
    said = capsys.readouterr().err
    assert says in said
    assert server.url in said
    assert not key or key not in said
    assert server.rows == {}


def test_a_key_of_wandb_login_is_found(
    server: FakeWandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    place = server.url.removeprefix("http://")
    (tmp_path / "netrc").write_text(f"machine {place}\n  login user\n  password {KEY}\n")
    folder = make_run(tmp_path)
    assert sync(folder, monkeypatch) == 0
    assert len(server.history(wandb_run_id(folder.path))) == 4


def test_no_server_is_said_and_the_recipes_own_is_asked(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{one.getsockname()[1]}"
        assert sync(make_run(tmp_path, f"track.host={dead}"), monkeypatch) == 2
    assert f"no W&B server answers at {dead}" in capsys.readouterr().err
    assert server.raw == b""


def test_what_is_no_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sync(RunFolder(tmp_path / "nothing"), monkeypatch) == 2
    assert "no run" in capsys.readouterr().err
    folder = make_run(tmp_path)
    for path in folder.metrics.iterdir():
        path.unlink()
    assert sync(folder, monkeypatch) == 2
    assert "no step was finished" in capsys.readouterr().err


def test_offline_writes_one_run_that_wandb_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    folder = make_run(tmp_path)
    Records(folder.path).event("stopped")
    assert sync(folder, monkeypatch, "--offline") == 0
    assert re.search(r"5 rows written +\S+offline-run-", capsys.readouterr().out)
    (path,) = offline_files(folder.path)
    found = complete(path)
    assert run_ids(found) == {wandb_run_id(folder.path)}
    assert shown(history(found)) == [
        (0, 0.1, 0),
        (1, 1.1, 1),
        (2, 2.2, 2),
        (3, 3.2, 3),
        (4, 4.2, 4),
    ]
    assert axes(found)["train/*"] == "train/step"
    assert config_of(found)["track"]["wandb"] == "offline"
    assert KEY.encode() not in b"".join(p.read_bytes() for p in path.parent.rglob("*.*"))


def test_the_dashboard_is_saved_and_then_replaced(
    server: FakeWandb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_run(tmp_path)
    assert sync(folder, monkeypatch, "--dashboard") == 0
    assert f"dashboard: {server.url}/me/longrl?nw=" in capsys.readouterr().out
    assert sync(folder, monkeypatch, "--dashboard") == 0
    first, second = server.views
    assert second["id"] == "Vg=="
    assert second["name"] == first["name"]
    assert (first["entityName"], first["projectName"]) == ("me", "longrl")
    assert json.loads(second["spec"])["section"]["panelBankConfig"]["sections"][0]["panels"]
