"""Engines on a bad day, under slime's own rollout: one dies, one refuses to abort, all are gone."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_ext.embedded.engine.process import EngineProcess
from slime_ext.host.features import logging_module
from slime_ext.host.types import Sample
from slime_ext.metrics.records import read_rollouts, read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout import client, engine_counts
from slime_ext.rollout.lost import NothingSampledError
from slime_ext.rollout.runtime import load_runtime
from slime_ext.rollout.workers import NoEngineLeftError
from tests.fakes.engine import FakeEngine, answer, fake_engine
from tests.slime_host.lab import lab_run, slime_args
from tests.slime_host.manager import assert_same_training, bare_manager, one_rollout
from tests.slime_host.router import router

LENGTH = 'reward.kind="tests.slime_host.odd_rewards:Length"'
STOP = {"type": "stop", "matched": 2}


@pytest.fixture(autouse=True)
def keep_caplog() -> None:
    """The first time that slime sets up logging it throws out every other handler."""
    logging_module().configure_logger()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """slime posts an abort sixty times, a second apart, before it gives a worker up."""
    from slime.utils import http_utils

    monkeypatch.setattr(http_utils.post, "__defaults__", (2, None))
    monkeypatch.setattr(engine_counts, "_refusing", {})
    engine_counts.take()


@pytest.fixture
def fake() -> Iterator[FakeEngine]:
    """An engine that is its own router; its responses differ in length."""
    with fake_engine(answer([30, 2], STOP)) as engine:
        engine.workers = [{"url": engine.url, "worker_type": "regular"}]
        engine.plan.extend(answer([30] * (1 + n % 5) + [2], STOP) for n in range(12))
        yield engine


@pytest.fixture
def gone() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


def logged_row(run: RunFolder) -> dict[str, Any]:
    (row,) = read_rows(run.path / "metrics" / "rollout.jsonl")
    return row


def test_a_worker_that_refuses_to_abort_is_named_and_counted(
    runs: Path, fake: FakeEngine, caplog: pytest.LogCaptureFixture, logged: list[dict[str, Any]]
) -> None:
    fake.abort_status = 404
    run = lab_run(runs, LENGTH, name="no-abort")
    with caplog.at_level(logging.WARNING):
        samples, _ = one_rollout(bare_manager(slime_args(run, fake.url)))
    assert len(samples) == 12
    assert logged_row(run)["engine/abort_refused"] == 1
    assert any(call.get("rollout/engine/abort_refused") == 1 for call in logged)
    (warning,) = [r.getMessage() for r in caplog.records if r.name.startswith("slime_ext")]
    assert f"the engine at {fake.url} answers 404 to POST /abort_request" in warning
    ours, *theirs = fake.aborts
    assert set(ours) == {"rid"}
    assert {"abort_all": True} in theirs, "slime did not ask; what the warning says is not so"


def test_requests_that_an_engine_loses_or_breaks_on_leave_the_others_alone(
    runs: Path, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    fake.plan[4], fake.plan[7] = "drop", 500
    run = lab_run(runs, LENGTH, name="losses")
    samples, data = one_rollout(bare_manager(slime_args(run, fake.url)))
    lost = [s for s in samples if s.status in (Sample.Status.ABORTED, Sample.Status.FAILED)]
    assert sorted(s.metadata["finish"] for s in lost) == ["engine_gone", "http_500"]
    for sample, advantage, mask in zip(samples, data["rewards"], data["loss_masks"], strict=True):
        assert math.isnan(sample.reward) is (sample in lost)
        assert any(mask) is (sample not in lost)
        assert math.isfinite(advantage)
        assert not (sample in lost and advantage)
    assert any(data["rewards"])
    row = logged_row(run)
    assert row["undetermined/aborted:engine_gone"] == row["undetermined/failed:http_500"] == 1
    assert row["engine/lost_calls"] == 1
    assert row["lost_share"] == pytest.approx(2 / 12)
    stored = read_rollouts(run.path / "rollouts" / "step_0.jsonl.zst")
    assert sum(one["reward"] is None for one in stored) == 2


def test_an_engine_that_dies_mid_request_costs_time_and_no_sample(
    runs: Path, engine: str, tmp_path: Path
) -> None:
    run, twin = (lab_run(runs, name=f"dying-{host}") for host in ("slime", "embedded"))
    model = Path(load_runtime(run.recipe).recipe.model.path)
    dying = EngineProcess(model, batch=32, log=tmp_path / "dying.log")
    with contextlib.ExitStack() as stack:
        stack.callback(dying.stop)
        url = stack.enter_context(router([engine, dying.start()], tmp_path / "router.log"))
        assert dying._child is not None
        # Stopped, it takes requests in and answers none; killed, it resets their connections.
        os.killpg(dying._child.pid, signal.SIGSTOP)
        killer = threading.Thread(target=_kill_when_asked, args=(dying,))
        killer.start()
        data = assert_same_training(run, twin, url)
        killer.join()
    assert any(data["rewards"])
    assert logged_row(run)["engine/lost_calls"] >= 1
    assert logged_row(run)["lost_share"] == 0


def _kill_when_asked(process: EngineProcess) -> None:
    """Kill `process` once a request waits in its queue of connections, or after 30 s."""
    assert process._child is not None
    port = f":{int(process.url.rpartition(':')[2]):04X}"
    for _ in range(300):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        # Bytes that arrived on a connection to it and nobody has read.
        if any(row[1].endswith(port) and int(row[4].partition(":")[2], 16) > 500 for row in rows):
            break
        time.sleep(0.1)
    os.killpg(process._child.pid, signal.SIGKILL)


def test_an_engine_that_is_down_from_the_start_is_passed_over(
    runs: Path, fake: FakeEngine, gone: str
) -> None:
    assert fake.workers is not None
    fake.workers.append({"url": gone, "worker_type": "regular"})
    run = lab_run(runs, LENGTH, name="one-down")
    samples, data = one_rollout(bare_manager(slime_args(run, fake.url)))
    assert all(sample.status is Sample.Status.COMPLETED for sample in samples)
    assert any(data["rewards"])
    assert len(fake.received) == 12
    assert logged_row(run)["engine/lost_calls"] >= 1


@pytest.mark.parametrize("rule", ["none", "flat"])
def test_with_all_engines_gone_the_rollout_ends_in_an_error_that_says_so(
    rule: str, runs: Path, fake: FakeEngine, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    fake.workers = [{"url": gone}, {"url": gone.replace("127.0.0.1", "127.0.0.2")}]
    fake.plan.clear()
    fake.plan.extend([503] * 1000)
    run = lab_run(runs, LENGTH, f'rollout.filter="{rule}"', name=f"all-gone-{rule}")
    manager = bare_manager(slime_args(run, fake.url))
    with pytest.raises(NoEngineLeftError, match="2 workers and none of them answers"):
        one_rollout(manager)
    assert len(fake.received) <= 12 * 2


def test_with_the_router_gone_too_the_error_names_its_address(
    runs: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    run = lab_run(runs, LENGTH, name="no-router")
    with pytest.raises(NoEngineLeftError, match=f"nothing answers at {gone}"):
        one_rollout(bare_manager(slime_args(run, gone)))


def test_engines_that_refuse_everything_stop_the_run_with_what_they_said(
    runs: Path, fake: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    fake.plan.clear()
    fake.plan.extend([(400, "unknown sampling parameter")] * 12)
    run = lab_run(runs, LENGTH, name="refused")
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(NothingSampledError, match="all 12 responses of step 0 were lost"),
    ):
        one_rollout(bare_manager(slime_args(run, fake.url)))
    assert "unknown sampling parameter" in caplog.text
