"""Prefill tokens computed per group, with two real SGLang engines behind the real router.

One design choice: what counts is what the engines themselves report as computed, prompt_tokens -
cached_tokens, summed over a group and divided by its prompt's length: 1.0 is one prefill, 8.0 is
one for each sample. Needs `make sglang` and an environment with the PyPI package sglang-router.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[2]))

from slime_ext.embedded.sglang.process import SglangProcess
from slime_ext.rollout.affinity import post_for_group
from slime_ext.rollout.client import post_generate
from tests.bench.engine import CONFIG, write_model

PROMPT_TOKENS, GROUPS, GROUP_SIZE, NEW_TOKENS = 4096, 6, 8, 4
ROUTER_VENV = Path(os.environ.get("LONGRL_SLIME_VENV", ".venv-slime"))
"""An environment with sglang-router; LONGRL_SLIME_VENV names another."""


class ChunkedSglang(SglangProcess):
    """SGLang that prefills in chunks, as engines do at long contexts, and gives its port as weight
    version, by which answers tell where they come from."""

    def _command(self, folder: Path, version: str, port: int) -> list[str]:
        command = super()._command(folder, f"port {port}", port)
        return [*command, "--chunked-prefill-size", "512"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def router(policy: str, workers: list[str], log: Path) -> Iterator[int]:
    """The router as slime starts it, but for its policy; its port, once it lists all workers."""
    port = free_port()
    command = [str(ROUTER_VENV / "bin" / "python"), "-m", "sglang_router.launch_router"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--policy", policy]
    command += ["--prometheus-port", str(free_port()), "--disable-health-check"]
    with log.open("ab") as out:
        child = subprocess.Popen(
            [*command, "--worker-urls", *workers], stdout=out, stderr=out, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 60
        while _listed(port) < len(workers):
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the router did not come up:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield port
    finally:
        child.terminate()
        child.wait(10)


def _listed(port: int) -> int:
    try:
        return len(httpx.get(f"http://127.0.0.1:{port}/workers").json()["workers"])
    except (httpx.HTTPError, ValueError, KeyError):
        return 0


def groups(seed: int) -> list[list[int]]:
    """Distinct random prompts."""
    draw = random.Random(seed)
    return [[draw.randrange(3, 151) for _ in range(PROMPT_TOKENS)] for _ in range(GROUPS)]


async def measure(port: int, prompts: list[list[int]], affine: bool) -> tuple[list[float], float]:
    """Per group, prefill tokens computed / tokens of the prompt, and the busiest engine's share of
    the requests; all requests are sent at once."""
    args = Namespace(sglang_router_ip="127.0.0.1", sglang_router_port=port)
    served: Counter[str] = Counter()

    async def one(number: int, sibling: int) -> int:
        sampling = {"max_new_tokens": NEW_TOKENS, "sampling_seed": number * GROUP_SIZE + sibling}
        payload = {
            "input_ids": prompts[number],
            "sampling_params": {**sampling, "ignore_eos": True},
            "return_logprob": True,
        }
        if affine:
            answer = await post_for_group(args, f"bench/{number}", payload, 300.0)
        else:
            answer = await post_generate(f"http://127.0.0.1:{port}/generate", payload, 300.0)
        meta: dict[str, Any] = answer["meta_info"]
        served[meta["weight_version"]] += 1
        return int(meta["prompt_tokens"]) - int(meta["cached_tokens"])

    spent = await asyncio.gather(
        *(asyncio.gather(*(one(g, s) for s in range(GROUP_SIZE))) for g in range(GROUPS))
    )
    shares = [sum(group) / PROMPT_TOKENS for group in spent]
    return shares, max(served.values()) / served.total()


def main() -> int:
    """Print the figures; exit code 1 where a group costs more than 1.05 prompts with affinity."""
    if not (ROUTER_VENV / "bin" / "python").is_file():
        print(f"no {ROUTER_VENV}; see tests/slime_host, or set LONGRL_SLIME_VENV", file=sys.stderr)
        return 1
    worst = 0.0
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = write_model(Path(name))
        config = {**CONFIG, "max_position_embeddings": 2 * PROMPT_TOKENS}
        (folder / "config.json").write_text(json.dumps(config))
        engines = [ChunkedSglang(folder, 64, folder / f"engine{n}.log") for n in range(2)]
        workers = [stack.enter_context(engine).url for engine in engines]
        for seed, (label, policy, affine) in enumerate(
            (
                ("round_robin", "round_robin", False),
                ("cache_aware", "cache_aware", False),
                ("affinity", "cache_aware", True),
            )
        ):
            with router(policy, workers, folder / "router.log") as port:
                shares, busiest = asyncio.run(measure(port, groups(seed), affine))
            print(f"figure prefill_per_group_{label}_mean {fmean(shares):.3f}")
            print(f"figure prefill_per_group_{label}_max {max(shares):.3f}")
            print(f"figure busiest_engine_share_{label} {busiest:.3f}", flush=True)
            worst = max(shares)
    return 0 if worst <= 1.05 else 1


if __name__ == "__main__":
    sys.exit(main())
