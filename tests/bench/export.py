"""Export of a Megatron checkpoint: equality with slime's converter, peak memory, time.

A generated bfloat16 checkpoint of 751.6M parameters (untied, 151,936 words, cut in two by tensor
parallelism) is exported by `longrl export` and, where SLIME_DIR names a checkout of slime, by its
own converter; each side in processes of its own, warmed up, three times in alternation, medians.
Memory is the process's peak less that of one which only imports. `cp` copies the exported files.

A second checkpoint has the shape of Qwen3-8B, with as many layers as fit on `--disk-gb` together
with their export: the peak does not depend on the number of layers.

Limits: bitwise equality; peak above imports at most 0.35 of the model, and under 1.5 GiB for the 8B
shape; time not above slime's converter's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import shape_from_config

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
REPEATS = 3
SMALL = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 28,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": False,
}
LARGE = {
    **SMALL,
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_attention_heads": 32,
}
MIB = 2**20


_MEASURE = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=2)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024)
"""
"""Runs a command from a process of a few MiB: the peak that the kernel reports for a child begins
with that of its parent, which has torch in it here."""


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; its wall seconds and peak resident MiB."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURE, *command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    code, seconds, peak = done.stdout.split()
    if int(code):
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{done.stderr}")
    return float(seconds), float(peak)


