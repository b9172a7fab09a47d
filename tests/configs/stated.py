"""Numbers the papers and released scripts state for each method, and our choices where they do not,
in the keys of our recipes (methods.md is their source)."""

from __future__ import annotations

from typing import Any

QWEN3_STOPS = [151643, 151645]

LONGTRACERL: dict[str, Any] = {
    "backend": "slime",
    "data.format": "longtracerl",
    "data.max_prompt_tokens": 128000,
    "rollout.context_tokens": 160000,
    "rollout.max_response_tokens": 32000,
    "rollout.prompts": 16,
    "rollout.group_size": 8,
    "rollout.updates": 1,
    "rollout.steps": 200,
    "rollout.temperature": 1.0,
    "reward.kind": "rubric",
    "reward.rubric.alpha": 0.3,
    "reward.rubric.mode": "positive_only",
    "reward.rubric.text": "content",
    "reward.rubric.group_max": True,
    "outcome.kind": "judge",
    "outcome.judge.protocol": "aa_lcr",
    "advantage.std": True,
    "advantage.std_floor": 1e-6,
    "loss.clip_low": 0.2,
    "loss.clip_high": 0.28,
    "loss.normalise": "token",
    "loss.kl_coef": 0.0,
    "loss.icepop": [0.5, 2.0],
    "optimiser.lr": 2e-6,
    "optimiser.betas": [0.9, 0.98],
    "optimiser.weight_decay": 0.1,
    "optimiser.warmup_steps": 0,
    "eval.temperature": 0.6,
    "eval.top_p": 0.95,
    "eval.top_k": 20,
    "eval.every": 20,
    "eval.samples_per_prompt": 4,
    "checkpoint.every": 20,
    "performance.recompute": "full",
    "parallel.tp": 4,
    "parallel.pp": 2,
    "parallel.cp": 4,
    "engine.gpus": 8,
    "engine.memory_fraction": 0.7,
    "cluster.nodes": 4,
    "cluster.gpus_per_node": 8,
    "cluster.colocate": True,
}
LONGRLVR: dict[str, Any] = {
    "backend": "slime",
    "data.format": "longrlvr",
    "data.max_prompt_tokens": 65536,
    "rollout.max_response_tokens": 4096,
    "rollout.context_tokens": 69632,
    "rollout.group_size": 8,
    "rollout.temperature": 1.0,
    "reward.kind": "chunk",
    "reward.chunk.beta": 2.0,
    "reward.chunk.eta": 0.1,
    "reward.chunk.mode": "full",
    "outcome.judge.protocol": "longrlvr",
    "loss.clip_low": 0.2,
    "loss.clip_high": 0.28,
    "loss.normalise": "token",
    "loss.kl_coef": 0.0,
    "optimiser.lr": 1e-6,
    "optimiser.warmup_steps": 5,
    "optimiser.weight_decay": 0.1,
    "optimiser.clip_grad": 1.0,
}
LONGRLVR_PAPER = {"rollout.prompts": 512, "rollout.updates": 8, "rollout.filter": "none"}
LONGRLVR_SCRIPT = {
    "rollout.prompts": 32,
    "rollout.updates": 4,
    "rollout.filter": "flat",
    "rollout.filter_max_batches": 10,
}
EAPO: dict[str, Any] = {
    "backend": "slime",
    "data.max_prompt_tokens": 122880,
    "rollout.max_response_tokens": 8192,
    "rollout.context_tokens": 131072,
    "rollout.prompts": 64,
    "rollout.group_size": 6,
    "rollout.updates": 2,
    "rollout.steps": 73,
    "rollout.temperature": 1.0,
    "reward.kind": "outcome",
    "outcome.judge.protocol": "eapo",
    "loss.clip_low": 0.2,
    "loss.clip_high": 0.28,
    "loss.kl_coef": 0.0,
    "optimiser.lr": 2e-6,
    "optimiser.warmup_steps": 0,
    "cluster.nodes": 2,
}
COEM: dict[str, Any] = {
    "backend": "slime",
    "seed": 17,
    "data.max_prompt_tokens": 8192,
    "rollout.max_response_tokens": 1024,
    "rollout.context_tokens": 9216,
    "rollout.prompts": 128,
    "rollout.group_size": 8,
    "rollout.updates": 16,
    "rollout.steps": 500,
    "rollout.temperature": 1.0,
    "rollout.top_p": 1.0,
    "reward.kind": "outcome",
    "outcome.kind": "f1",
    "outcome.f1_threshold": None,
    "advantage.std": False,
    "loss.clip_low": 0.2,
    "loss.clip_high": 0.2,
    "loss.kl_coef": 1e-3,
    "loss.normalise": "token",
    "optimiser.lr": 1e-6,
    "optimiser.warmup_steps": 20,
    "eval.every": 25,
    "eval.temperature": 0.0,
    "model.family": "plain",
    "model.chat_template_kwargs": {"enable_thinking": False},
    "engine.memory_fraction": 0.8,
    "cluster.nodes": 1,
    "cluster.gpus_per_node": 8,
}

