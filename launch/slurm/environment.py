"""Variables every process of a cluster run sees, each with its reason.

One design choice: one table keyed by name, the site's own values last, so that no variable can be
exported twice with two values and the rendered script says why each is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from launch.argument_groups.tracking import tracking_variables
from slime_ext.errors import ExplainedError
from slime_ext.metrics.records import ATTEMPT_VARIABLE
from slime_ext.metrics.shown_config import LOOKS_SECRET
from slime_ext.metrics.wandb_run import wandb_run_id
from slime_ext.recipe.schema import Recipe

NO_PROXY = "localhost,127.0.0.1,0.0.0.0,::1"
LONG_PREFILL_TOKENS = 65_536
"""From here on the prefill of one prompt takes longer than SGLang's health check waits (20 s)."""


class SecretInRecipeError(ExplainedError):
    """A key stands in the recipe, which is rendered, logged and shown."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One exported variable."""

    name: str
    value: str
    reason: str


def environment(recipe: Recipe, run: Path) -> list[Variable]:
    """Variables of a run, sorted by name; none is a secret.

    Raises SecretInRecipeError where cluster.environment holds what looks like a key.
    """
    table: dict[str, tuple[str, str]] = {}
    table |= _always(run)
    if recipe.backend == "slime":
        table |= _host(recipe) | _engines(recipe)
        for name, value in tracking_variables(recipe, run).items():
            table[name] = (value, "the section [track] of the recipe")
        if recipe.cluster.interface:
            table |= _fabric(recipe.cluster.interface)
    if recipe.track.wandb != "off":
        table |= _wandb(recipe, run)
    for name, value in recipe.cluster.environment.items():
        if LOOKS_SECRET.search(name):
            raise SecretInRecipeError(
                f"cluster.environment.{name} looks like a key, and a recipe is shown to everybody; "
                f'write cluster.secrets = ["{name}"] and put the value into the environment or '
                "into cluster.secrets_file (mode 600)"
            )
        table[name] = (value, "cluster.environment of the recipe or the site")
    return [Variable(name, *table[name]) for name in sorted(table)]


def _always(run: Path) -> dict[str, tuple[str, str]]:
    return {
        "PYTHONUNBUFFERED": ("1", "lines appear in the log when they are printed"),
        "HF_HUB_OFFLINE": ("1", "compute nodes ask no hub; `longrl prepare` fetched everything"),
        "no_proxy": (NO_PROXY, "a proxy must not see local traffic"),
        "NO_PROXY": (NO_PROXY, "the same; SGLang's router reads this one first"),
        "LONGRL_RUN": (str(run), "the run folder, for hooks that record"),
    }


def _host(recipe: Recipe) -> dict[str, tuple[str, str]]:
    paths = f"{recipe.slime.path}:{recipe.slime.megatron_path}"
    table = {
        "PYTHONPATH": (paths, "slime and Megatron-LM are used from their folders"),
        "CUDA_DEVICE_MAX_CONNECTIONS": ("1", "Megatron overlaps communication in launch order"),
        "TORCH_NCCL_AVOID_RECORD_STREAMS": ("1", "communication buffers are freed at once"),
        "NVTE_FWD_LAYERNORM_SM_MARGIN": ("8", "leaves multiprocessors to communication, forward"),
        "NVTE_BWD_LAYERNORM_SM_MARGIN": ("8", "leaves multiprocessors to communication, backward"),
    }
    if recipe.cluster.colocate:
        reason = "memory that NCCL maps itself cannot be handed to the engines between phases"
        table["NCCL_CUMEM_ENABLE"] = ("0", reason)
        table["NCCL_NVLS_ENABLE"] = ("0", "NVLink multicast buffers stay allocated between phases")
    return table


def _engines(recipe: Recipe) -> dict[str, tuple[str, str]]:
    if recipe.rollout.context_tokens <= LONG_PREFILL_TOKENS:
        return {}
    seconds = str(int(recipe.rollout.context_tokens / 500))
    reason = "an engine that computes one long prompt is silent for minutes, not dead"
    return {"SGLANG_HEALTH_CHECK_TIMEOUT": (seconds, reason)}


def _fabric(interface: str) -> dict[str, tuple[str, str]]:
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
    return dict.fromkeys(names, (interface, "cluster.interface: the network between the nodes"))


def _wandb(recipe: Recipe, run: Path) -> dict[str, tuple[str, str]]:
    return {
        "WANDB_MODE": (recipe.track.wandb, "track.wandb of the recipe"),
        "WANDB_RESUME": ("allow", "a restart goes on in the same W&B run"),
        "WANDB_DIR": (str(run), "W&B's own files lie in the run folder"),
    }


def attempt_variables(recipe: Recipe, run: Path, attempt: int) -> dict[str, str]:
    """Variables that are known when an attempt starts and not before; none is a secret.

    The id of the W&B run is the run folder's, one over all restarts; slime and its secondary
    processes take it from here. Raises RunIdError as `wandb_run_id`.
    """
    variables = {ATTEMPT_VARIABLE: str(attempt)}
    if recipe.track.wandb != "off":
        variables["WANDB_RUN_ID"] = wandb_run_id(run)
    return variables
