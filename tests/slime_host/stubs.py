"""Placeholders for the two packages slime imports while reading flags and that need a GPU: SGLang
and Megatron-LM's `megatron.training`.

One design choice: they hold only what slime's flag parsing and rollout manager read, so a slime
that begins to use more of either fails here by name instead of running on an invention. Ray,
transformers, sglang-router, wandb and megatron-core are the real ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_SGLANG_SIZES = (
    "data-parallel-size",
    "pipeline-parallel-size",
    "expert-parallel-size",
    "moe-dp-size",
)
"""By their long names, the only ones that both versions of slime look up."""
_SGLANG_SWITCHES = ("enable-dp-attention", "enable-deterministic-inference")
_SGLANG_TEXTS = ("speculative-algorithm", "mem-fraction-static", "context-length")
_MEGATRON_NUMBERS: dict[str, int | None] = {
    "num-layers": 2,
    "hidden-size": 64,
    "ffn-hidden-size": 128,
    "num-attention-heads": 4,
    "seq-length": None,
    "max-position-embeddings": None,
    "vocab-size": None,
    "tensor-model-parallel-size": 1,
    "pipeline-model-parallel-size": 1,
    "context-parallel-size": 1,
    "rotary-base": 10000,
    "ckpt-step": None,
    "lr-decay-iters": None,
    "train-iters": None,
    "num-experts": None,
    "seed": 1234,
}
_MEGATRON_SWITCHES = (
    "fp16",
    "bf16",
    "untie-embeddings-and-output-weights",
    "multi-latent-attention",
    "use-dist-ckpt",
)
_MEGATRON_TEXTS = (
    "tokenizer-model",
    "tokenizer-type",
    "rope-type",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
)


@dataclasses.dataclass
class ServerArgs:
    """SGLang's table of server flags; slime adds each to its own parser as `--sglang-NAME`. Its
    fields are those that slime reads of an engine from outside."""

    host: str
    port: int
    node_rank: int
    enable_memory_saver: bool

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        for name in _SGLANG_SIZES:
            parser.add_argument(f"--{name}", type=int, default=1)
        for name in _SGLANG_SWITCHES:
            parser.add_argument(f"--{name}", action="store_true")
        for name in _SGLANG_TEXTS:
            parser.add_argument(f"--{name}")


def install() -> None:
    """Put the placeholders where imports find them; called in every process that imports slime."""
    _module("sglang")
    _module("sglang.srt")
    _module("sglang.srt.server_args", ServerArgs=ServerArgs)
    _module(
        "sglang.srt.constants",
        GPU_MEMORY_TYPE_CUDA_GRAPH="cuda_graph",
        GPU_MEMORY_TYPE_KV_CACHE="kv_cache",
        GPU_MEMORY_TYPE_WEIGHTS="weights",
    )
    _module("sglang.srt.utils", kill_process_tree=_no_process_to_kill)
    _module("megatron.training")
    _module(
        "megatron.training.arguments", parse_args=_megatron_arguments, validate_args=lambda a: a
    )
    _module("megatron.training.tokenizer")
    _module("megatron.training.tokenizer.tokenizer", _vocab_size_with_padding=lambda size, _: size)


def _megatron_arguments(
    extra_args_provider: Callable[[argparse.ArgumentParser], argparse.ArgumentParser],
    ignore_unknown_args: bool = False,
) -> argparse.Namespace:
    """Megatron-LM's `parse_args`: its flags, the caller's, and silence about any other."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in _MEGATRON_NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in _MEGATRON_SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    for name in _MEGATRON_TEXTS:
        parser.add_argument(f"--{name}")
    parser.add_argument("--norm-epsilon", type=float, default=1e-6)
    parser = extra_args_provider(parser)
    return parser.parse_known_args()[0] if ignore_unknown_args else parser.parse_args()


def _no_process_to_kill(*_: Any, **__: Any) -> None:
    raise AssertionError("slime started a server process; these tests give it engines instead")


def _module(name: str, **content: Any) -> None:
    module = ModuleType(name)
    module.__path__ = []
    vars(module).update(content)
    sys.modules[name] = module
