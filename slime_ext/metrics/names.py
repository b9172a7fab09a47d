"""What each metric of ours means. Under slime the keys are logged as `longrl/KEY`.

One design choice: a key ends in `/*` where what follows is the name of a part, a reason or a count;
a test holds every key that is emitted against this table.
"""

from __future__ import annotations

METRICS: dict[str, str] = {
    "samples": "responses of this step or evaluation",
    "reward": "mean total over the determined samples, after the group rule",
    "accuracy": "mean outcome (0 or 1, or token F1) over the samples that were judged",
    "evidence_recall": "share of the gold evidence that the response names",
    "format": "share of responses in the form the reward asks for",
    "response_length": "tokens a response, stop token included",
    "truncated_ratio": "share of responses cut by the response or context cap",
    "lost_ratio": "share of responses lost to the engine (aborted or failed)",
    "ill_formed_ratio": "share of responses that score 0 for their form",
    "ill_formed/*": "the same by reason",
    "undetermined": "samples without a reward: left out of statistics and loss",
    "undetermined/*": "the same by reason",
    "part/*": "mean of a named part of the reward, after the group rule",
    "groups/all_right": "groups whose every outcome is above 0",
    "groups/mixed": "groups with right and wrong outcomes",
    "groups/all_wrong": "groups whose every outcome is 0",
    "groups/flat": "groups whose rewards are all equal: no signal",
    "advantage/*": "what the advantage computation counted",
    "trained_share": "share of samples with an advantage other than 0",
    "judge/*": "what the judge counted since the row before: verdicts, retries, tokens, cache hits",
    "rollout_seconds": "wall seconds from the first request to the last score",
    "host/*": "what the host's own rollout passed along",
}


def describe(key: str) -> str | None:
    """The meaning of an emitted key, or None for an unknown one."""
    if key in METRICS:
        return METRICS[key]
    return METRICS.get(key.partition("/")[0] + "/*")