STATED: dict[str, dict[str, Any]] = {
    "longtracerl/qwen3-4b": LONGTRACERL
    | {
        "model.hub": "Qwen/Qwen3-4B-Thinking-2507",
        "model.family": "qwen3",
        "model.stop_token_ids": QWEN3_STOPS,
        "parallel.ep": 1,
    },
    "longtracerl/r1-qwen3-8b": LONGTRACERL
    | {
        "model.hub": "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
        "model.family": "deepseek_r1",
        "model.stop_token_ids": [151645],
        "engine.config_overrides": {"max_position_embeddings": 161000},
        "parallel.ep": 1,
    },
    "longtracerl/qwen3-30b-a3b": LONGTRACERL
    | {
        "model.hub": "Qwen/Qwen3-30B-A3B-Thinking-2507",
        "model.family": "qwen3",
        "model.stop_token_ids": QWEN3_STOPS,
        "parallel.ep": 16,
        "parallel.etp": 1,
    },
    **{
        f"longrlvr/{stem}{tail}": LONGRLVR | batches | {"model.hub": hub, "model.family": "plain"}
        for stem, hub in (
            ("qwen2.5-7b-1m", "Qwen/Qwen2.5-7B-Instruct-1M"),
            ("qwen2.5-14b-1m", "Qwen/Qwen2.5-14B-Instruct-1M"),
            ("llama-3.1-8b", "meta-llama/Llama-3.1-8B-Instruct"),
        )
        for tail, batches in (("", LONGRLVR_PAPER), ("-released", LONGRLVR_SCRIPT))
    },
    "eapo/qwen3-14b": EAPO
    | {
        "model.hub": "Qwen/Qwen3-14B",
        "model.family": "qwen3",
        "model.rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32768,
        },
    },
    "eapo/qwen3-30b-a3b-instruct": EAPO
    | {"model.hub": "Qwen/Qwen3-30B-A3B-Instruct-2507", "model.family": "plain"},
    "eapo/qwen3-30b-a3b-thinking": EAPO
    | {"model.hub": "Qwen/Qwen3-30B-A3B-Thinking-2507", "model.family": "qwen3"},
    "coem/qwen3.5-4b": COEM | {"model.hub": "Qwen/Qwen3.5-4B", "engine.gpus": 1},
    "coem/qwen3.5-9b": COEM | {"model.hub": "Qwen/Qwen3.5-9B", "engine.gpus": 2},
}

ROLLOUTS: dict[str, tuple[int, int]] = {
    "longtracerl/qwen3-4b": (128, 128),
    "longrlvr/qwen2.5-7b-1m": (4096, 512),
    "longrlvr/qwen2.5-7b-1m-released": (256, 64),
    "eapo/qwen3-14b": (384, 192),
    "coem/qwen3.5-4b": (1024, 64),
}
"""Responses of a step and of an update (methods.md, "Units of batch size")."""

ABLATIONS: dict[str, dict[str, Any]] = {
    "longtracerl/qwen3-4b-alpha-0.1": {"reward.rubric.alpha": 0.1},
    "longtracerl/qwen3-4b-alpha-0.5": {"reward.rubric.alpha": 0.5},
    "longtracerl/qwen3-4b-positive-and-negative": {"reward.rubric.mode": "positive_and_negative"},
    "longtracerl/qwen3-4b-outcome-only": {"reward.rubric.mode": "outcome_only"},
    **{
        f"longtracerl/qwen3-4b-distractors-{name}": {
            "data.train": f"data/longtracerl/{name}/train.jsonl",
            "data.eval": f"data/longtracerl/{name}/heldout.jsonl",
            "data.format": "longrl",
            "data.prompt": "documents",
        }
        for name in ("random", "search", "traj-random")
    },
    **{
        f"longrlvr/{model}-{name.replace('_', '-')}": {"reward.chunk.mode": name}
        for model in ("qwen2.5-7b-1m", "qwen2.5-14b-1m", "llama-3.1-8b")
        for name in ("answer_only", "context_only")
    },
}
"""Every key in which an ablation differs from the recipe it is one of, its name apart."""
