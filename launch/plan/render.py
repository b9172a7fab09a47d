"""A plan as tables for the terminal.

One design choice: every table names the context length its figures hold for, since a memory figure
without it is the one that gets copied into a wrong recipe.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from launch.plan.engine import GIB
from launch.plan.log_probs import USUAL_CHUNK
from launch.plan.plan import Plan
from launch.plan.search import Candidate
from launch.terminal import say

SHOWN = 12
"""Layouts of a search that are printed."""


def show_plan(console: Console, plan: Plan, notes: Sequence[str], remedies: Sequence[str]) -> None:
    """Print the whole plan."""
    at = f"at {plan.context_tokens:,} tokens, slime {plan.host}"
    gpus = f"{plan.layout.train_gpus} GPUs train"
    console.print(
        f"{plan.name}: {plan.parameters / 1e9:.2f}B parameters, {plan.layout.describe()}, {gpus}"
    )
    console.print(_stages(plan, at))
    console.print(_log_probs(plan, at))
    console.print(_engine(plan, at))
    console.print(_storage(plan))
    console.print(_time(plan))
    console.print(_limits(plan, at))
    for note in notes:
        say(console, f"- {note}")
    say(console, f"\nverdict: {plan.verdict} ({plan.binding.sentence()})")
    for remedy in remedies:
        console.print(f"  what would fit: {remedy}", soft_wrap=True, markup=False)


def show_search(console: Console, found: Sequence[Candidate], context_tokens: int) -> None:
    """Print the layouts that fit, best first."""
    title = f"layouts that fit at {context_tokens:,} tokens, best first (estimates)"
    sizes = ("TP", "PP", "CP", "EP", "DP", "engine")
    judged = ("peak GiB", "idle", "KB sent", "under way", "fits")
    table = _table(title, *sizes, *judged)
    for one in found[:SHOWN]:
        layout, engine = one.layout, one.plan.engine
        groups = (layout.tp, layout.pp, layout.cp, layout.ep, layout.dp, engine.gpus)
        table.add_row(
            *(str(size) for size in groups),
            _gib(one.plan.peak),
            f"{one.idle:.0%}",
            f"{one.traffic.total / 1e3:.1f}",
            str(min(engine.under_way, engine.wanted)),
            "tight" if one.plan.verdict == "tight" else "yes",
        )
    console.print(table)
    wanted = f" of {found[0].plan.engine.wanted}" if found else ""
    console.print(
        "engine: its GPUs; idle: share of training time; KB sent: forward, a token and layer, all "
        f"parallel groups; under way: full-length responses{wanted} of a step"
    )
    if len(found) > SHOWN:
        console.print(f"and {len(found) - SHOWN} more; --json lists all")


def _table(title: str, *columns: str) -> Table:
    """A table at least as wide as its title, which is no markup."""
    return Table(*columns, title=Text(title), title_justify="left", min_width=len(title))


def _gib(size: float) -> str:
    return f"{size / GIB:.2f}"


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f}"


def _stages(plan: Plan, at: str) -> Table:
    names = [f"stage {stage.stage}" for stage in plan.stages]
    table = _table(f"trainer, estimates {at}", "GiB on one GPU", *names)
    stages = plan.stages
    rows = {
        "parameters (billions)": [
            f"{(one.dense_parameters + one.expert_parameters) / 1e9:.3f}" for one in stages
        ],
        "weights": [_gib(one.weights) for one in stages],
        "gradients": [_gib(one.gradients) for one in stages],
        "optimiser": [_gib(one.optimiser) for one in stages],
        "activations kept": [f"{_gib(one.activations)} (x{one.micro_batches})" for one in stages],
        "one layer's working set": [_gib(one.working_set) for one in stages],
        "gathered keys and values": [_gib(one.gathered_keys_values) for one in stages],
        "logits and log-probs": [_gib(one.log_probs) for one in stages],
        "peak": [_gib(one.peak) for one in stages],
        "with the reserve (CUDA, NCCL)": [_gib(one.peak + plan.reserve) for one in stages],
    }
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table


def _log_probs(plan: Plan, at: str) -> Table:
    memory = plan.log_probs
    ways = ["in one piece", f"in chunks of {memory.chunk or USUAL_CHUNK:,}"]
    ways[memory.chunk is not None] += " (now)"
    table = _table(f"log-probs of {memory.rows:,} rows, last stage, {at}", "GiB", *ways)
    table.add_row("logits in bf16", *2 * [_gib(memory.logits_bf16)])
    table.add_row("logits in fp32", *2 * [_gib(memory.logits_fp32)])
    table.add_row("both, while fp32 is made", *2 * [_gib(memory.conversion)])
    table.add_row("training pass", _gib(memory.train_whole), _gib(memory.train_chunked))
    passes = f"without gradients ({memory.no_grad_passes} a step)"
    table.add_row(passes, _gib(memory.no_grad_whole), _gib(memory.no_grad_chunked))
    return table


def _engine(plan: Plan, at: str) -> Table:
    engine = plan.engine
    title = f"{engine.engines} SGLang engines of {engine.gpus} GPUs, estimates {at}"
    table = _table(title, "one engine", "")
    table.add_row("weights a GPU", f"{_gib(engine.weights_per_gpu)} GiB")
    kept = f"{engine.kv_bytes_per_token:,} bytes"
    if engine.kv_bytes_per_token_held != engine.kv_bytes_per_token:
        kept += f" ({engine.kv_bytes_per_token_held:,} with copies)"
    table.add_row("key-value cache a token", kept)
    if engine.state_bytes_per_sequence:
        table.add_row("constant state a sequence", f"{_gib(engine.state_bytes_per_sequence)} GiB")
    table.add_row("cache a GPU", f"{_gib(engine.pool_per_gpu)} GiB")
    table.add_row("tokens", f"{engine.tokens:,}")
    table.add_row("full-length sequences", str(engine.sequences))
    table.add_row("groups that share a prompt", str(engine.groups))
    limit = f"{engine.under_way} of {engine.wanted} (limit {engine.limit} an engine)"
    table.add_row("under way, all engines", limit)
    return table


def _storage(plan: Plan) -> Table:
    host, disk = plan.host_memory, plan.disk
    table = _table("host memory of a node, and disk", "", "GB")
    table.add_row("copies of the weights", _gb(host.weight_copies))
    table.add_row("offloaded", _gb(host.offloaded))
    table.add_row("a checkpoint while it is saved", _gb(host.saving))
    table.add_row("disk: one save with optimiser", _gb(disk.save))
    table.add_row("disk: weights alone", _gb(disk.weights))
    if disk.saves > disk.kept:
        held = f"{disk.kept} kept, one under way"
        table.add_row(f"disk: all {disk.saves} saves, were they kept", _gb(disk.saves * disk.save))
    else:
        held = f"all {disk.saves} saves"
    best = ", the best as weights" if disk.best else ""
    table.add_row(f"disk: {held}{best}, one export", _gb(disk.peak))
    return table


def _time(plan: Plan) -> Table:
    time = plan.duration
    table = _table(f"time, from {time.source}", "", "")
    table.add_row("steps", f"{time.steps:,}")
    table.add_row("samples", f"{time.samples:,} ({time.samples_per_step:,} a step)")
    lengths = f"{time.prompt_tokens:,.0f} prompt + {time.response_tokens:,.0f} response"
    table.add_row("mean tokens a sample", lengths)
    table.add_row("tokens a step", f"{time.tokens_per_step:,.0f}")
    parts = f"{time.rollout_s:,.0f} s rollout + {time.train_s:,.0f} s training"
    table.add_row("a step", parts)
    speed = f"{time.train_tokens_per_gpu_s:,.0f} tokens a GPU and second"
    work = f"{time.flops_per_token / 1e9:,.0f} GFLOP each, {time.train_flops_per_gpu_s / 1e12:,.0f}"
    table.add_row("training speed", f"{speed}, {work} TFLOPS")
    table.add_row("the run", f"{time.hours:,.1f} hours, {time.gpu_hours:,.0f} GPU-hours")
    served = f"{plan.judge_gpus} for a judge, {plan.reward_model_gpus} for a reward model"
    table.add_row("GPUs", f"{time.gpus} ({served})")
    return table


def _limits(plan: Plan, at: str) -> Table:
    table = _table(f"limits {at}", "limit", "need GiB", "of GiB", "most of it", "verdict")
    for limit in plan.limits:
        table.add_row(limit.name, _gib(limit.need), _gib(limit.have), limit.binding, limit.verdict)
    return table
