"""`longrl eval --backend slime` as a person starts it: our launcher, slime's rollout manager, W&B
and TensorBoard, two data sets; figures equal to those of the embedded backend's evaluation."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
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


def longrl_eval(
    environment: dict[str, str], slime_dir: Path, tmp_path: Path, engines: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    rows = tmp_path / "second.jsonl"
    write_rows(rows, rows=5, hops=4, seed=11)
    settings = (
        "data.options.rows=20",
        "data.options.eval_rows=6",
        f'data.eval_sets={{second="{rows}"}}',
        "track.wandb=offline",
        f"slime.path={slime_dir}",
    )
    command = [sys.executable, "-m", "launch.cli.main", "eval", "configs/embedded/lab.toml"]
    command += ["--backend", "slime", "--engines", ",".join(engines), "--step", str(STEP)]
    command += ["--runs", str(tmp_path / "runs")]
    command += [word for setting in settings for word in ("--set", setting)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)


def left_running(mark: str) -> list[str]:
    """Command lines of the processes that were started under the mark."""
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
    done = longrl_eval(environment, slime_dir, tmp_path, [])
    assert done.returncode == 2
    assert "asks for 8 GPUs and Ray has 0" in done.stdout
    assert "--engines" in done.stdout
    assert left_running(environment[MARK]) == []
