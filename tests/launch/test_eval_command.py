"""`longrl eval` up to the door of slime: refusals, the folder, the child, the table."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from pytest_httpserver import HTTPServer

from launch import slime_evaluation
from launch.cli.eval import without_figures
from launch.cli.main import main
from slime_ext.embedded.lab.start import builtin_model
from slime_ext.recipe.load import load_recipe

LAB = "configs/embedded/lab.toml"
SMALL = ("--set", "data.options.rows=8", "--set", "data.options.eval_rows=4")
Eval = Callable[..., tuple[int, str, str]]
LAUNCHER = """
import json, os, pathlib, sys
print("launched", os.environ["TENSORBOARD_DIR"], flush=True)
config = pathlib.Path(sys.argv[sys.argv.index("--custom-config-path") + 1])
row = {"step": 3, "attempt": 1, "time": 0.0, "dataset": "eval", "reward/outcome": 0.25}
metrics = config.parent / "metrics"
metrics.mkdir()
(metrics / "eval.jsonl").write_text(json.dumps(row | {"lost_share": LOST}) + "\\n")
sys.exit(CODE)
"""


@pytest.fixture
def longrl_eval(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Eval:
    """Run `longrl eval RECIPE WORDS`; returns exit code, output, errors."""
    (tmp_path / "host" / "slime").mkdir(parents=True)

    def run(*words: str, recipe: str = LAB) -> tuple[int, str, str]:
        host = ("--set", f"slime.path={tmp_path / 'host'}", "--runs", str(tmp_path / "runs"))
        monkeypatch.setattr(sys, "argv", ["longrl", "eval", recipe, *SMALL, *host, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capfd.readouterr()
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return run


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Put a launcher of the given source in the place of the one that needs slime."""

    def put(source: str) -> None:
        (tmp_path / "launcher_for_tests.py").write_text(source)
        monkeypatch.setattr(slime_evaluation, "LAUNCHER", "launcher_for_tests")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


@pytest.fixture
def engine(httpserver: HTTPServer) -> str:
    """An engine that says it serves the lab model."""
    told = {"model_path": str(builtin_model("lab-hs"))}
    httpserver.expect_request("/server_info").respond_with_json(told)
    return f"{httpserver.host}:{httpserver.port}"


@pytest.mark.skipif(importlib.util.find_spec("slime") is not None, reason="slime is installed")
def test_without_slime_both_remedies_are_named(longrl_eval: Eval, tmp_path: Path) -> None:
    code, _, err = longrl_eval("--set", f"slime.path={tmp_path / 'none'}")
    assert code == 2
    assert "slime.path" in err
    assert str(tmp_path / "none") in err
    assert not (tmp_path / "runs").exists()


def test_without_held_out_rows_nothing_is_started(longrl_eval: Eval, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(Path(LAB).read_text().replace('eval = "builtin:lab"\n', ""))
    code, _, err = longrl_eval(recipe=str(recipe))
    assert code == 2
    assert "names no held-out rows" in err
    assert "--set data.eval=" in err
    assert not (tmp_path / "runs").exists()


def test_a_dead_engine_is_found_before_a_folder_is_made(longrl_eval: Eval, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        code, _, err = longrl_eval("--engines", f"http://{address}")
    assert code == 2
    assert address in err
    assert "leave out --engines" in err
    assert not (tmp_path / "runs").exists()


def test_an_engine_with_another_checkpoint_is_refused(
    longrl_eval: Eval, httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request("/server_info").respond_with_json({"model_path": "/models/other"})
    words = ("--checkpoint", str(builtin_model("lab-hs")))
    code, _, err = longrl_eval("--engines", f"{httpserver.host}:{httpserver.port}", *words)
    assert code == 2
    assert "serves /models/other" in err
    assert not (tmp_path / "runs").exists()


def test_a_checkpoint_that_is_no_model_is_refused(longrl_eval: Eval, tmp_path: Path) -> None:
    code, _, err = longrl_eval("--checkpoint", str(tmp_path))
    assert code == 2
    assert "no Hugging Face model folder" in err


def test_the_child_is_shown_kept_and_read(
    longrl_eval: Eval, launcher: Callable[[str], None], engine: str, tmp_path: Path
) -> None:
    launcher(LAUNCHER.replace("LOST", "0.0").replace("CODE", "0"))
    for number in ("1", "2"):
        code, out, _ = longrl_eval("--engines", engine, "--step", "3")
        folder = (tmp_path / "runs" / "lab" / "evaluations" / number).resolve()
        assert code == 0
        said = f"launched {folder / 'tensorboard'}\n"
        assert said in out
        assert (folder / "launcher.log").read_text() == said
        assert "0.25" in out[out.index("metric") :]
        command = orjson.loads((folder / "command.json").read_bytes())
        assert command[:3] == [sys.executable, "-m", "launcher_for_tests"]
        assert command[-4:] == ["--longrl-step", "3", "--longrl-engine", engine]
        recipe = load_recipe(folder / "recipe.toml").recipe
        assert recipe.data.eval == str(folder / "data" / "eval.jsonl")
        # Training rows are not looked at: an evaluation draws none.
        assert list(orjson.loads((folder / "data_report.json").read_bytes())) == ["eval"]


@pytest.mark.parametrize(
    ("lost", "exit_code", "expected", "said"),
    [("1.0", "0", 1, "every response was lost"), ("0.0", "5", 5, "0.25")],
)
def test_a_failure_is_in_the_exit_code(
    longrl_eval: Eval,
    launcher: Callable[[str], None],
    engine: str,
    lost: str,
    exit_code: str,
    expected: int,
    said: str,
) -> None:
    launcher(LAUNCHER.replace("LOST", lost).replace("CODE", exit_code))
    code, out, _ = longrl_eval("--engines", engine)
    assert code == expected
    assert said in out


def test_a_launcher_that_writes_nothing_is_a_failure(
    longrl_eval: Eval, launcher: Callable[[str], None], engine: str
) -> None:
    launcher("")
    code, out, _ = longrl_eval("--engines", engine)
    assert code == 1
    assert "eval: not evaluated" in out


def test_a_term_signal_reaches_the_launcher(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "from launch.foreground import forwarded_to\n"
        "wait = 'import time; print(1, flush=True); time.sleep(60)'\n"
        "command = [sys.executable, '-c', wait]\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)\n"
        "with forwarded_to(child):\n"
        "    child.stdout.readline()\n"
        "    print(child.pid, flush=True)\n"
        "    child.wait()\n"
        "print(child.returncode)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as ours:
        assert ours.stdout is not None
        child = int(ours.stdout.readline())
        ours.terminate()
        assert ours.stdout.read().strip() == str(-signal.SIGTERM)
    assert not Path(f"/proc/{child}").exists()


def test_sets_without_figures_are_named() -> None:
    recipe = load_recipe(Path(LAB), ['data.eval_sets={second="rows.jsonl"}']).recipe
    assert without_figures(recipe, []) == ["eval: not evaluated", "second: not evaluated"]
    rows = [{"dataset": "eval", "lost_share": 0.5}, {"dataset": "second", "lost_share": 1.0}]
    assert without_figures(recipe, rows) == ["second: every response was lost to the engine"]
