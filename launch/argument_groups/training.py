"""The trainer's groups: checkpoint, GRPO, optimiser, parallel, performance.

One design choice: what slime cannot express (a constant-length loss) is refused instead of
approximated, because the run would be another experiment than the recipe says.
"""

from __future__ import annotations

from pathlib import Path

from launch.argument_groups.gpus import gpu_split
from launch.argument_groups.words import CannotExpressError, absolute, words
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

ICEPOP = "slime.backends.megatron_utils.loss.icepop_function"


def checkpoint_group(recipe: Recipe, run: Path) -> list[str]:
    """Where weights come from and go. `--ref-load` is what a run without a checkpoint starts from;
    slime v0.3.1 reads a Hugging Face folder there, v0.2.4 does not."""
    model, folder = recipe.model, RunFolder(run)
    if model.path.startswith("builtin:"):
        raise CannotExpressError(
            f"model.path = {model.path!r} ships for the embedded backend only; name a Hugging Face "
            'folder, or set backend = "embedded"'
        )
    if model.megatron_checkpoint is None and recipe.slime.version == "v0.2.4":
        raise CannotExpressError(
            "slime v0.2.4 starts from a torch_dist checkpoint only; convert the model with its "
            "tools/convert_hf_to_torch_dist.py and name the folder in model.megatron_checkpoint"
        )
    return words(
        {
            "hf-checkpoint": absolute(model.path),
            "ref-load": absolute(model.megatron_checkpoint or model.path),
            "load": folder.checkpoints,
            "save": folder.checkpoints,
            "save-interval": recipe.checkpoint.every,
            "ckpt-format": "torch_dist",
        }
    )


def grpo_group(recipe: Recipe) -> list[str]:
    """The objective. Advantages come from our reward post-process hook, so slime's own settings of
    them are left out; with `grpo` it hands each on to all tokens of its sample."""
    loss = recipe.loss
    if loss.normalise == "constant":
        raise CannotExpressError(
            'loss.normalise = "constant" (Dr.GRPO) has no flag in slime; write "token" or "rollout"'
        )
    if loss.clip_c is not None:
        raise CannotExpressError(
            f"loss.clip_c = {loss.clip_c}: slime {recipe.slime.version} parses --eps-clip-c and "
            "never passes it to the loss; take loss.clip_c out (with rollout.updates = 1 the ratio "
            "is 1 and it never binds)"
        )
    low, high = loss.icepop or (None, None)
    return words(
        {
            "advantage-estimator": "grpo",
            "eps-clip": loss.clip_low,
            "eps-clip-high": loss.clip_high,
            "calculate-per-token-loss": loss.normalise == "token",
            "use-kl-loss": loss.kl_coef > 0,
            "kl-loss-coef": loss.kl_coef or None,
            "kl-loss-type": "low_var_kl" if loss.kl_coef else None,
            "use-tis": loss.icepop is not None,
            "custom-tis-function-path": ICEPOP if loss.icepop else None,
            "tis-clip-low": low,
            "tis-clip": high,
        }
    )


def optimiser_group(recipe: Recipe) -> list[str]:
    """AdamW at a constant rate after the warm-up. The scheduler's state in a checkpoint gives way
    to these values, as a resumed run may have more steps."""
    section = recipe.optimiser
    return words(
        {
            "optimizer": "adam",
            "lr": section.lr,
            "lr-decay-style": "constant",
            "lr-warmup-iters": section.warmup_steps,
            "weight-decay": section.weight_decay,
            "adam-beta1": section.betas[0],
            "adam-beta2": section.betas[1],
            "adam-eps": section.eps,
            "clip-grad": section.clip_grad,
            "override-opt-param-scheduler": True,
        }
    )


def parallel_group(recipe: Recipe, shape: ModelShape) -> list[str]:
    """GPUs of the trainer and how one copy of the model is cut."""
    layout, split = recipe.parallel, gpu_split(recipe)
    experts = shape.moe is not None
    return words(
        {
            "actor-num-nodes": split.train_nodes,
            "actor-num-gpus-per-node": split.train_per_node,
            "num-gpus-per-node": recipe.cluster.gpus_per_node,
            "colocate": recipe.cluster.colocate,
            "tensor-model-parallel-size": layout.tp,
            "pipeline-model-parallel-size": layout.pp,
            "context-parallel-size": layout.cp,
            "expert-model-parallel-size": layout.ep if experts else None,
            "expert-tensor-parallel-size": layout.etp if experts else None,
            "sequence-parallel": layout.sequence_parallel and layout.tp > 1,
        }
    )


def performance_group(recipe: Recipe) -> list[str]:
    """Memory and speed of the trainer.

    v0.2.4 balances over the whole step and so moves samples between its updates.
    """
    section = recipe.performance
    full = section.recompute == "full"
    return words(
        {
            "use-dynamic-batch-size": True,
            "max-tokens-per-gpu": section.max_tokens_per_gpu,
            "balance-data": recipe.slime.version != "v0.2.4" or recipe.rollout.updates == 1,
            "recompute-granularity": "full" if full else None,
            "recompute-method": "uniform" if full else None,
            "recompute-num-layers": 1 if full else None,
            "log-probs-chunk-size": section.log_prob_chunk,
            "no-offload-train": recipe.cluster.colocate and not section.offload,
            "attention-backend": "flash",
            "attention-dropout": 0.0,
            "hidden-dropout": 0.0,
            "attention-softmax-in-fp32": True,
            "accumulate-allreduce-grads-in-fp32": True,
        }
    )
