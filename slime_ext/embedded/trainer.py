"""The embedded trainer: GRPO updates of a megatron-core model on one machine.

One design choice: the trainer knows nothing of rewards or rollouts; it takes samples that carry
their advantages and answers with metrics, so it can be tested against a naive loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from slime_ext.embedded.checkpoint import Counters, load_checkpoint, load_model, save_checkpoint
from slime_ext.embedded.loss import grpo_loss
from slime_ext.embedded.model import PolicyModel, build_model, model_weights
from slime_ext.embedded.optimiser import build_optimiser, learning_rate, set_learning_rate
from slime_ext.embedded.samples import (
    MicroBatch,
    TrainSample,
    check_samples,
    micro_batches,
    trees,
)
from slime_ext.embedded.supported import require_supported
from slime_ext.embedded.tripwire import refuse_update
from slime_ext.embedded.update import Update, batch_log_probs, plan_update
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.hf_folder import read_hf, write_hf
from slime_ext.weights.names import hf_to_megatron, megatron_to_hf
from slime_ext.weights.shape import read_shape

# Means over the tokens that were computed; the other metrics are means over the whole update, to
# which tokens of groups without a gradient add exactly 0.
_OVER_COMPUTED = ("ppo_kl", "entropy", "train_rollout_logprob_abs_diff", "icepop_masked")


class Trainer:
    """Trains the model in `model_folder` as the recipe's loss and optimiser sections say, from the
    weights of `model.megatron_checkpoint` where the recipe names one.

    `step` counts calls of `train`, `updates` optimiser updates. `dump_folder` receives a record of
    the batch when a loss or gradient is not finite.
    """

    def __init__(self, model_folder: Path, recipe: Recipe, dump_folder: Path | None = None) -> None:
        self.recipe, self.model_folder, self.dump_folder = recipe, model_folder, dump_folder
        if recipe.model.rope_scaling is not None:
            raise RecipeError(
                "model.rope_scaling changes trainer and engines of the slime backend; the embedded "
                f"backend reads {model_folder / 'config.json'}: change it there"
            )
        self.shape = read_shape(model_folder)
        require_supported(self.shape)
        state = read_hf(model_folder)
        self.dtypes = {name: tensor.dtype for name, tensor in state.items()}
        weights = hf_to_megatron(state, self.shape)
        self.model = build_model(self.shape, weights)
        self.reference: PolicyModel | None = None
        if recipe.loss.kl_coef > 0:
            self.reference = build_model(self.shape, weights).requires_grad_(False)
        if recipe.model.megatron_checkpoint is not None:
            for model in filter(None, (self.model, self.reference)):
                load_model(Path(recipe.model.megatron_checkpoint), model, self.shape)
        self.optimiser = build_optimiser(self.model, recipe.optimiser)
        self.step = 0
        self.updates = 0

    def train(self, batches: Sequence[Sequence[TrainSample]]) -> dict[str, float]:
        """One optimiser update per inner list, in order; returns metrics averaged over them.

        With one update the old log-probs are the current ones, detached (the ratio is 1); with more
        they come from a pass before the first. Groups in which nothing has a gradient (advantages
        all 0, or nothing in the loss mask, and no KL) are not run; their tokens stay in the
        denominator, so loss and gradient equal the full computation, while `entropy`, `ppo_kl`,
        `train_rollout_logprob_abs_diff` and `icepop_masked` are means over the groups that were run
        (absent where none was).

        Raises NonFiniteError, with that update not applied, for a loss or gradient norm that is not
        finite; ValueError for samples that do not fit together.
        """
        updates = [plan_update(samples, self.recipe) for samples in batches]
        if not updates:
            raise ValueError("train() was given no update; pass at least one list of samples")
        old = [self._old_log_probs(u) for u in updates] if len(updates) > 1 else [None]
        records = [self._update(u, log_probs) for u, log_probs in zip(updates, old, strict=True)]
        self.step += 1
        names = {name: None for record in records for name in record}
        metrics = {name: _mean([r[name] for r in records if name in r]) for name in names}
        metrics["tokens"] = float(sum(sum(s.loss_mask) for b in batches for s in b))
        return metrics

    def log_probs(self, samples: Sequence[TrainSample]) -> list[list[float]]:
        """Log-probs (nats, at the rollout temperature) of every response token, no gradient."""
        check_samples(samples)
        result: list[list[float]] = [[] for _ in samples]
        limit = self.recipe.embedded.micro_batch_tokens
        for batch in micro_batches(trees(samples), samples, limit):
            members = [index for tree in batch for index in tree.members]
            with torch.no_grad():
                flat = self._log_probs(self.model, batch)[0]
            parts = flat.split([len(samples[index].response_ids) for index in members])
            for index, part in zip(members, parts, strict=True):
                result[index] = part.tolist()
        return result

    def hf_state(self) -> dict[str, Tensor]:
        """The weights under Hugging Face names, float32, copied."""
        state = megatron_to_hf(model_weights(self.model), self.shape)
        return {name: tensor.clone() for name, tensor in state.items()}

    def export(self, folder: Path) -> None:
        """Write a Hugging Face folder in the dtype the model came in, with its tokenizer."""
        state = megatron_to_hf(model_weights(self.model), self.shape)
        typed = {name: tensor.to(self.dtypes[name]) for name, tensor in state.items()}
        write_hf(folder, typed, self.model_folder)

    def save(self, folder: Path) -> Path:
        """Save weights, optimiser and counters as `folder/iter_NNNNNNN`; returns that folder."""
        counters = Counters(step=self.step, updates=self.updates)
        keep = self.recipe.checkpoint.keep
        return save_checkpoint(folder, self.model, self.optimiser, counters, self.shape, keep)

    def load(self, folder: Path) -> None:
        """Continue from the latest checkpoint in `folder`. Raises FileNotFoundError without one."""
        counters = load_checkpoint(folder, self.model, self.optimiser, self.shape)
        self.step, self.updates = counters.step, counters.updates

    def _log_probs(self, model: PolicyModel, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        temperature = self.recipe.rollout.temperature
        return batch_log_probs(model, batch, temperature, self.recipe.embedded.log_prob_chunk)

    @torch.no_grad()
    def _old_log_probs(self, update: Update) -> Tensor:
        old = torch.zeros_like(update.weights)
        for batch in update.batches:
            old[update.token_index(batch)] = self._log_probs(self.model, batch)[0]
        return old

    def _update(self, update: Update, old_log_probs: Tensor | None) -> dict[str, float]:
        self.optimiser.zero_grad()
        sums: dict[str, float] = {"loss": 0.0, "pg_loss": 0.0, "pg_clipfrac": 0.0}
        computed = 0.0
        for batch in update.batches:
            index = update.token_index(batch)
            part = self._backward(update, batch, index, old_log_probs)
            computed += float(update.weights[index].sum())
            for name, value in part.items():
                sums[name] = sums.get(name, 0.0) + value
        norm = self._apply(update)
        for name in _OVER_COMPUTED:
            if name in sums:
                sums[name] /= computed
        sums["pg_clipfrac"] /= max(float(update.weights.sum()), 1e-12)
        return {**sums, "grad_norm": norm, "lr": self.optimiser.param_groups[0]["lr"]}

    def _backward(
        self, update: Update, batch: MicroBatch, index: Tensor, old_log_probs: Tensor | None
    ) -> dict[str, float]:
        """Add a micro-batch's gradient; returns its metric sums."""
        log_probs, entropy = self._log_probs(self.model, batch)
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._log_probs(self.reference, batch)[0]
        old = log_probs.detach() if old_log_probs is None else old_log_probs[index]
        inputs = update.inputs(index, old, reference)
        loss, sums = grpo_loss(log_probs, entropy, inputs, self.recipe.loss)
        if not torch.isfinite(loss):
            raise self._refuse("loss", float(loss.detach()), update)
        loss.backward()
        return {name: float(value) for name, value in sums.items()}

    def _apply(self, update: Update) -> float:
        """Clip the gradient and step; returns its norm before clipping."""
        parameters = list(self.model.parameters())
        for parameter in parameters:
            # With nothing to learn Adam's moments and the weight decay still act, as in a full run.
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.recipe.optimiser.clip_grad))
        if not torch.isfinite(torch.tensor(norm)):
            raise self._refuse("gradient norm", norm, update)
        set_learning_rate(self.optimiser, learning_rate(self.updates, self.recipe.optimiser))
        self.optimiser.step()
        self.updates += 1
        return norm

    def _refuse(self, quantity: str, value: float, update: Update) -> Exception:
        error = refuse_update(
            quantity, value, self.step, self.model, update.samples, self.dump_folder
        )
        self.optimiser.zero_grad()
        return error


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
