"""The training step of one stage, phase by phase, with memory read in between.

One design choice: a term is the difference between two readings (or a peak and the reading before
it), so what the process or the CUDA context holds anyway never enters.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from launch.plan.measure.buffers import build
from launch.plan.measure.layers import rotary_tables
from launch.plan.measure.log_probs import policy_loss
from launch.plan.measure.meter import Meter
from launch.plan.measure.share import Share

Emit = Callable[[str, int], None]


class Phases:
    """One share on one device; `run` is the whole measurement."""

    def __init__(self, share: Share, meter: Meter, device: torch.device, emit: Emit) -> None:
        self.share, self.meter, self.device, self.emit = share, meter, device, emit
        self.ids = torch.randint(0, share.vocab, (share.tokens,), device=device)
        self.tables = rotary_tables(share, torch.bfloat16, device)
        self.base = self.highest = meter.used()

    def run(self) -> None:
        """Build, train one step; every term of report.py goes to `emit` once it is known."""
        self._build()
        self._forward_without_gradients()
        static = self.meter.used()
        passes = [self._forward() for _ in range(self.share.in_flight)]
        self._peak()
        held = self.meter.used()
        # What a stage sends on is dropped there; the loss has it among its own tensors.
        outputs = sum(out.nbytes for _, _, out in passes)
        self.emit("checkpoints", held - static - outputs)
        for index in range(len(passes)):
            self._backward(*passes.pop(0), held, first=index == 0)
        before = self.meter.used()
        for buffer in self.buffers:
            buffer.step()
        self.emit("optimiser_step", self._peak() - before)
        self.emit("peak", self.highest - self.base)

    def _build(self) -> None:
        self.stage, self.buffers = build(self.share, self.device)
        weights = self.meter.used()
        self.emit("weights", weights - self.base)
        for buffer in self.buffers:
            buffer.allocate_gradients()
        gradients = self.meter.used()
        self.emit("gradients", gradients - weights)
        for buffer in self.buffers:
            buffer.allocate_optimizer()
        self.emit("optimiser", self.meter.used() - gradients)

    @torch.no_grad()
    def _forward_without_gradients(self) -> None:
        """The passes for old and reference log-probs, chunked and not."""
        before = self.meter.used()
        hidden = self._forward()[-1]
        self.emit("forward_no_grad", self._peak() - before)
        if self.share.has_head:
            for name, chunk in self._variants():
                before = self.meter.used()
                self._loss(hidden, chunk)
                self.emit(f"log_prob_no_grad_{name}", self._peak() - before)

    def _forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """What enters the layers, twice (with its own past, and cut from it), and what leaves."""
        embedded = self.stage.inputs(self.ids)
        entry = embedded.detach().requires_grad_()
        return embedded, entry, self.stage(entry, *self.tables)

    def _backward(
        self, embedded: Tensor, entry: Tensor, out: Tensor, held: int, first: bool
    ) -> None:
        slope = self._output_gradient(out, first)
        self.meter.used()
        out.backward(slope)
        peak = self._peak()
        if first:
            self.emit("layer", peak - held)
        if not self.share.has_embedding:
            return
        before = self.meter.used()
        embedded.backward(entry.grad)
        peak = self._peak()
        if first:
            self.emit("embedding_gradient", peak - before)

    def _output_gradient(self, out: Tensor, first: bool) -> Tensor:
        """Gradient of the stage's output [cut_tokens, H]: the next stage's, or the loss's own."""
        if not self.share.has_head:
            return torch.ones_like(out)
        # The recipe's own setting comes last: its gradients are the ones that are kept.
        for name, chunk in self._variants() if first else self._variants()[-1:]:
            hidden = out.detach().requires_grad_()
            for buffer in self.buffers:
                buffer.gradients.zero_()
            before = self.meter.used()
            self._loss(hidden, chunk).backward()
            peak = self._peak()
            if first:
                self.emit(f"log_prob_train_{name}", peak - before)
        assert hidden.grad is not None
        return hidden.grad

    def _loss(self, hidden: Tensor, chunk: int | None) -> Tensor:
        """Minus the mean log-probability; as in Megatron, whoever made the fp32 logits holds them
        until the loss is known, and not in the backward pass."""
        logits = self.stage.logits(hidden).float()
        return policy_loss(logits, self.ids, self.share, chunk)

    def _variants(self) -> list[tuple[str, int | None]]:
        both = [("unchunked", None), ("chunked", self.share.log_prob_chunk)]
        return both if self.share.chunked else both[::-1]

    def _peak(self) -> int:
        peak = self.meter.peak()
        self.highest = max(self.highest, peak)
        return peak


class Blind:
    """A meter that reads nothing, for a step whose memory does not matter."""

    def used(self) -> int:
        return 0

    def peak(self) -> int:
        return 0


def warm_up(share: Share, device: torch.device) -> None:
    """The same step at a few tokens: loads kernels and libraries, which are not the model's."""
    tokens = 32 * share.sequence_ranks
    small = replace(
        share,
        hidden=64,
        ffn=min(share.ffn, 64),
        expert_ffn=min(share.expert_ffn, 64),
        vocab=64,
        layers=1,
        in_flight=1,
        tokens=tokens,
        response_rows=share.response_rows and tokens // 2,
    )
    Phases(small, Blind(), device, lambda *_: None).run()
    # What is loaded now stays; collecting through it again would take half a second a reading.
    gc.collect()
    gc.freeze()
