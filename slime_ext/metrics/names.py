"""What each metric means: ours are logged as `rollout/KEY` and `eval/DATASET/KEY`, the trainer's as
`train/KEY`.

One design choice: a key ends in `/*` where what follows is the name of a part, a reason or a count.
Tests hold every emitted key and the table in `slime_ext/README.md` against this one, and no key of
ours equals one of slime's. `python -m slime_ext.metrics.names` prints the table.
"""

from __future__ import annotations

METRICS: dict[str, str] = {
    "samples": "responses of the step or evaluation",
    "reward/total": "mean total over determined samples, after the group rule",
    "reward/*": "mean of a named part over the samples that have it; `outcome` is accuracy",
    "undetermined": "samples without a reward: left out of statistics and loss",
    "undetermined/*": "the same by reason",
    "length/*": "response tokens: mean, p50, p95, max",
    "length_thinking/*": "tokens up to the closing thinking tag",
    "length_content/*": "tokens after it",
    "truncated_share": "share of responses cut by the response or context cap",
    "lost_share": "share of responses lost to the engine (aborted or failed)",
    "ill_formed_share": "share of responses that score 0 for their form",
    "ill_formed/*": "the same by reason",
    "group/*": "groups: all_right, mixed, all_wrong in outcome; zero_advantage",
    "advantage/*": "what the advantage computation counted",
    "trained_share": "share of samples with an advantage other than 0",
    "cached_prompt_share": "share of prompt tokens the engine had computed before",
    "engine/*": "lost_calls: calls without an answer since the row before; abort_refused: workers "
    "that do not abort",
    "judge/*": "what the judge counted since the row before",
    "source/*": "the same per data source: `source/NAME/KEY`, where a step has several",
    "seconds": "wall seconds from the first request to the last score",
    "host/*": "what the host's own rollout passed along",
}

TRAINER: dict[str, str] = {
    "loss": "what is minimised",
    "pg_loss": "policy-gradient loss: the loss without its KL term",
    "pg_clipfrac": "share of tokens whose ratio is clipped",
    "ppo_kl": "mean log-ratio of the policy before the update to the present one",
    "kl_loss": "KL to the reference model",
    "entropy": "nats a token (embedded)",
    "entropy_loss": "nats a token (slime)",
    "grad_norm": "norm of the gradient before clipping",
    "train_rollout_logprob_abs_diff": "mean distance of trainer and engine log-probs, nats",
    "lr": "learning rate (embedded)",
    "lr-pg_0": "learning rate of the first parameter group (slime)",
}
"""The metrics of a trainer that dashboards and alarms name; both trainers log more."""


def describe(key: str) -> str | None:
    """The meaning of an emitted key, or None for an unknown one."""
    if key.startswith("source/"):
        _, _, inner = key.split("/", 2)
        return describe(inner)
    if key in METRICS:
        return METRICS[key]
    head, slash, _ = key.partition("/")
    return METRICS.get(f"{head}/*") if slash else None


def table() -> str:
    """The table as Markdown."""
    rows = [f"| `{key}` | {meaning} |" for key, meaning in METRICS.items()]
    return "\n".join(["| metric | meaning |", "|---|---|", *rows])


if __name__ == "__main__":
    print(table())
