"""The recipe: everything a run depends on, as typed sections with unknown keys refused.

One design choice: batch sizes are stated as prompts, group size and updates a step (papers count
either prompts or rollouts); every backend derives its own numbers from these three.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from rewards.grouping import AdvantageConfig
from rewards.outcome import OutcomeConfig
from slime_ext.recipe.alarm_section import AlarmsSection
from slime_ext.recipe.cluster_sections import (
    ClusterSection,
    EngineSection,
    ExtraSection,
    ParallelSection,
    PerformanceSection,
    PlanSection,
    SlimeSection,
    WatchdogSection,
)
from slime_ext.recipe.reward_section import RewardSection
from slime_ext.recipe.section import Section


class ModelSection(Section):
    """The policy that is trained."""

    path: str
    """A Hugging Face folder, or `builtin:NAME` for a checkpoint shipped with the package."""
    hub: str | None = None
    """Repository that `longrl prepare` brings to `path`, e.g. Qwen/Qwen3-4B-Thinking-2507."""
    facts: str | None = None
    """Shape of the model, configs/models/NAME.json; a config.json in `path` must agree with it."""
    megatron_checkpoint: str | None = None
    """torch_dist folder to start from; None lets slime v0.3.1 read the Hugging Face folder."""
    rope_scaling: dict[str, Any] | None = None
    """Replaces the rope scaling of config.json in trainer and engines alike."""
    stop_token_ids: list[int] = Field(default_factory=list)
    """Tokens that end a response; empty takes the model's own."""
    family: Literal["qwen3", "deepseek_r1", "plain", "lab"] = "plain"
    """Rules by which thinking is split from content and a response is found ill-formed."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Passed to the tokenizer's own chat template, e.g. { enable_thinking = false }."""


class DataSection(Section):
    """Where prompts come from and how they are shown."""

    train: str
    """A JSONL file, `builtin:NAME` for data made on the spot, or `hub:OWNER/NAME` for a published
    set."""
    eval: str | None = None
    """Held-out rows in the same format; None evaluates nothing."""
    eval_sets: dict[str, str] = Field(default_factory=dict)
    """Further held-out files by the name their metrics get, e.g. { musique = "musique.jsonl" }."""
    format: Literal["longrl", "musique", "hotpotqa", "longtracerl", "longrlvr"] = "longrl"
    prompt: str = "numbered_chunks"
    """Name of the renderer that turns a row into the user message."""
    max_prompt_tokens: int = Field(gt=0)
    """A rendered prompt above this is refused, never cut."""
    over_budget: Literal["error", "skip"] = "error"
    missing_gold: Literal["error", "outcome_only"] = "error"
    """What to do with a row that lacks the gold field its reward needs."""
    shuffle: bool = True
    options: dict[str, Any] = Field(default_factory=dict)
    """Settings of a `builtin:` data maker."""

    @field_validator("eval_sets")
    @classmethod
    def _names_are_free(cls, sets: dict[str, str]) -> dict[str, str]:
        for name in sets:
            if name in ("train", "eval") or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
                raise ValueError(
                    f"{name!r} cannot be the name of a data set; use letters, digits, '.', '_' and "
                    "'-', and neither `train` nor `eval`, which name data.train and data.eval"
                )
        return sets


class RolloutSection(Section):
    """How many responses are sampled, and how."""

    kind: str = "single_turn"
    """How a response comes about: `single_turn`, or a RolloutKind of your own as
    "package.module:NAME"."""
    steps: int = Field(gt=0)
    prompts: int = Field(gt=0)
    """Prompts a step."""
    group_size: int = Field(ge=2)
    """Responses per prompt (G); one response has no group to be compared with."""
    updates: int = Field(default=1, gt=0)
    """Optimiser updates a step; must divide `prompts`."""
    max_response_tokens: int = Field(gt=0)
    context_tokens: int = Field(gt=0)
    """Prompt and response together never exceed this."""
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = -1
    """-1 keeps the whole vocabulary."""
    filter: Literal["none", "flat"] = "none"
    """`flat` drops groups whose rewards carry no signal and samples further prompts instead."""
    filter_max_batches: int = Field(default=10, gt=0)
    """Batches generated at most for one step; then flat groups are used to fill it."""
    request_timeout_s: float = Field(default=600.0, gt=0)

    @model_validator(mode="after")
    def _updates_divide_prompts(self) -> RolloutSection:
        if self.prompts % self.updates:
            raise ValueError(
                f"updates = {self.updates} does not divide prompts = {self.prompts}; "
                f"write updates = 1 or a divisor of {self.prompts}"
            )
        return self