def make(folder: Path, config: dict[str, Any]) -> tuple[Path, Path]:
    """A checkpoint of random weights, and the folder of its base model."""
    from tests.fakes.stacked_checkpoints import write_stacked

    reference = folder / "base"
    reference.mkdir(parents=True)
    (reference / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    (reference / "tokenizer.json").write_text("{}")
    return write_stacked(folder / "iter_0000001", shape_from_config(config), 2), reference


class Ours:
    """`longrl export`."""

    def __init__(self, checkpoint: Path, reference: Path, out: Path) -> None:
        main = "launch.cli.main"
        self.out, self.environment = out, {"PYTHONPATH": str(ROOT)}
        words = ["export", str(checkpoint), str(out), "--reference", str(reference)]
        self.command = [sys.executable, "-m", main, *words]
        self.imports = [sys.executable, "-c", f"import {main}, longrl_tools.export.export"]


class Slimes:
    """slime's `tools/convert_torch_dist_to_hf.py`, in the environment of its tests."""

    def __init__(self, checkpoint: Path, reference: Path, out: Path, slime: Path) -> None:
        python, script = ROOT / ".venv-slime" / "bin" / "python", "convert_torch_dist_to_hf"
        self.out, self.environment = out, {"PYTHONPATH": f"{slime}:{slime / 'tools'}"}
        words = ["--input-dir", checkpoint, "--output-dir", out, "--origin-hf-dir", reference]
        words += ["--vocab-size", SMALL["vocab_size"]]
        self.command = [str(word) for word in (python, slime / f"tools/{script}.py", *words)]
        self.imports = [str(python), "-c", f"import {script}"]


Side = Ours | Slimes


def once(side: Side) -> tuple[float, float]:
    """One export into an empty folder."""
    shutil.rmtree(side.out, ignore_errors=True)
    return measured(side.command, side.environment)


def compare(sides: dict[str, Side]) -> dict[str, tuple[float, float]]:
    """Median seconds, and peak MiB above imports, of each side."""
    for side in sides.values():
        once(side)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(REPEATS):
        for name, side in sides.items():
            runs[name].append(once(side))
    result = {}
    for name, side in sides.items():
        base = min(measured(side.imports, side.environment)[1] for _ in range(2))
        seconds, peaks = zip(*runs[name], strict=True)
        print(f"  {name}: seconds {[f'{s:.1f}' for s in seconds]}, imports alone {base:.0f} MiB")
        result[name] = (statistics.median(seconds), max(peaks) - base)
    return result


def equal(one: Path, other: Path) -> bool:
    """Whether two folders hold the same tensors, bit for bit."""
    import torch
    from safetensors import safe_open

    def places(folder: Path) -> dict[str, Path]:
        found = {}
        for path in folder.glob("*.safetensors"):
            with safe_open(path, framework="pt") as file:
                found |= dict.fromkeys(file.keys(), path)
        return found

    here, there = places(one), places(other)
    if here.keys() != there.keys():
        return False
    for name in here:
        with (
            safe_open(here[name], framework="pt") as left,
            safe_open(there[name], framework="pt") as right,
        ):
            a, b = left.get_tensor(name), right.get_tensor(name)
            if a.dtype != b.dtype or not torch.equal(a.view(torch.int16), b.view(torch.int16)):
                return False
    return True


def copy_seconds(folder: Path) -> float:
    """Median seconds of `cp` of the exported files, warmed up."""
    target, runs = folder.with_name("copied"), []
    for _ in range(REPEATS + 1):
        shutil.rmtree(target, ignore_errors=True)
        runs.append(measured(["cp", "-r", str(folder), str(target)], {})[0])
    shutil.rmtree(target)
    return statistics.median(runs[1:])


def small(folder: Path, slime: str) -> None:
    checkpoint, reference = make(folder, SMALL)
    size = count_parameters(shape_from_config(SMALL)).total * 2 / MIB
    sides: dict[str, Side] = {"ours": Ours(checkpoint, reference, folder / "ours")}
    if slime:
        sides["slime"] = Slimes(checkpoint, reference, folder / "slimes", Path(slime).absolute())
    results = compare(sides)
    seconds, peak = results["ours"]
    copied = copy_seconds(folder / "ours")
    print(f"figure export_model_mib {size:.0f}")
    print(f"figure export_seconds {seconds:.2f}")
    print(f"figure export_cp_seconds {copied:.2f}")
    print(f"figure export_time_ratio_to_cp {seconds / copied:.2f}")
    print(f"figure export_peak_above_imports_mib {peak:.0f}")
    print(f"figure export_peak_share_of_model {peak / size:.3f}")
    if not slime:
        print("SLIME_DIR names no checkout of slime: its converter was not run beside")
        return
    slime_seconds, slime_peak = results["slime"]
    same = equal(folder / "ours", folder / "slimes")
    print(f"figure export_slime_seconds {slime_seconds:.2f}")
    print(f"figure export_time_ratio_to_slime {seconds / slime_seconds:.2f}")
    print(f"figure export_slime_peak_above_imports_mib {slime_peak:.0f}")
    print(f"figure export_bitwise_equal_to_slime {int(same)}")


def large(folder: Path, disk_gb: float) -> None:
    """As many layers of the 8B shape as fit, checkpoint and export together."""
    allowed = min(disk_gb * 1e9, shutil.disk_usage(folder).free / 2) / 2
    shape = shape_from_config(LARGE)
    counts = count_parameters(shape)
    fixed = 2 * (counts.total - sum(counts.layers))
    layers = min(shape.num_layers, int((allowed - fixed) // (2 * counts.layers[0])))
    if layers < 1:
        print(f"no room for the 8B shape: {allowed / 1e9:.1f} GB for a model are allowed")
        return
    checkpoint, reference = make(folder, LARGE | {"num_hidden_layers": layers})
    side = Ours(checkpoint, reference, folder / "ours")
    base = measured(side.imports, side.environment)[1]
    seconds, peak = once(side)
    total = 2 * count_parameters(replace(shape, num_layers=layers)).total
    print(f"figure export_8b_layers {layers}")
    print(f"figure export_8b_model_gb {total / 1e9:.2f}")
    print(f"figure export_8b_seconds {seconds:.1f}")
    print(f"figure export_8b_peak_above_imports_mib {peak - base:.0f}")


def main() -> None:
    """Print the figures; SLIME_DIR names a checkout of slime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disk-gb", type=float, default=12.0)
    parser.add_argument("--folder", default=None, help="where the checkpoints are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small(Path(name) / "small", os.environ.get("SLIME_DIR", ""))
        shutil.rmtree(Path(name) / "small")
        large(Path(name), options.disk_gb)


if __name__ == "__main__":
    main()
