"""Evaluation alone, by slime's own rollout manager; no trainer and no Megatron model is built.

    python -m slime_ext.host.evaluate SLIME_FLAGS [--longrl-step N] [--longrl-engine HOST:PORT]

One design choice: the calls are those of slime's train.py up to its first evaluation, so the flags
of any training script of a user's are understood; Ray begins first, because W&B refuses a second
process to a run that is older than the local Ray.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.host.features import UnsupportedHostError, logging_module, release, require_slime

ROLLOUT_ONLY = "--debug-rollout-only"
STEP = "--longrl-step"
ENGINE = "--longrl-engine"
CARRIED = ("PYTHONPATH", "TENSORBOARD_DIR", "WANDB_DIR", "WANDB_MODE")
"""Variables that actors on other nodes need as this process has them; none holds a key."""
SUBMITTED = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set where `ray job submit` has chosen the variables of all actors; Ray takes no second choice."""
NO_GPUS: tuple[None, list[int], list[int]] = (None, [], [])
"""The placement group of engines from outside. slime's own maker cannot be asked: v0.2.4 hands Ray
an empty list, and after v0.3.1 it waits for the GPUs of a trainer that is never built."""
EXTERNAL_MODULE = "slime.backends.sglang_utils.external"
"""A slime that has it tells its router of engines from outside."""


def main() -> None:
    """Evaluate once by the flags in sys.argv; exit code 2 for an error that explains itself."""
    try:
        evaluate()
    except ExplainedError as error:
        # Ray wraps what an actor raised, with the traceback of the actor as its text.
        print(f"longrl: {getattr(error, 'cause', error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def evaluate() -> None:
    """Run the evaluation function that the flags in sys.argv name, as rollout N of `--longrl-step`.

    Raises UnsupportedHostError where slime is absent or cannot do what the flags ask, and
    ExplainedError where Ray has too few GPUs; what slime itself raises passes through.
    """
    require_slime()
    if ROLLOUT_ONLY not in sys.argv:
        sys.argv.append(ROLLOUT_ONLY)
    parse_args = importlib.import_module("slime.utils.arguments").parse_args
    with _ray() as ray:
        args = parse_args(add_custom_arguments=_own_arguments)
        attach_engine(args)
        require_gpus(args, ray.cluster_resources().get("GPU", 0))
        _evaluate(ray, args)


def attach_engine(args: argparse.Namespace) -> None:
    """Let the engine or router of `--longrl-engine` be the router that slime was given, with no
    engine behind it for slime to start.

    Raises UnsupportedHostError where slime was given several engines and cannot use them.
    """
    if args.rollout_external_engine_addrs and importlib.util.find_spec(EXTERNAL_MODULE) is None:
        raise UnsupportedHostError(
            f"this slime is {release()}, whose router does not learn of engines from outside; put "
            "a router before them and name that one address, or install slime v0.3.1 or newer"
        )
    if args.longrl_engine is None:
        return
    if args.custom_config_path is None:
        raise ExplainedError(
            f"{ENGINE} needs --custom-config-path FILE beside it, the file with our one key, "
            "longrl_recipe: RUN/recipe.toml"
        )
    host, _, port = args.longrl_engine.rpartition(":")
    args.sglang_router_ip, args.sglang_router_port = host, int(port)
    # v0.2.4 takes no group of 0 GPUs, but no group at all.
    config = Path(args.custom_config_path).with_name("no_engines.yaml")
    config.write_text("sglang: [{name: default, server_groups: []}]\n")
    args.rollout_num_gpus, args.sglang_config = 0, str(config)


def require_gpus(args: argparse.Namespace, found: float) -> None:
    """Raise ExplainedError where slime would wait for GPUs that Ray does not have (`found`)."""
    wanted = 0 if _outside(args) else args.rollout_num_gpus or 0
    if wanted > found:
        raise ExplainedError(
            f"--rollout-num-gpus asks for {wanted} GPUs and Ray has {found:g}; lower "
            "it (cluster.nodes, cluster.gpus_per_node), or name running engines: --engines URL,URL"
        )


def _evaluate(ray: Any, args: argparse.Namespace) -> None:
    placement = importlib.import_module("slime.ray.placement_group")
    tracking = logging_module()
    tracking.configure_logger()
    group = NO_GPUS if _outside(args) else placement.create_placement_groups(args)["rollout"]
    tracking.init_tracking(args)
    manager, _ = placement.create_rollout_manager(args, group)
    try:
        ray.get(manager.eval.remote(rollout_id=args.longrl_step))
    finally:
        if not isinstance(sys.exception(), KeyboardInterrupt | SystemExit):
            _dispose(ray, manager)
        tracking.finish_tracking(args)


def _dispose(ray: Any, manager: Any) -> None:
    """End the manager's tracking and its engines; not for one that is still busy, which answers
    nothing: the end of Ray ends that one. A dead one leaves nothing to be ended."""
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(manager.dispose.remote())
        engines = ray.get(manager.get_updatable_engines_and_lock.remote())[0]
        ray.get([engine.shutdown.remote() for engine in engines])


@contextlib.contextmanager
def _ray() -> Iterator[Any]:
    """The Ray that RAY_ADDRESS names, else one of our own: without an address Ray would join
    whichever cluster was last started on this node, somebody else's included."""
    ray = importlib.import_module("ray")
    carried = {name: os.environ[name] for name in CARRIED if name in os.environ}
    environment = None if SUBMITTED in os.environ else {"env_vars": carried}
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address=address, include_dashboard=False, runtime_env=environment)
    # Ray has put its own in place, which aborts with a trace.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield ray
    finally:
        ray.shutdown()


def _outside(args: argparse.Namespace) -> bool:
    return bool(args.rollout_external_engine_addrs or args.longrl_engine)


def _own_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(STEP, type=int, default=0, help="step under which metrics are logged")
    parser.add_argument(ENGINE, help="HOST:PORT of one engine or router that runs already")
    return parser


if __name__ == "__main__":
    main()
