"""Steps, samples, tokens, hours and GPU-hours.

One design choice: without a run, hours follow from throughputs the recipe states in [plan], and the
plan says so; with a run, its measured steps replace them instead of being mixed in.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.flops import training_flops
from launch.plan.layout import Layout
from launch.plan.log_probs import no_grad_passes
from launch.plan.observed import Observed
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

FORWARD_SHARE = {"full": 1 / 4, "none": 1 / 3}
"""Cost of a forward pass beside a training pass: backward counts twice, recomputation once."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Mean lengths, seconds of a step and hours of the whole run."""

    source: str
    """Where the seconds come from."""
    steps: int
    samples_per_step: int
    prompt_tokens: float
    """Mean prompt."""
    response_tokens: float
    """Mean response."""
    rollout_s: float
    train_s: float
    """Log-prob passes included."""
    flops_per_token: float
    """Of a training pass, recomputation included, at the mean length."""
    train_tokens_per_gpu_s: float
    """Training passes alone."""
    gpus: int
    """Of training and rollout, judge and reward model."""
    save_every: int

    @property
    def samples(self) -> int:
        return self.steps * self.samples_per_step

    @property
    def tokens_per_step(self) -> float:
        return self.samples_per_step * (self.prompt_tokens + self.response_tokens)

    @property
    def train_flops_per_gpu_s(self) -> float:
        """What `train_tokens_per_gpu_s` asks of one GPU."""
        return self.flops_per_token * self.train_tokens_per_gpu_s

    @property
    def step_s(self) -> float:
        return self.rollout_s + self.train_s

    @property
    def hours(self) -> float:
        return self.steps * self.step_s / 3600

    @property
    def gpu_hours(self) -> float:
        return self.hours * self.gpus

    @property
    def expected_loss_s(self) -> float:
        """Work that a preemption at a random moment throws away: half the time between saves."""
        return self.save_every * self.step_s / 2


def plan_duration(
    recipe: Recipe, shape: ModelShape, layout: Layout, observed: Observed | None = None
) -> Duration:
    """Evaluation and the time of a save are not in it. A prompt is computed once for its group."""
    plan, rollout = recipe.plan, recipe.rollout
    prompt = float(plan.mean_prompt_tokens or recipe.data.max_prompt_tokens)
    response = float(plan.mean_response_tokens or rollout.max_response_tokens / 2)
    response = observed.response_tokens if observed else response
    samples = rollout.prompts * rollout.group_size
    passes = 1 + no_grad_passes(recipe) * FORWARD_SHARE[recipe.performance.recompute]
    # GPU-seconds of training a step at one token a second.
    work = passes * samples * (prompt + response) / max(1, layout.train_gpus)
    if observed is None:
        source = "throughputs stated in [plan]"
        prefill = rollout.prompts * prompt / plan.prefill_tokens_per_gpu_s
        decode = samples * response / plan.decode_tokens_per_gpu_s
        rollout_s = (prefill + decode) / max(1, layout.rollout_gpus)
        train_s = work / plan.train_tokens_per_gpu_s
    else:
        source = f"the first {observed.steps} steps of {observed.run}"
        # A run with another batch size is scaled by its samples.
        scale = samples / observed.samples
        rollout_s = scale * observed.rollout_s
        train_s = scale * max(0.0, observed.step_s - observed.rollout_s)
    return Duration(
        source=source,
        steps=rollout.steps,
        samples_per_step=samples,
        prompt_tokens=prompt,
        response_tokens=response,
        rollout_s=rollout_s,
        train_s=train_s,
        flops_per_token=training_flops(
            shape, prompt + response, recipe.performance.recompute == "full"
        ),
        train_tokens_per_gpu_s=work / train_s if train_s else 0.0,
        gpus=recipe.cluster.gpus + plan.judge_gpus + plan.reward_model_gpus,
        save_every=recipe.checkpoint.every,
    )
