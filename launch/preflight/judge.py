"""Whether each judge server gives a right verdict on a right answer, and on a wrong one.

One design choice: every endpoint is asked alone and without the cache. Together they would stand in
for each other, and a dead one would show in the middle of a run.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.judge import Judge
from rewards.types import Task
from rewards.verdicts import Verdict
from slime_ext.recipe.schema import Recipe

LONGEST_S = 120.0
"""For one verdict; a thinking judge takes tens of seconds."""
CANNED = Task(
    id="preflight",
    question="In which city does the tower stand that Gustave Eiffel's company built for 1889?",
    answer="Paris",
    gold_chunks=(1,),
    chunk_texts={1: "The tower that Gustave Eiffel's company built for 1889 stands in Paris."},
)
RIGHT, WRONG = "Paris", "Bucharest"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_judge(recipe: Recipe, context: Context) -> list[Finding]:
    """Two verdicts of each server; nothing where no judge decides the outcome."""
    area = Area("judge")
    config = recipe.outcome.judge
    if recipe.outcome.kind != "judge":
        return []
    if not config.endpoints:
        area.fail(
            "endpoints",
            "outcome.judge.endpoints is empty: no judge to ask",
            "--set 'outcome.judge.endpoints=[{url=\"http://HOST:30000/v1\"}]'",
        )
        return area.findings
    if context.offline:
        area.skip("servers", f"{len(config.endpoints)} not asked: --offline")
        return area.findings
    _reached(recipe, context, area)
    own = {service.variable: service.name for service in recipe.cluster.services}
    for one in config.endpoints:
        started = [own[name] for name in one.variables if name in own]
        if started:
            area.skip(one.url, f"the job itself starts it: service {started[0]}")
        else:
            _ask(one, config, area)
    return area.findings


def _reached(recipe: Recipe, context: Context, area: Area) -> None:
    """On several nodes the process that asks may run on any of them, and there asks itself."""
    urls = [one.url for one in recipe.outcome.judge.endpoints]
    own = [url for url in urls if urlsplit(url).hostname in LOOPBACK]
    if own and context.cluster and recipe.cluster.nodes > 1:
        area.warn(
            "address",
            f"{', '.join(own)} is each machine's own address, and the run has "
            f"{recipe.cluster.nodes} nodes",
            "name a host that every node reaches in outcome.judge.endpoints",
        )


def _ask(one: EndpointConfig, config: JudgeConfig, area: Area) -> None:
    longest = min(config.request_timeout_s, LONGEST_S)
    alone = config.model_copy(
        update={
            "endpoints": (one,),
            "cache": None,
            "attempts": 1,
            "request_timeout_s": longest,
            "deadline_s": longest,
        }
    )
    try:
        judge = Judge(alone)
    except ValueError as error:  # a key that is absent, an address that is none
        area.fail(one.url, str(error), "correct [outcome.judge]")
        return
    right, wrong = asyncio.run(_verdicts(judge))
    _judge_verdicts(one, config, right, wrong, area)


async def _verdicts(judge: Judge) -> tuple[Verdict, Verdict]:
    try:
        return await judge.verdict(CANNED, RIGHT), await judge.verdict(CANNED, WRONG)
    finally:
        await judge.aclose()


def _judge_verdicts(
    one: EndpointConfig, config: JudgeConfig, right: Verdict, wrong: Verdict, area: Area
) -> None:
    for verdict in (right, wrong):
        if verdict.value is None:
            said, remedy = _no_verdict(one, config, str(verdict.reason))
            area.fail(one.url, said, remedy)
            return
    accepted = (right.value or 0) >= 0.5, (wrong.value or 0) >= 0.5
    another = "compare judges with `longrl judge-check`, and take another model or protocol"
    if accepted == (True, False):
        area.ok(one.url, f"said yes to {RIGHT!r} and no to {WRONG!r}")
    elif accepted == (True, True):
        area.fail(
            one.url,
            f"said yes to the wrong answer {WRONG!r} too: any answer would be paid",
            another,
        )
    elif accepted == (False, False):
        area.fail(
            one.url, f"said no to the right answer {RIGHT!r} too: no answer would be paid", another
        )
    else:
        area.fail(one.url, "said no to the right answer and yes to the wrong one", another)


def _no_verdict(one: EndpointConfig, config: JudgeConfig, reason: str) -> tuple[str, str]:
    """What happened and what to do, by the reason the judge layer gives."""
    model = one.model or config.model or "the protocol's model"
    key = one.key_env or one.key_file
    known = {
        "connect": ("nobody answers at this address", "start the server, or correct url"),
        "timeout": (
            "no complete reply in time",
            "raise outcome.judge.request_timeout_s, or see what the server is busy with",
        ),
        "unauthorised": (
            f"refuses the key in {key} (401 or 403)" if key else "wants a key (401 or 403)",
            f"put the right key into {key}" if key else 'add key_env = "VARIABLE" to the endpoint',
        ),
        "not_found": (
            f"knows no model {model!r}, or no such path (404)",
            f"see what it serves: curl {one.url.rstrip('/')}/models",
        ),
        "rate_limited": ("limits the rate (429)", "wait, or lower outcome.judge.concurrency"),
        "server_error": ("fails (5xx)", "look into its log"),
        "refused_request": (
            "refuses the request (4xx)",
            "look at structured, extra_body and max_tokens in [outcome.judge]",
        ),
        "truncated": (
            "was cut off before its verdict",
            "raise outcome.judge.max_tokens; a thinking judge needs several thousand",
        ),
    }
    known["deadline"] = known["timeout"]
    unread = (
        f"gave no verdict that protocol {config.protocol!r} can read ({reason})",
        "take another model, or another outcome.judge.protocol",
    )
    return known.get(reason, unread)
