"""The supervised training loop of the warm start.

One design choice: Muon on the matrices, AdamW on embeddings and norms, each with its own rate and
one schedule for both. The rate of the embeddings decides when retrieval begins: the first stage of
the curriculum ends at 0.32 nats a token with 0.03, at 1.06 with 0.004.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

import torch
from tqdm import tqdm

from slime_ext.embedded.lab.batches import Batch, Stage, batches
from slime_ext.embedded.log_probs import chunked_log_probs
from slime_ext.embedded.model import PolicyModel

_LOG = logging.getLogger(__name__)
_HEAD_CHUNK = 4096
_WARMUP_STEPS = 50
_FINAL_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages trained in one go, with one learning rate schedule: linear warm-up over 50 steps,
    constant, then from `decay_from` (share of all steps) linear down to 5%."""

    stages: tuple[Stage, ...]
    muon_lr: float
    adam_lr: float
    decay_from: float = 0.6

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def schedule(self, step: int) -> float:
        """Factor on both learning rates at `step`, counted from 0."""
        warm = min(1.0, (step + 1) / _WARMUP_STEPS)
        done = step / self.steps
        if done < self.decay_from:
            return warm
        return warm * max(_FINAL_SHARE, (1 - done) / (1 - self.decay_from))


def supervised_loss(model: PolicyModel, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the learned tokens, in nats."""
    tree = batch.tree
    hidden = model.hidden_states(tree.ids, tree.positions, tree.layout).flatten(0, 1)
    picked = hidden[tree.hidden_index[batch.learned]]
    targets = tree.targets[batch.learned]
    log_probs, _ = chunked_log_probs(picked, model.head_weight(), targets, 1.0, _HEAD_CHUNK)
    return -log_probs.mean()


def train(model: PolicyModel, plan: Plan, seed: str) -> None:
    """Train `model` in place on the demonstrations of `seed`.

    The same weights, bit for bit, for the same start and seed on one machine with one thread.
    """
    rng = random.Random(seed)
    optimisers = _optimisers(model, plan)
    average, current = 0.0, plan.stages[0].name
    progress = tqdm(batches(rng, plan.stages), total=plan.steps, disable=None, unit="step")
    for step, (stage, batch) in enumerate(progress):
        loss = supervised_loss(model, batch)
        for optimiser, rate in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate * plan.schedule(step)
            optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, _ in optimisers:
            optimiser.step()
        value, started = loss.item(), step == 0
        if stage.name != current:
            _LOG.info("%s: loss %.3f before step %d", current, average, step)
            current, started = stage.name, True
        average = value if started else 0.95 * average + 0.05 * value
        progress.set_postfix(stage=stage.name, loss=f"{average:.3f}")
    _LOG.info("%s: loss %.3f after %d steps", current, average, plan.steps)


def _optimisers(model: PolicyModel, plan: Plan) -> tuple[tuple[torch.optim.Optimizer, float], ...]:
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.dim() == 2 and "embedding" not in name]
    rest = [p for name, p in named if p.dim() != 2 or "embedding" in name]
    muon = torch.optim.Muon(matrices, lr=plan.muon_lr, momentum=0.95, weight_decay=0.0)
    adam = torch.optim.AdamW(rest, lr=plan.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    return (muon, plan.muon_lr), (adam, plan.adam_lr)
