"""`longrl eval --backend slime` as a person starts it: our launcher, slime's rollout manager, W&B
and TensorBoard, two data sets; figures equal to those of the embedded backend's evaluation."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slime_ext.embedded.engine.process import EngineProcess
from slime_ext.embedded.lab.rows import write_rows
from slime_ext.embedded.loop import host_args
from slime_ext.host.evaluate import EXTERNAL_MODULE
from slime_ext.metrics.aggregate import eval_metrics
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.evaluation import evaluate_sets
from slime_ext.rollout.runtime import load_runtime
from tests.slime_host.lab import ROOT

STEP = 7
MARK = "LONGRL_TEST_MARK"
BY_ENGINE = ("cached_prompt_share",)
"""What the engine had computed before depends on when requests arrive."""


@pytest.fixture
def environment(tmp_path: Path, slime_dir: Path) -> dict[str, str]:
    """Variables under which every Python process finds the placeholders, and slime does not stand
    on the path before the recipe puts it there."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("from tests.slime_host import stubs\nstubs.install()\n")
    others = [p for p in os.environ["PYTHONPATH"].split(os.pathsep) if Path(p) != slime_dir]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT), *others]),
        "RAY_ADDRESS": "local",
        "WANDB_MODE": "offline",
        MARK: uuid.uuid4().hex,
    }


@pytest.fixture
def second_engine(engine: str, run: RunFolder, tmp_path: Path) -> Iterator[str]:
    model = Path(load_runtime(run.recipe).recipe.model.path)
    with EngineProcess(model, batch=32, log=tmp_path / "second.log") as process:
        yield process.url


@pytest.fixture
def silent_engine() -> Iterator[tuple[str, threading.Event]]:
    """An engine that never answers a request, and whether it has got one."""
    asked, done = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"model_path": "/models/silent"}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            asked.set()
            done.wait()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    done.set()
    server.shutdown()
    server.server_close()


def command(slime_dir: Path, tmp_path: Path, engines: Sequence[str]) -> list[str]:
    """`longrl eval` on two data sets of the lab, of 6 and 5 rows."""
    rows = tmp_path / "second.jsonl"
    write_rows(rows, rows=5, hops=4, seed=11)
    settings = (
        "data.options.rows=20",
        "data.options.eval_rows=6",
        f'data.eval_sets={{second="{rows}"}}',
        "track.wandb=offline",
        f"slime.path={slime_dir}",
    )
    words = [sys.executable, "-m", "launch.cli.main", "eval", "configs/embedded/lab.toml"]
    words += ["--backend", "slime", "--engines", ",".join(engines), "--step", str(STEP)]
    words += ["--runs", str(tmp_path / "runs")]
    return words + [word for setting in settings for word in ("--set", setting)]


def longrl_eval(
    environment: dict[str, str],
    slime_dir: Path,
    tmp_path: Path,
    engines: Sequence[str],
    *more: str,
) -> subprocess.CompletedProcess[str]:
    words = [*command(slime_dir, tmp_path, engines), *more]
    return subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True)


def left_running(mark: str) -> list[str]:
    """Command lines of the processes that were started under the mark."""
    # W&B's own watcher leaves a second or two after the process it watches.
    deadline = time.monotonic() + 30
    while (found := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def _marked(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def embedded_figures(folder: RunFolder, engine: str) -> dict[str, dict[str, float]]:
    """Metrics by data set, of the same rows through the same engine by the embedded backend."""
    runtime = load_runtime(folder.recipe)
    args = host_args(runtime.recipe, folder)
    args.sglang_router_ip, _, args.sglang_router_port = engine.removeprefix("http://").partition(
        ":"
    )
    found = asyncio.run(evaluate_sets(runtime, args))
    return {name: eval_metrics(result["samples"]) for name, result in found.items()}


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by key, of TensorBoard's event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        key: [(event.step, event.value) for event in events.Scalars(key)]
        for key in events.Tags()["scalars"]
    }


def check_figures(folder: RunFolder, engine: str) -> None:
    """Records, event files and the offline W&B run hold what the embedded backend computes."""
    rows = {row["dataset"]: row for row in read_rows(folder.metrics / "eval.jsonl")}
    figures = embedded_figures(folder, engine)
    assert list(rows) == list(figures) == ["eval", "second"]
    assert [figures[name]["samples"] for name in rows] == [6, 5]
    assert any(0 < figures["eval"][key] < 1 for key in figures["eval"] if "reward/" in key)
    events = scalars(folder.path / "tensorboard")
    tracked = b"".join(path.read_bytes() for path in folder.path.glob("wandb/**/*.wandb"))
    for name, metrics in figures.items():
        assert rows[name]["step"] == STEP
        for key in metrics.keys() - set(BY_ENGINE):
            assert rows[name][key] == pytest.approx(metrics[key], rel=1e-6)
            logged = f"eval/{name}/{key}"
            assert events[logged] == [(STEP, pytest.approx(metrics[key], rel=1e-6))]
            assert logged.encode() in tracked
        # slime's own mean of the rewards stays beside ours.
        assert [step for step, _ in events[f"eval/{name}"]] == [STEP]


@pytest.mark.parametrize("count", [1, 2])
def test_eval_gives_the_figures_of_the_embedded_backend(
    count: int,
    environment: dict[str, str],
    slime_dir: Path,
    tmp_path: Path,
    engine: str,
    second_engine: str,
) -> None:
    if count > 1 and importlib.util.find_spec("slime.utils.accelerator") is not None:
        pytest.skip("after v0.3.1 an engine's Ray actor wants an accelerator where it runs")
    done = longrl_eval(environment, slime_dir, tmp_path, [engine, second_engine][:count])
    assert left_running(environment[MARK]) == []
    folder = RunFolder(tmp_path / "runs" / "lab" / "evaluations" / "1")
    if count > 1 and importlib.util.find_spec(EXTERNAL_MODULE) is None:
        assert done.returncode == 2
        assert "v0.2.4" in done.stdout
        assert "put a router before them" in done.stdout
        assert read_rows(folder.metrics / "eval.jsonl") == []
        return
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    check_figures(folder, engine)
    table = done.stdout[done.stdout.rindex("metric") :]
    assert "reward/outcome" in table
    assert str(folder.path) in table


def test_eval_asks_for_the_gpus_it_will_not_get(
    environment: dict[str, str], slime_dir: Path, tmp_path: Path
) -> None:
    # The lab model has 4 heads.
    more = ("--set", "engine.gpus=4", "--set", "cluster.gpus_per_node=4")
    done = longrl_eval(environment, slime_dir, tmp_path, [], *more)
    assert done.returncode == 2
    assert "asks for 4 GPUs and Ray has 0" in done.stdout
    assert "--engines" in done.stdout
    assert left_running(environment[MARK]) == []


def test_a_term_signal_ends_it_with_all_it_started(
    environment: dict[str, str],
    slime_dir: Path,
    tmp_path: Path,
    silent_engine: tuple[str, threading.Event],
) -> None:
    url, asked = silent_engine
    log = tmp_path / "output.log"
    with log.open("w") as output:
        words = command(slime_dir, tmp_path, [url])
        process = subprocess.Popen(
            words, env=environment, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    assert asked.wait(timeout=300), log.read_text()[-3000:]
    process.terminate()
    assert process.wait(timeout=120) != 0
    assert "serves /models/silent" in log.read_text()
    assert "eval: not evaluated" in log.read_text()
    assert left_running(environment[MARK]) == []
