"""How requests become waves, and what happens to them on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from slime_ext.embedded.engine import scheduler as module
from slime_ext.embedded.engine.request import Request
from slime_ext.embedded.engine.sampler import Wave
from slime_ext.embedded.engine.scheduler import Scheduler, WeightsRefusedError


@pytest.fixture
def waves(monkeypatch) -> list[list[str]]:
    """The rids of each wave that ran, in order."""
    seen: list[list[str]] = []

    class Recorded(Wave):
        def __init__(self, model, requests, weight_version):
            seen.append([request.rid for request in requests])
            super().__init__(model, requests, weight_version)

    monkeypatch.setattr(module, "Wave", Recorded)
    return seen


@pytest.fixture
def scheduler(decoder) -> Iterator[Scheduler]:
    served = Scheduler(decoder, batch=4)
    yield served
    served.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_waves_hold_whole_prompts_and_at_most_batch_rows(scheduler, waves, ask):
    order = [0, 1, 0, 1, 0, 1, 2, 2, 2]
    requests = [
        ask([5, 5 + p], rid=f"{p}.{i}", seed=i, max_new_tokens=3) for i, p in enumerate(order)
    ]
    scheduler.submit(requests)
    for request in requests:
        request.answer.result(timeout=30)
    assert waves == [["0.0", "0.2", "0.4", "1.1"], ["1.3", "1.5", "2.6", "2.7"], ["2.8"]]


def test_arrivals_within_the_window_share_a_wave(scheduler, waves, ask, monkeypatch):
    monkeypatch.setattr(module, "_QUIET_S", 0.3)
    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 60.0)
    requests = [ask([5], rid=str(i), max_new_tokens=2) for i in range(3)]
    for request in requests:
        scheduler.submit([request])
        time.sleep(0.01)
    for request in requests:
        request.answer.result(timeout=30)
    assert waves == [["0", "1", "2"]]


def test_steady_arrivals_do_not_postpone_a_wave_for_ever(scheduler, ask, monkeypatch):
    monkeypatch.setattr(module, "_QUIET_S", 30.0)
    scheduler.submit([ask([5], max_new_tokens=1)])
    last = ask([6], max_new_tokens=1)
    scheduler.submit([last])
    assert last.answer.result(timeout=20).output_ids


def test_a_wave_stays_within_its_cache_budget(scheduler, waves, ask, monkeypatch):
    # 2 layers x 2 x 2 heads x 16 x 4 bytes = 512 bytes a token; room for two requests of 2 + 8.
    monkeypatch.setattr(module, "_CACHE_BYTES", 512 * 20)
    requests = [ask([5 + i, 5], rid=str(i), max_new_tokens=8) for i in range(3)]
    scheduler.submit(requests)
    for request in requests:
        request.answer.result(timeout=30)
    assert waves == [["0", "1"], ["2"]]


def test_no_new_tokens_are_answered_at_once(scheduler, ask):
    request = ask([5], max_new_tokens=0)
    scheduler.submit([request])
    result = request.answer.result(timeout=0)
    assert result.output_ids == []
    assert result.finish_reason == {"type": "length", "length": 0}


def long_wave(scheduler: Scheduler, ask: Callable[..., Request], count: int = 2) -> list[Request]:
    """Requests whose wave runs until it is aborted, well under way."""
    requests = [ask([5], rid=f"long{i}", seed=i, max_new_tokens=10**6) for i in range(count)]
    scheduler.submit(requests)
    wait_until(lambda: scheduler.load() == (count, 0))
    return requests


def test_abort_by_rid_ends_one_and_abort_all_the_rest(scheduler, ask):
    first, second = long_wave(scheduler, ask)
    waiting = [ask([8], rid=rid, max_new_tokens=5) for rid in ("queued", "other")]
    scheduler.submit(waiting)
    scheduler.abort("long0")
    assert first.answer.result(timeout=30).finish_reason["type"] == "abort"
    assert first.answer.result().output_ids
    assert not second.answer.done()
    scheduler.abort("queued")
    queued = waiting[0].answer.result(timeout=0)
    assert (queued.output_ids, queued.finish_reason["type"]) == ([], "abort")
    assert not waiting[1].answer.done()
    scheduler.abort(None)
    assert second.answer.result(timeout=30).finish_reason["type"] == "abort"
    assert waiting[1].answer.result(timeout=30).finish_reason["type"] == "abort"


def test_an_update_waits_for_the_running_wave(scheduler, ask, make_model):
    other, _ = make_model(seed=1)
    (running,) = long_wave(scheduler, ask, count=1)
    update = scheduler.update_weights(other, "8")
    queued = ask([5], max_new_tokens=2)
    scheduler.submit([queued])
    time.sleep(0.1)
    assert not update.done()
    scheduler.abort("long0")
    assert update.result(timeout=30) == "8"
    assert running.answer.result().weight_version == "default"
    assert queued.answer.result(timeout=30).weight_version == "8"


def test_a_refused_update_keeps_weights_and_version(scheduler, ask, tmp_path):
    (tmp_path / "config.json").write_text("{ broken")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(WeightsRefusedError):
            scheduler.update_weights(folder, "9").result(timeout=30)
    assert scheduler.weight_version == "default"
    request = ask([5], max_new_tokens=2)
    scheduler.submit([request])
    assert request.answer.result(timeout=30).weight_version == "default"


def test_pause_aborts_and_holds_back_until_resumed(scheduler, ask):
    (running,) = long_wave(scheduler, ask, count=1)
    scheduler.pause()
    assert running.answer.result(timeout=30).finish_reason["type"] == "abort"
    request = ask([5], max_new_tokens=2)
    scheduler.submit([request])
    time.sleep(0.1)
    assert not request.answer.done()
    scheduler.resume()
    assert len(request.answer.result(timeout=30).output_ids) == 2


def test_many_threads_submit_and_abort_without_losing_a_request(scheduler, ask):
    requests = [ask([5 + i % 3], rid=str(i), seed=i, max_new_tokens=1 + i % 40) for i in range(120)]

    def work(part: list[Request]) -> None:
        for request in part:
            scheduler.submit([request])
            if int(request.rid) % 7 == 0:
                scheduler.abort(request.rid)

    threads = [threading.Thread(target=work, args=(requests[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for request in requests:
        result = request.answer.result(timeout=60)
        if result.finish_reason["type"] == "length":
            assert len(result.output_ids) == request.params.max_new_tokens
        else:
            assert int(request.rid) % 7 == 0
