"""Samples a second through the judge layer: ours, without sharing, and one after another.

One design choice: the stand-in judge (50 ms a reply) is another process, so that the CPU time
measured is the client's alone; every run asks about questions nobody asked before, so no figure
rests on a warm cache. A figure is the median of the runs; the first, which connects, is dropped.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from rewards.judge.client import ChatClient
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.judge import Judge
from rewards.judge.protocols.registry import make_protocol
from rewards.judge.types import ChatReply, ChatRequest
from rewards.types import Task
from rewards.verdicts import Verdict

ROOT = Path(__file__).parents[2]
GROUPS, GROUP_SIZE, DISTINCT = 128, 8, 5
SAMPLES, NEEDED = GROUPS * GROUP_SIZE, GROUPS * DISTINCT
CONCURRENCY, LATENCY_S, SHARE_503 = 64, 0.05, 0.2
LIMIT = CONCURRENCY / LATENCY_S
"""Requests a second that the places allow."""
RUNS, SYNCHRONOUS = 9, 64
PROTOCOL = make_protocol("aa_lcr")


@dataclass(frozen=True)
class Sample:
    """One answer and what a judge must find."""

    task: Task
    answer: str
    right: float


@dataclass(frozen=True)
class Run:
    """Wall and CPU seconds of one run, and what came out."""

    wall_s: float
    cpu_s: float
    wrong: int
    undecided: int


def samples(run: int) -> list[Sample]:
    """1,024 answers in groups of 8, 5 of them distinct; other questions in each run."""
    draw = random.Random(run)
    made: list[Sample] = []
    for group in range(GROUPS):
        gold = f"the river {draw.getrandbits(40):x}"
        task = Task(f"{run}/{group}", f"Which river is meant in passage {run}, {group}?", gold)
        others = [f"the lake {draw.getrandbits(40):x}, if the passage is right" for _ in range(4)]
        answers = [gold, *others, *draw.choices([gold, *others], k=GROUP_SIZE - DISTINCT)]
        draw.shuffle(answers)
        made += [Sample(task, answer, float(answer == gold)) for answer in answers]
    return made


@contextmanager
def stand_in(share_503: float) -> Iterator[str]:
    """Address of a stand-in judge in a process of its own."""
    command = [sys.executable, __file__, "serve", str(share_503)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("")


def serve(share_503: float) -> None:
    """Be the stand-in until standard input ends."""
    sys.path.insert(0, str(ROOT))
    from tests.fakes.exact_judge import exact_reply
    from tests.fakes.judge import fake_judge

    with fake_judge(exact_reply, latency_s=LATENCY_S, share_503=share_503) as fake:
        print(fake.url, flush=True)
        sys.stdin.read()


def request(sample: Sample) -> ChatRequest:
    """The request that asks about one sample."""
    messages = PROTOCOL.messages(sample.task, sample.answer)
    return ChatRequest(messages, "judge", 0.0, 512)


async def measure(batch: list[Sample], ask: Callable[[Sample], Awaitable[Verdict]]) -> Run:
    """Ask about all samples at the same time."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = await asyncio.gather(*(ask(sample) for sample in batch))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    undecided = sum(one.value is None for one in found)
    pairs = zip(found, batch, strict=True)
    wrong = sum(one.value is not None and one.value != sample.right for one, sample in pairs)
    return Run(wall, cpu, wrong, undecided)


async def ours(*configs: JudgeConfig) -> list[list[Run]]:
    """Through judges, cache files included; they take turns, so that a busy machine slows all."""
    judges = [Judge(config) for config in configs]
    runs: list[list[Run]] = [[] for _ in judges]
    for n in range(RUNS + 1):
        for judge, done in zip(judges, runs, strict=True):

            async def ask(sample: Sample, judge: Judge = judge) -> Verdict:
                return await judge.verdict(sample.task, sample.answer)

            done.append(await measure(samples(n), ask))
    for judge in judges:
        await judge.aclose()
    return [done[1:] for done in runs]


async def one_request_each(config: JudgeConfig, first: int) -> list[Run]:
    """The same client, one request for every sample."""
    client = ChatClient(config, "judge")

    async def ask(sample: Sample) -> Verdict:
        answered = await client.chat(request(sample))
        return PROTOCOL.read(answered, sample.task, sample.answer)

    runs = [await measure(samples(first + n), ask) for n in range(RUNS + 1)]
    await client.aclose()
    return runs[1:]


def synchronous(url: str, first: int) -> float:
    """Samples a second where each call waits for the one before, over one kept connection."""
    batch = samples(first)[:SYNCHRONOUS]
    with httpx.Client(trust_env=False) as client:
        began = time.perf_counter()
        for sample in batch:
            asked = request(sample)
            body = {"model": asked.model, "messages": list(asked.messages)}
            answered = client.post(f"{url}/chat/completions", json=body).raise_for_status().json()
            content = answered["choices"][0]["message"]["content"]
            found = PROTOCOL.read(ChatReply(content), sample.task, sample.answer)
            assert found.value == sample.right
        return len(batch) / (time.perf_counter() - began)


def settings(url: str, cache: Path | None = None) -> JudgeConfig:
    """64 places, and attempts enough for a server that fails one time in five."""
    return JudgeConfig(
        endpoints=(EndpointConfig(url=url),),
        model="judge",
        concurrency=CONCURRENCY,
        request_timeout_s=10.0,
        attempts=8,
        cache=cache,
    )


def median_wall(runs: list[Run]) -> float:
    """Seconds of the middle run."""
    return statistics.median(run.wall_s for run in runs)


def main() -> None:
    """Print the figures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        stand_in(0.0) as url,
        stand_in(SHARE_503) as failing_url,
    ):
        healthy, failing = asyncio.run(
            ours(
                settings(url, Path(folder) / "healthy.sqlite"),
                settings(failing_url, Path(folder) / "failing.sqlite"),
            )
        )
        single = asyncio.run(one_request_each(settings(url), 100))
        serial = synchronous(url, 200)
    kept = [one.wall_s / other.wall_s for one, other in zip(healthy, failing, strict=True)]
    wall = median_wall(healthy)
    cpu_ms = 1000 * statistics.median(run.cpu_s for run in healthy) / SAMPLES
    wrong = sum(run.wrong for run in healthy + single)
    figures = {
        "judge_samples_per_s": SAMPLES / wall,
        "judge_share_of_limit": NEEDED / wall / LIMIT,
        "judge_samples_per_s_without_dedup": SAMPLES / median_wall(single),
        "judge_share_of_limit_without_dedup": SAMPLES / median_wall(single) / LIMIT,
        "judge_samples_per_s_synchronous": serial,
        "judge_speedup_over_synchronous": SAMPLES / wall / serial,
        "judge_cpu_ms_per_sample": cpu_ms,
        "judge_wrong_scores": wrong + sum(run.undecided for run in healthy + single),
        "judge_share_with_503": statistics.median(kept),
        "judge_wrong_scores_with_503": sum(run.wrong for run in failing),
        "judge_undecided_with_503": sum(run.undecided for run in failing),
    }
    for name, value in figures.items():
        print(f"figure {name} {value:.4g}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(float(sys.argv[2]))
    else:
        main()