class LossSection(Section):
    """The GRPO objective."""

    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.28, gt=0)
    clip_c: float | None = None
    """Dual clip (LongRLVR uses 10); None leaves it off."""
    normalise: Literal["token", "rollout", "constant"] = "token"
    """Mean over tokens, over rollouts of their token means, or a constant length (Dr.GRPO)."""
    kl_coef: float = Field(default=0.0, ge=0)
    """Low-variance KL to the starting model; 0 loads no reference."""
    icepop: tuple[float, float] | None = None
    """Keep the trainer/rollout ratio as weight inside this range, zero outside, e.g. [0.5, 2.0]."""


class OptimiserSection(Section):
    """AdamW."""

    lr: float = Field(gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.1, ge=0)
    clip_grad: float = Field(default=1.0, gt=0)


class EvalSection(Section):
    """Evaluation on held-out rows, by the outcome alone."""

    every: int = Field(default=20, gt=0)
    temperature: float = Field(default=0.6, ge=0)
    """0 is greedy."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    top_k: int = 20
    samples_per_prompt: int = Field(default=1, gt=0)
    max_response_tokens: int | None = None
    """None uses the rollout's."""
    rows: int | None = None
    """Use only the first rows of the file."""


class CheckpointSection(Section):
    """Checkpoints in Megatron's torch_dist format."""

    every: int = Field(default=20, gt=0)
    keep: int = Field(default=2, gt=0)
    """How many checkpoints stay on disk, with their optimiser state."""
    keep_best: bool = True
    """Under slime: also keep the weights of the best evaluated one, in `checkpoints/best/`."""
    best: str = "reward/outcome"
    """What is best: this metric of the first held-out set, larger is better."""


class EmbeddedSection(Section):
    """The one-machine backend."""

    engine: Literal["builtin", "sglang"] = "builtin"
    micro_batch_tokens: int = Field(default=16384, gt=0)
    """Tokens of one forward pass of the trainer, shared prompts counted once."""
    engine_batch: int = Field(default=128, gt=0)
    """Responses the engine decodes at the same time."""
    log_prob_chunk: int = Field(default=256, gt=0)
    """Tokens whose vocabulary logits exist at the same time."""


class TrackSection(Section):
    """Weights & Biases; the JSONL records in the run folder are always written."""

    wandb: Literal["off", "offline", "online"] = "off"
    project: str = "longrl"
    group: str | None = None
    team: str | None = None
    host: str | None = None
    """Address of a W&B server of your own."""
    tensorboard: bool = True
    """Under slime, event files are the only record of the trainer's own metrics."""


class Recipe(Section):
    """A whole run. See configs/ for complete examples."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the run folder."""
    backend: Literal["embedded", "slime"] = "embedded"
    """`embedded` is this machine without a GPU; `slime` is the cluster."""
    seed: int = Field(default=0, ge=0)
    model: ModelSection
    data: DataSection
    rollout: RolloutSection
    reward: RewardSection
    outcome: OutcomeConfig = OutcomeConfig()
    advantage: AdvantageConfig = AdvantageConfig()
    loss: LossSection = LossSection()
    optimiser: OptimiserSection
    eval: EvalSection = EvalSection()
    checkpoint: CheckpointSection = CheckpointSection()
    embedded: EmbeddedSection = EmbeddedSection()
    track: TrackSection = TrackSection()
    alarms: AlarmsSection = AlarmsSection()
    slime: SlimeSection = SlimeSection()
    parallel: ParallelSection = ParallelSection()
    performance: PerformanceSection = PerformanceSection()
    engine: EngineSection = EngineSection()
    cluster: ClusterSection = ClusterSection()
    plan: PlanSection = PlanSection()
    watchdog: WatchdogSection = WatchdogSection()
    extra: ExtraSection = ExtraSection()

    @model_validator(mode="after")
    def _lengths_fit(self) -> Recipe:
        if self.data.max_prompt_tokens >= self.rollout.context_tokens:
            raise ValueError(
                f"data.max_prompt_tokens = {self.data.max_prompt_tokens} leaves no room for a "
                f"response within rollout.context_tokens = {self.rollout.context_tokens}"
            )
        return self
