"""Planned against measured memory, as a table and as JSON.

One design choice: the header says where and at what length the figures were taken, and each
difference from the real trainer is named below them, since a ratio alone would be over-trusted.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.console import Console
from rich.table import Table

from launch.plan.measure.planned import Planned
from launch.plan.measure.run import Device, Measured
from launch.terminal import say

MIB = 2**20

TERMS = {
    "weights": "weights, bf16",
    "gradients": "gradients, fp32",
    "optimiser": "optimiser, this GPU's part",
    "checkpoints": "activations kept",
    "layer": "one layer's backward pass",
    "forward_no_grad": "layers without gradients",
    "log_prob_no_grad_unchunked": "log-probs, no gradients",
    "log_prob_no_grad_chunked": "the same in chunks",
    "log_prob_train_unchunked": "log-probs, training",
    "log_prob_train_chunked": "the same in chunks",
    "embedding_gradient": "gradient of the embedding",
    "optimiser_step": "optimiser step",
    "peak": "peak",
    "reserved": "held by torch's allocator",
}
"""Measured terms in the order they are shown."""

LEGEND = (
    "recipe: its plan; planned: the plan's formulas at the measured size; ratio: measured / planned"
)


def show_measurement(
    console: Console, name: str, planned: Planned, measured: Measured, device: Device
) -> None:
    """Print header, table and differences."""
    say(console, f"{name}: {_header(planned, measured)}")
    table = Table()
    table.add_column("MiB on one GPU", no_wrap=True)
    for column in ("recipe", "planned", "measured", "ratio"):
        table.add_column(column, justify="right")
    for row in rows(planned, measured):
        table.add_row(
            TERMS[row["term"]],
            *(_mib(row[key]) for key in ("recipe", "planned", "measured")),
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        )
    console.print(table)
    say(console, LEGEND)
    if measured.out_of_memory:
        last = list(measured.terms)[-1:] or ["nothing"]
        say(console, f"memory ran out after {TERMS.get(last[0], last[0])!r}; write fewer --tokens")
    for line in differences(planned, device):
        say(console, f"- {line}")


def to_json(planned: Planned, measured: Measured, device: Device) -> dict[str, Any]:
    """The same as JSON values, bytes."""
    return {
        "device": measured.device,
        "kind": device.kind,
        "dtype": "bfloat16",
        "stage": planned.stage,
        "share": dataclasses.asdict(planned.share),
        "recipe_tokens": planned.full_tokens,
        "recipe_layers": planned.full_layers,
        "terms": rows(planned, measured),
        "out_of_memory": measured.out_of_memory,
        "differences": differences(planned, device),
    }


def rows(planned: Planned, measured: Measured) -> list[dict[str, Any]]:
    """One row a term: bytes planned for the recipe and for the measured share, measured, ratio."""
    found = []
    for term in TERMS:
        here, seen = planned.terms.get(term), measured.terms.get(term)
        if here is None and seen is None:
            continue
        found.append(
            {
                "term": term,
                "recipe": planned.full.get(term),
                "planned": here,
                "measured": seen,
                "ratio": seen / here if here and seen is not None else None,
            }
        )
    return found


def differences(planned: Planned, device: Device) -> list[str]:
    """What the measured share leaves out or does otherwise than the trainer, and what follows."""
    share = planned.share
    lines = [
        "plain torch: what transformer-engine runs as one kernel (norms, rotary embedding, SwiGLU) "
        "is run block by block here and keeps its inputs only; it may keep a norm's output besides",
        "gradients of weights are bf16 for a moment before they are added to fp32 ones; "
        "transformer-engine adds them in the kernel",
        "not in any figure: CUDA context, NCCL buffers and fragmentation (plan.reserve_gib)",
    ]
    if share.recompute:
        lines.append(
            "one layer's backward pass is planned as twice its activations; a ratio below 1 is "
            "what autograd frees on the way, and small lengths show weight gradients too"
        )
    if share.cp > 1:
        lines.append(
            "keys and values of the whole sequence are gathered; transformer-engine's ring holds "
            "two ranks' at once, and partial outputs of its steps"
        )
    if share.experts:
        lines.append(
            "routing is balanced: an expert that gets twice the mean takes twice the memory; "
            "dispatch buffers of the all-to-all are one copy"
        )
    if share.has_head:
        lines += [
            "the plan of log-probs in training is an upper bound: it assumes that the fp32 logits "
            "are held in the backward pass, and Megatron's schedule drops them before",
            "in chunks and without gradients the bf16 logits decide, which exist while the fp32 "
            "ones are made (1.5 copies)",
        ]
    if device.kind == "cpu":
        lines.append(
            "measured on CPU, as resident pages: nothing here was run on a GPU; a GPU measures "
            "the recipe's own length"
        )
    return lines


def _header(planned: Planned, measured: Measured) -> str:
    share = planned.share
    text = (
        f"stage {planned.stage} of one GPU, measured on {measured.device}, bf16, {share.tokens:,} "
        f"tokens on the GPU ({share.tokens * share.cp:,} in the sequence) and {share.layers} layers"
    )
    if (share.tokens, share.layers) != (planned.full_tokens, planned.full_layers):
        text += f"; the recipe has {planned.full_tokens:,} and {planned.full_layers}"
    return text


def _mib(size: float | None) -> str:
    return "" if size is None else f"{size / MIB:,.1f}"
