"""Stand-in judges over HTTP: each shows its own weakness in the numbers."""

from __future__ import annotations

import pytest
from longrl_tools.judge_check.asking import Reply
from longrl_tools.judge_check.check import Options, check_judges
from longrl_tools.judge_check.judges import NamedJudge
from longrl_tools.judge_check.measure import attack_success, flips
from longrl_tools.judge_check.rows import read_rows
from longrl_tools.judge_check.table import comparison

from rewards.judge.config import EndpointConfig, JudgeConfig
from tests.fakes.judge import fake_judge
from tests.tools.judge_check.conftest import gullible, perfect


def named(name: str, url: str, **settings) -> NamedJudge:
    quick = {"request_timeout_s": 5, "attempts": 1, "concurrency": 8} | settings
    return NamedJudge(name, JudgeConfig(endpoints=(EndpointConfig(url=url),), **quick))


async def test_a_perfect_judge(labelled):
    rows = read_rows(labelled).rows
    with fake_judge(perfect, latency_s=0.01) as server:
        options = Options(attacks=True, attack_rows=3)
        (found,) = await check_judges(rows, [named("perfect", server.url)], options)
    assert found.decided.value == 1.0
    assert found.agreement.accuracy().value == 1.0
    assert found.agreement.kappa() == 1.0
    assert (found.agreement.false_yes_rate().hits, found.agreement.false_yes_rate().n) == (0, 20)
    assert found.agreement.false_yes_rate().high == pytest.approx(3.8414588 / 23.8414588)
    assert {name: one.share.hits for name, one in found.probes.items()} == {
        "position": 0,
        "alias order": 0,
        "verbosity": 0,
    }
    assert found.probes["alias order"].share.n == 20
    assert (found.attacks.share.hits, found.attacks.worst(3)) == (0, [])
    assert found.median_latency_s >= 0.01
    assert found.prompt_tokens > 100
    assert found.completion_tokens > 5


async def test_a_gullible_judge_is_found_out_by_the_attacks_alone(labelled):
    rows = read_rows(labelled).rows
    with fake_judge(gullible) as server:
        options = Options(probes=False, attacks=True, attack_rows=2)
        (found,) = await check_judges(rows, [named("gullible", server.url)], options)
    assert found.agreement.accuracy().value == 1.0
    worked = {name for name, one in found.attacks.by_template.items() if one.hits}
    assert "label" in worked
    assert "double brackets" not in worked
    assert found.attacks.by_template["label"].value == 1.0
    assert found.attacks.worst(1)[0][1].value == 1.0


async def test_a_judge_that_is_down_half_of_the_time_decides_less_and_is_never_wrong(labelled):
    rows = read_rows(labelled).rows
    with fake_judge(perfect, share_503=0.5, seed=1) as server:
        flaky = named("flaky", server.url, breaker_failures=1000)
        (found,) = await check_judges(rows, [flaky], Options())
    assert 0 < found.decided.hits < len(rows)
    assert found.decided.hits + sum(found.no_verdict.values()) == len(rows)
    assert set(found.no_verdict) == {"server_error"}
    assert found.agreement.n == found.decided.hits
    assert found.agreement.accuracy().value == 1.0
    assert any(one.undecided for one in found.probes.values())
    assert all(one.share.hits == 0 for one in found.probes.values())


async def test_a_dead_judge_has_no_rates_at_all(labelled, unused_tcp_port):
    rows = read_rows(labelled).rows[:4]
    dead = named("dead", f"http://127.0.0.1:{unused_tcp_port}/v1", deadline_s=6)
    (found,) = await check_judges(rows, [dead], Options(attacks=True))
    assert found.decided.hits == 0
    assert found.agreement.false_yes_rate().value is None
    assert found.median_latency_s is None
    assert found.attacks.share.n == 0
    assert comparison([found]).row_count > 8


def test_flips_count_directions_and_undecided_pairs():
    yes, no, none = Reply(True, None, 0), Reply(False, None, 0), Reply(None, "timeout", 0)
    found = flips([yes, no, no, yes, none], [no, yes, yes, yes, yes])
    assert (found.share.hits, found.share.n) == (3, 4)
    assert (found.no_to_yes, found.yes_to_no, found.undecided) == (2, 1, 1)


def test_attack_success_counts_decided_ones():
    yes, no, none = Reply(True, None, 0), Reply(False, None, 0), Reply(None, "timeout", 0)
    found = attack_success({"a": [yes, no], "b": [none, no], "c": [yes, yes]})
    assert (found.share.hits, found.share.n, found.undecided) == (3, 5, 1)
    assert [name for name, _ in found.worst(5)] == ["c", "a"]
