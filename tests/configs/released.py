"""What the released training scripts of LongTraceRL set, in the keys of our recipes, and where our
recipes say something else on purpose.

The facts of scripts/train/*.sh of THU-KEG/LongTraceRL; flags that only name files, hosts and W&B
accounts are left out, and so are those that state the model's shape.
"""

from __future__ import annotations

from typing import Any

COMMON: dict[str, Any] = {
    "slime.version": "v0.2.4",
    "parallel.tp": 4,
    "parallel.pp": 2,
    "parallel.cp": 4,
    "parallel.sequence_parallel": True,
    "cluster.nodes": 4,
    "cluster.gpus_per_node": 8,
    "cluster.colocate": True,
    "engine.gpus": 8,
    "engine.memory_fraction": 0.7,
    "engine.concurrency": 128,
    "engine.request_timeout_s": 36000.0,
    "engine.ep": 1,
    "engine.cuda_graph_max_batch": None,
    "engine.config_overrides": {},
    "rollout.steps": 200,
    "rollout.prompts": 16,
    "rollout.group_size": 8,
    "rollout.updates": 1,
    "rollout.context_tokens": 160000,
    "rollout.max_response_tokens": 32000,
    "rollout.temperature": 1.0,
    "data.train": "hub:THU-KEG/LongTraceRL",
    "data.eval": "aa_lcr.jsonl",
    "data.shuffle": True,
    "data.max_prompt_tokens": 159999,
    "performance.max_tokens_per_gpu": 8192,
    "performance.recompute": "full",
    "performance.log_prob_chunk": None,
    "performance.offload": True,
    "reward.kind": "rubric",
    "reward.rubric.alpha": 0.3,
    "reward.rubric.group_max": True,
    "reward.rubric.mode": "positive_only",
    "reward.rubric.text": "content",
    "reward.rubric.matcher": "legacy",
    "loss.clip_low": 0.2,
    "loss.clip_high": 0.28,
    "loss.normalise": "token",
    "loss.kl_coef": 0.0,
    "loss.icepop": [0.5, 2.0],
    "optimiser.lr": 2e-6,
    "optimiser.warmup_steps": 0,
    "optimiser.betas": [0.9, 0.98],
    "optimiser.weight_decay": 0.1,
    "eval.every": 20,
    "eval.samples_per_prompt": 4,
    "eval.temperature": 0.6,
    "eval.top_p": 0.95,
    "eval.top_k": 20,
    "eval.max_response_tokens": 32000,
    "checkpoint.every": 20,
    "checkpoint.keep": None,
    "extra.megatron": {"no-check-for-nan-in-loss-and-grad": True},
}
"""`--use-kl-loss` with coefficient 0 is kl_coef 0; max_prompt_tokens follows from the context less
one; a checkpoint.keep of None keeps all (with one optimiser state)."""

RELEASED: dict[str, dict[str, Any]] = {
    "longtracerl/qwen3-4b": COMMON | {"model.stop_token_ids": [151643, 151645]},
    "longtracerl/r1-qwen3-8b": COMMON
    | {
        "model.stop_token_ids": [151645],
        "engine.cuda_graph_max_batch": 64,
        "engine.config_overrides": {"max_position_embeddings": 161000},
    },
    "longtracerl/qwen3-30b-a3b": COMMON
    | {
        "model.stop_token_ids": [151643, 151645],
        "parallel.ep": 16,
        "parallel.etp": 1,
        "engine.ep": 8,
    },
}

DEVIATIONS: dict[str, str] = {
    "slime.version": "v0.3.1 is this project's first host; v0.2.4 works too",
    "engine.request_timeout_s": "4 h instead of 10: a lost request is noticed the same day",
    "data.train": "64 rows are held out to choose a checkpoint by",
    "data.eval": "the paper's AA-LCR is a test set; choosing a checkpoint by it selects on it",
    "data.max_prompt_tokens": "the paper's 128,000, so that 32,000 tokens of response always fit",
    "reward.rubric.matcher": "whole words in Unicode; the released one finds Ur in natural",
    "eval.max_response_tokens": "unset, which takes the rollout's 32,000",
    "extra.megatron": "a loss or gradient that is no number ends the run and not the model",
    "checkpoint.keep": "bounded, for the disk: a save is 56 GB (4B) to 427 GB (30B)",
}
"""Of all three recipes."""

ADDED_FLAGS: dict[str, dict[str, str]] = {
    "longtracerl/r1-qwen3-8b": {
        "--custom-model-provider-path": "the model's YaRN reached the engines, not the trainer",
    },
}
"""Flags about the model that a script lacks and our command has."""
