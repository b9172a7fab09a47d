"""Imports one package and makes one small call: `python probe.py NAME` prints a line of JSON.

One design choice: it runs as a script of the standard library alone, in the interpreter of the job,
so that a package that crashes or takes half a minute to import does so in a process of its own.
Errors are left to Python: the last line of its traceback is what the report shows.
"""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

MARK = "longrl-probe "
"""Opens the line with the answer; packages print lines of their own when they are imported."""

Facts = dict[str, Any]


def probe_python() -> Facts:
    return {"version": "{}.{}.{}".format(*sys.version_info[:3]), "call": sys.executable}


def probe_longrl() -> Facts:
    return {"call": f"{importlib.import_module('slime_ext.hooks').__name__} imported"}


def probe_slime() -> Facts:
    sample = importlib.import_module("slime.utils.types").Sample()
    return {"fan_out": hasattr(sample, "rollout_id"), "call": "Sample()"}


def probe_megatron() -> Facts:
    core = importlib.import_module("megatron.core")
    transformer = importlib.import_module("megatron.core.transformer")
    transformer.TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
    return {
        "version": core.__version__,
        "file": core.__file__,
        "training": importlib.util.find_spec("megatron.training") is not None,
        "call": "TransformerConfig(...)",
    }


def probe_sglang() -> Facts:
    arguments = importlib.import_module("sglang.srt.server_args")
    return {"call": f"{len(arguments.ServerArgs.__annotations__)} fields of ServerArgs"}


def probe_torch() -> Facts:
    torch = importlib.import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = float((torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)).sum())
    if total != 8.0:
        raise ArithmeticError(f"a product of ones on {device} sums to {total}, not 8")
    return {"cuda": torch.cuda.device_count(), "call": f"2x2 product on {device}"}


def probe_transformer_engine() -> Facts:
    engine = importlib.import_module("transformer_engine.pytorch")
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return {"call": f"{engine.RMSNorm.__name__} found, no GPU to run it on"}
    engine.RMSNorm(16)(torch.ones(2, 16, device="cuda"))
    return {"call": "RMSNorm on cuda"}


def probe_flash_attn() -> Facts:
    attention = importlib.import_module("flash_attn").flash_attn_func
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return {"call": f"{attention.__name__} found, no GPU to run it on"}
    ones = torch.ones(1, 8, 2, 64, device="cuda", dtype=torch.bfloat16)
    attention(ones, ones, ones, causal=True)
    return {"call": "flash_attn_func on cuda"}


def probe_apex() -> Facts:
    optimizers = importlib.import_module("apex.optimizers")
    importlib.import_module("amp_C")
    return {"call": f"{optimizers.FusedAdam.__name__}, amp_C"}


def probe_wandb() -> Facts:
    wandb = importlib.import_module("wandb")
    return {"generate_id": hasattr(wandb.util, "generate_id"), "call": "wandb.util"}


def probe_datasets() -> Facts:
    row = importlib.import_module("datasets").Dataset.from_list([{"answer": 42}])[0]
    if row != {"answer": 42}:
        raise ArithmeticError(f"a data set of one row gave back {row}")
    return {"call": "Dataset.from_list"}


def probe_numpy() -> Facts:
    return {"call": f"sum {importlib.import_module('numpy').ones(2).sum():g}"}


def probe_ray() -> Facts:
    ray = importlib.import_module("ray")
    return {"version": ray.__version__, "call": f"{ray.init.__name__} found"}


PROBES: dict[str, tuple[str | None, Callable[[], Facts]]] = {
    "python": (None, probe_python),
    "longrl": ("longrl", probe_longrl),
    "slime": ("slime", probe_slime),
    "megatron": ("megatron-core", probe_megatron),
    "sglang": ("sglang", probe_sglang),
    "torch": ("torch", probe_torch),
    "transformer-engine": ("transformer-engine", probe_transformer_engine),
    "flash-attn": ("flash-attn", probe_flash_attn),
    "apex": ("apex", probe_apex),
    "wandb": ("wandb", probe_wandb),
    "datasets": ("datasets", probe_datasets),
    "numpy": ("numpy", probe_numpy),
    "ray": ("ray", probe_ray),
}
"""For each package the name of its distribution and what is called."""


def installed(name: str | None) -> Facts:
    """What the metadata says of a distribution: version, summary, whether it came from an index."""
    try:
        found = metadata.distribution(name or "")
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return {
        "version": found.version,
        "summary": found.metadata["Summary"],
        # A wheel from an index leaves no such file; a checkout or an address does (PEP 610).
        "from_index": found.read_text("direct_url.json") is None,
    }


def main() -> None:
    """Answer for the package that argv names; its metadata first, should the import fail."""
    distribution, probe = PROBES[sys.argv[1]]
    facts = installed(distribution)
    print(MARK + json.dumps(facts), flush=True)
    print(MARK + json.dumps(facts | probe()), flush=True)


if __name__ == "__main__":
    # Its own folder must not stand before the packages it looks for.
    sys.path.pop(0)
    main()
