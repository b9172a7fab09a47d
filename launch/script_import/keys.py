"""Which flag of a script is which key of a recipe.

One design choice: what is a plain renaming stands in a table; only what needs two flags, or the
absence of one, is code (`derived.py`).
"""

from __future__ import annotations

KEYS = {
    "--seed": "seed",
    "--hf-checkpoint": "model.path",
    "--ref-load": "model.megatron_checkpoint",
    "--rollout-stop-token-ids": "model.stop_token_ids",
    "--apply-chat-template-kwargs": "model.chat_template_kwargs",
    "--prompt-data": "data.train",
    "--rollout-max-prompt-len": "data.max_prompt_tokens",
    "--num-rollout": "rollout.steps",
    "--rollout-batch-size": "rollout.prompts",
    "--n-samples-per-prompt": "rollout.group_size",
    "--rollout-max-context-len": "rollout.context_tokens",
    "--rollout-max-response-len": "rollout.max_response_tokens",
    "--rollout-temperature": "rollout.temperature",
    "--rollout-top-p": "rollout.top_p",
    "--rollout-top-k": "rollout.top_k",
    "--rubric-reward-ratio": "reward.rubric.alpha",
    "--eps-clip": "loss.clip_low",
    "--lr": "optimiser.lr",
    "--lr-warmup-iters": "optimiser.warmup_steps",
    "--weight-decay": "optimiser.weight_decay",
    "--adam-eps": "optimiser.eps",
    "--clip-grad": "optimiser.clip_grad",
    "--eval-interval": "eval.every",
    "--n-samples-per-eval-prompt": "eval.samples_per_prompt",
    "--eval-temperature": "eval.temperature",
    "--eval-top-p": "eval.top_p",
    "--eval-top-k": "eval.top_k",
    "--eval-max-response-len": "eval.max_response_tokens",
    "--save-interval": "checkpoint.every",
    "--wandb-project": "track.project",
    "--wandb-group": "track.group",
    "--wandb-team": "track.team",
    "--wandb-host": "track.host",
    "--tensor-model-parallel-size": "parallel.tp",
    "--pipeline-model-parallel-size": "parallel.pp",
    "--context-parallel-size": "parallel.cp",
    "--expert-model-parallel-size": "parallel.ep",
    "--expert-tensor-parallel-size": "parallel.etp",
    "--max-tokens-per-gpu": "performance.max_tokens_per_gpu",
    "--log-probs-chunk-size": "performance.log_prob_chunk",
    "--rollout-num-gpus-per-engine": "engine.gpus",
    "--sglang-mem-fraction-static": "engine.memory_fraction",
    "--sglang-context-length": "engine.context_tokens",
    "--sglang-server-concurrency": "engine.concurrency",
    "--sglang-cuda-graph-max-bs": "engine.cuda_graph_max_batch",
    "--sglang-cuda-graph-max-bs-decode": "engine.cuda_graph_max_batch",
    "--sglang-json-model-override-args": "engine.config_overrides",
    "--sglang-router-request-timeout-secs": "engine.request_timeout_s",
    "--sglang-ep-size": "engine.ep",
    "--sglang-expert-parallel-size": "engine.ep",
    "--sglang-dp-size": "engine.dp_attention",
    "--sglang-data-parallel-size": "engine.dp_attention",
    "--actor-num-nodes": "cluster.nodes",
    "--actor-num-gpus-per-node": "cluster.gpus_per_node",
}
JSON_KEYS = ("model.chat_template_kwargs", "engine.config_overrides")
LIST_KEYS = ("model.stop_token_ids",)
PATH_KEYS = ("model.path", "model.megatron_checkpoint", "data.train", "data.eval_sets")
"""Kept with `${NAME}` in them, for a person to fill in."""

OURS = "one of LongRL's hooks takes its place"
NOT_CARRIED = {
    "--save": "the run folder holds the checkpoints",
    "--load": "a run goes on from its own run folder",
    "--no-load-optim": "a run that goes on would forget its optimizer's state",
    "--no-load-rng": "a run that goes on would forget its random state",
    "--wandb-always-use-train-step": "LongRL's metrics and slime's share one axis, the step",
    "--num-gpus-per-node": "follows from cluster.gpus_per_node",
    "--seq-length": "sequences have varying lengths under slime, and rotary embeddings no limit",
    "--make-vocab-size-divisible-by": "pads the vocabulary only; ours is 128",
    "--data-source-path": OURS,
    "--custom-generate-function-path": OURS,
    "--custom-rm-path": OURS,
    "--custom-reward-post-process-path": OURS,
    "--custom-rollout-log-function-path": OURS,
    "--custom-eval-rollout-log-function-path": OURS,
    "--dynamic-sampling-filter-path": OURS + "; set rollout.filter",
    "--eval-function-path": OURS,
    "--eval-config": OURS + "; set data.eval_sets and the section [eval]",
    "--reward-key": OURS,
    "--eval-reward-key": OURS,
    "--custom-config-path": "LongRL writes this file; its keys are the host's, give them as flags",
}
DEFAULTS = {
    "--kl-coef": 0.0,
    "--entropy-coef": 0.0,
    "--moe-token-drop-policy": "probs",
    "--position-embedding-type": "rope",
    "--rotary-percent": 1.0,
}
"""Values that change nothing where we do not give the flag ourselves."""
SAME_AS = {"--use-rotary-position-embeddings": "--position-embedding-type"}
"""Another way to say what a flag of ours says."""
