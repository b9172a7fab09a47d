"""`longrl train --backend slime`: the command as text, and a child process in the foreground."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.arguments import command_line
from launch.cli.main import main
from launch.foreground import FIRST_LOCAL, local_job, shown
from launch.job.stacks import marked_processes
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.stop_flag import ALARMED
from tests.launch.recipes import DENSE, dense_recipe

ROOT = Path(__file__).parents[2]
LAB = ROOT / "configs" / "embedded" / "lab.toml"

FAKE_TRAINER = """
import json, os, pathlib, signal, sys, time
argv = sys.argv[1:]
config = pathlib.Path(argv[argv.index("--custom-config-path") + 1])
seen = pathlib.Path(os.environ["SEEN"])
signal.signal(signal.SIGTERM, lambda *_: (seen.with_suffix(".stopped").touch(), sys.exit(7)))
seen.write_text(json.dumps({"argv": argv, "config": config.read_text(), "env": dict(os.environ)}))
time.sleep(float(os.environ.get("LASTS", "0")))
sys.exit(3)
"""


def longrl(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    sys.argv = ["longrl", *map(str, words)]
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A checkout whose train.py records what it was given, and the words of the command for it."""
    (tmp_path / "slime").mkdir()
    (tmp_path / "slime" / "train.py").write_text(FAKE_TRAINER)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    from slime_ext.embedded.lab.start import builtin_model

    recipe = tmp_path / "run.toml"
    recipe.write_text(DENSE)
    small = {
        "model.path": builtin_model("lab-hs"),
        "data.train": LAB,
        "slime.path": tmp_path / "slime",
        "slime.megatron_path": "/opt/megatron",
        "cluster.python": sys.executable,
        "cluster.nodes": 1,
        "parallel.tp": 2,
        "parallel.pp": 1,
        "parallel.cp": 1,
        "track.wandb": "off",
        "engine.gpus": 2,
    }
    changes = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    text = recipe.read_text().replace('facts = "Qwen3-4B-Thinking-2507"\n', "")
    recipe.write_text(text.replace('{ aa-lcr = "/data/aa_lcr.jsonl" }', "{}"))
    return ["train", recipe, *changes, "--runs", tmp_path / "runs"]


def test_the_shown_command_is_the_one_that_runs(tmp_path: Path) -> None:
    recipe, run = dense_recipe(tmp_path, 'track.project="a b"'), tmp_path / "runs" / "dense"
    words = shlex.split(shown(recipe, run).replace("\\\n", " "))
    program = words.index("python3")
    assert words[program:] == command_line(recipe, run)
    assert words[0] == "env"
    assert f"TENSORBOARD_DIR={run}/tensorboard" in words[:program]


