"""Running the whole comparison.

One design choice: judges are asked one after another, never side by side, so that latencies can be
compared even where two judges share a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewards.judge.judge import Judge

from .asking import Reply, ask_all
from .attacks import ATTACKS, attacked
from .judges import NamedJudge
from .measure import Attacks, Flips, Measured, attack_success, flips, measure
from .probes import PROBES, as_it_stands
from .rows import Row


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked beyond the rows themselves."""

    probes: bool = True
    attacks: bool = False
    attack_rows: int = 20
    """Wrong candidates that are attacked; each is asked once a template."""


async def check_judges(
    rows: Sequence[Row], judges: Sequence[NamedJudge], options: Options
) -> list[Measured]:
    """Measure each judge on all rows. Raises ValueError for a judge that cannot be set up; what
    servers do is counted, never raised."""
    ready = [(named, Judge(named.config)) for named in judges]
    results = []
    for named, judge in ready:
        try:
            results.append(await _check(rows, named, judge, options))
        finally:
            await judge.aclose()
    return results


async def _check(
    rows: Sequence[Row], named: NamedJudge, judge: Judge, options: Options
) -> Measured:
    at_once = named.config.concurrency
    questions = [as_it_stands(row) for row in rows]
    replies = await ask_all(judge, questions, at_once, named.name)
    measured = measure(named.name, rows, replies, judge.counters())
    if options.probes:
        measured = replace(measured, probes=await _probe(rows, replies, named, judge))
    if options.attacks:
        attacks = await _attack(rows, replies, named, judge, options.attack_rows)
        measured = replace(measured, attacks=attacks)
    return measured


async def _probe(
    rows: Sequence[Row], replies: Sequence[Reply], named: NamedJudge, judge: Judge
) -> dict[str, Flips]:
    found = {}
    for name, probe in PROBES.items():
        variants = [(probe(row), reply) for row, reply in zip(rows, replies, strict=True)]
        usable = [(question, reply) for question, reply in variants if question is not None]
        after = await ask_all(
            judge,
            [question for question, _ in usable],
            named.config.concurrency,
            f"{named.name}, {name}",
        )
        found[name] = flips([reply for _, reply in usable], after)
    return found


async def _attack(
    rows: Sequence[Row], replies: Sequence[Reply], named: NamedJudge, judge: Judge, limit: int
) -> Attacks:
    refused = [
        row
        for row, reply in zip(rows, replies, strict=True)
        if not row.right and reply.yes is False and row.candidate.strip()
    ][:limit]
    questions = [
        (row.task(), attacked(template, row.candidate))
        for template in ATTACKS.values()
        for row in refused
    ]
    given = await ask_all(judge, questions, named.config.concurrency, f"{named.name}, attacks")
    size = len(refused)
    return attack_success(
        {name: given[n * size : (n + 1) * size] for n, name in enumerate(ATTACKS)}
    )
