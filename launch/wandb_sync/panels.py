"""What the dashboard shows: sections of panels, each a few metrics over one axis.

One design choice: metrics are named as in `slime_ext/metrics/names.py`, without their stream, so
that a test holds every panel against that table; both backends' names stand side by side, and W&B
draws the ones a run has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from slime_ext.metrics.wandb_run import AXES


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One line plot. `keys` may end in `/*`."""

    title: str
    keys: tuple[str, ...]
    stream: Literal["rollout", "train", "eval"] = "rollout"

    @property
    def axis(self) -> str:
        """The metric on its x-axis."""
        return AXES[self.stream]

    def names(self) -> tuple[str, ...]:
        """Full names, where every key is one metric: none for a pattern or an evaluation, whose
        names hold the data set."""
        if self.stream == "eval" or any(key.endswith("/*") for key in self.keys):
            return ()
        return tuple(f"{self.stream}/{key}" for key in self.keys)

    def pattern(self) -> str:
        """Regular expression of the full names, where they are not one by one."""
        head = "eval/[^/]+" if self.stream == "eval" else self.stream
        keys = "|".join(re.sub(r"/\\\*$", "/.+", re.escape(key)) for key in self.keys)
        return f"^{head}/({keys})$"


SECTIONS: dict[str, tuple[PanelSpec, ...]] = {
    "Reward": (
        PanelSpec("Reward after the group rule", ("reward/total",)),
        PanelSpec("Rubric reward", ("reward/rubric", "reward/rubric_raw")),
        PanelSpec("Outcome (accuracy)", ("reward/outcome",)),
        PanelSpec("All parts", ("reward/*",)),
        PanelSpec("Without a reward, by reason", ("undetermined/*",)),
        PanelSpec("Ill-formed, by reason", ("ill_formed/*",)),
    ),
    "Held-out": (
        PanelSpec("Outcome (accuracy)", ("reward/outcome",), "eval"),
        PanelSpec("Evidence recall", ("reward/evidence_recall",), "eval"),
        PanelSpec("Response length", ("length/mean", "length/p95"), "eval"),
        PanelSpec("Truncated", ("truncated_share",), "eval"),
    ),
    "Evidence": (
        PanelSpec("Evidence recall", ("reward/evidence_recall",)),
        PanelSpec(
            "Cited chunks", ("reward/chunk_precision", "reward/chunk_recall", "reward/chunk_fbeta")
        ),
        PanelSpec("Evidence beside outcome", ("reward/evidence_recall", "reward/outcome")),
    ),
    "Response length": (
        PanelSpec("Tokens", ("length/mean", "length/p50", "length/p95", "length/max")),
        PanelSpec("Thinking tokens", ("length_thinking/*",)),
        PanelSpec("Content tokens", ("length_content/*",)),
    ),
    "Truncation": (
        PanelSpec("Truncated", ("truncated_share",)),
        PanelSpec("Lost to the engine", ("lost_share",)),
        PanelSpec("Ill-formed", ("ill_formed_share",)),
    ),
    "Judge health": (
        PanelSpec("No verdict, by reason", ("judge/no_verdict/*",)),
        PanelSpec("Seconds a call", ("judge/latency_mean_s",)),
        PanelSpec("Calls saved", ("judge/cache_hit_rate", "judge/saved_rate")),
        PanelSpec("Verdicts", ("judge/verdicts/*",)),
        PanelSpec("Failed attempts, by reason", ("judge/attempt_failed/*",)),
    ),
    "Groups": (
        PanelSpec("Groups by outcome", ("group/all_right", "group/mixed", "group/all_wrong")),
        PanelSpec("Groups without a signal", ("group/zero_advantage",)),
        PanelSpec("Share of samples that train", ("trained_share",)),
    ),
    "Trainer": (
        PanelSpec("Loss", ("loss", "pg_loss"), "train"),
        PanelSpec("Gradient norm", ("grad_norm",), "train"),
        PanelSpec("Entropy", ("entropy", "entropy_loss"), "train"),
        PanelSpec("Trainer beside rollout", ("train_rollout_logprob_abs_diff",), "train"),
        PanelSpec("KL to the policy before", ("ppo_kl",), "train"),
        PanelSpec("KL to the reference", ("kl_loss",), "train"),
        PanelSpec("Clipped", ("pg_clipfrac",), "train"),
        PanelSpec("Learning rate", ("lr", "lr-pg_0"), "train"),
    ),
    "Engine": (
        PanelSpec("Seconds of sampling and scoring", ("seconds",)),
        PanelSpec("Prompt tokens computed before", ("cached_prompt_share",)),
        PanelSpec("Engine troubles", ("engine/*",)),
    ),
}