def test_a_dry_run_prints_one_flag_a_line_and_writes_nothing(
    host: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = longrl(capsys, *host, "--dry-run")
    assert code == 0
    assert "\n    --rollout-batch-size 16 \\\n" in out
    assert all(line.endswith("\\") for line in out.splitlines()[:-1])
    assert "nothing was written" in err
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_of_an_embedded_recipe_says_what_to_add(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    code, _, err = longrl(capsys, "train", LAB, "--dry-run")
    assert code == 2
    assert "--backend slime" in err


def test_slime_runs_in_the_run_folder_and_its_exit_code_is_ours(
    host: list[object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import json

    code, out, err = longrl(capfd, *host)
    assert code == 3, out + err
    seen = json.loads((tmp_path / "seen.json").read_text())
    run = tmp_path / "runs" / "dense"
    assert seen["config"] == f'longrl_recipe: "{run / "recipe.toml"}"\n'
    assert (run / "recipe.toml").is_file()
    assert seen["argv"][seen["argv"].index("--save") + 1] == str(run / "checkpoints")
    assert seen["env"]["PYTHONPATH"].startswith(f"{tmp_path / 'slime'}:/opt/megatron")
    assert seen["env"]["LONGRL_ATTEMPT"] == "1"
    assert "Ray is ready" in out
    assert "starts from the base model; 200 of 200 rollouts remain" in out
    assert not list(run.glob(".token-*"))
    assert marked_processes(seen["env"]["LONGRL_JOB"]) == []


def test_records_are_merged_and_an_alarm_stops_one_attempt_alone(
    host: list[object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slime" / "train.py").write_text(
        "import os, pathlib, sys\n"
        "from torch.utils.tensorboard import SummaryWriter\n"
        "from slime_ext.metrics.stop_flag import StopFlag\n"
        "writer = SummaryWriter(os.environ['TENSORBOARD_DIR'])\n"
        "for step in range(3):\n"
        "    writer.add_scalar('train/loss', step / 4, step)\n"
        "writer.close()\n"
        "stop = StopFlag(pathlib.Path(os.environ['LONGRL_RUN']))\n"
        "assert stop.asked() is None and stop.saved_step() is None\n"
        "if os.environ['LONGRL_ATTEMPT'] == '1':\n"
        "    stop.ask('alarm truncation: all cut')\n"
        "    stop.answer(4)\n"
        "    sys.exit(1)\n"
    )
    code, out, err = longrl(capfd, *host)
    assert code == ALARMED, out + err
    assert "saved up to rollout 4 on request of alarm truncation" in out
    rows = read_rows(tmp_path / "runs" / "dense" / "metrics" / "train.jsonl")
    assert [(row["step"], row["loss"]) for row in rows] == [(0, 0.0), (1, 0.25), (2, 0.5)]
    assert longrl(capfd, *host)[0] == 0


def test_the_first_signal_asks_to_save_and_the_second_ends_everything(
    host: list[object], tmp_path: Path
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "launch.cli.main", *map(str, host)],
        cwd=ROOT,
        env={**os.environ, "LASTS": "600"},
    )
    seen, wish = tmp_path / "seen.json", tmp_path / "runs" / "dense" / "stop"
    until(seen.is_file)
    child.send_signal(signal.SIGINT)
    until(wish.is_file)
    assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=120) == 143
    assert marked_processes(str(local_job(child.pid))) == []


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_several_nodes_need_an_allocation(
    host: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    code, _, err = longrl(capsys, *host, "--set", "cluster.nodes=2")
    assert code == 2
    assert "needs 2 nodes and this is no SLURM allocation" in err
    assert "salloc --nodes=2" in err
    assert not (tmp_path / "runs").exists()


def test_without_slime_the_error_says_where_it_was_looked_for(
    host: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = longrl(capsys, *host, "--set", "slime.path=/nowhere")
    assert code == 2
    assert "slime.path = '/nowhere' holds no train.py" in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("parallel.tp=2", "parallel.tp = 2: the embedded trainer runs in one process"),
        ("parallel.dp=4", "parallel.dp = 4"),
    ],
)
def test_the_embedded_backend_refuses_a_layout_of_several(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    override: str,
    expected: str,
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    code, _, err = longrl(capsys, "train", LAB, "--set", override, "--runs", tmp_path)
    assert code == 2
    assert expected in err
    assert list(tmp_path.iterdir()) == []


def test_the_embedded_backend_refuses_a_recipe_of_slime(tmp_path: Path) -> None:
    from slime_ext.embedded.run import train
    from slime_ext.recipe.errors import RecipeError

    with pytest.raises(RecipeError, match="--backend slime"):
        train(dense_recipe(tmp_path), tmp_path, fresh=False)


def test_a_dry_run_needs_no_torch() -> None:
    code = (
        "import sys, launch.foreground; print(sorted({'torch', 'transformers'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_runs_without_a_job_have_numbers_and_ports_of_their_own() -> None:
    numbers = [local_job(pid) for pid in range(1, 2000)]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > FIRST_LOCAL
    assert {number % 640 for number in numbers} == set(range(480, 640))
