"""Small Hugging Face folders with everything a published model has, and faults to plant in them."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from slime_ext.embedded.lab.start import builtin_model
from slime_ext.weights.hf_folder import with_both_rope_forms
from slime_ext.weights.names import expected_tensors
from slime_ext.weights.shape import shape_from_config
from tests.fakes.tiny_configs import tiny_config

INDEX = "model.safetensors.index.json"
CHAT_TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


def make_folder(
    folder: Path,
    family: str,
    tied: bool = False,
    dtype: torch.dtype = torch.bfloat16,
    shards: int = 2,
    **changed: Any,
) -> Path:
    """A whole model of `family` with random weights, in `shards` files."""
    torch.manual_seed(0)
    folder.mkdir(parents=True)
    name = str(dtype).removeprefix("torch.")
    config = with_both_rope_forms(
        tiny_config(
            family, tied, vocab_size=160, rope_theta=1e6, dtype=name, torch_dtype=name, **changed
        )
    )
    (folder / "config.json").write_text(json.dumps(config))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(builtin_model("lab-hs") / file, folder / file)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2]}))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    (folder / "LICENSE").write_text("Do as you like.")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Base\n")
    tensors = {
        name: (torch.randn(size) * 0.2).to(dtype)
        for name, size in expected_tensors(shape_from_config(config)).items()
    }
    write_shards(folder, tensors, shards)
    return folder


def write_shards(folder: Path, tensors: Mapping[str, torch.Tensor], shards: int) -> None:
    """Write the weights in order, in files of about equally many tensors, and the index."""
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    if shards == 1:
        save_file(dict(tensors), folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    step = -(-len(names) // shards)
    weight_map = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[number * step : (number + 1) * step]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    total = sum(one.numel() * one.element_size() for one in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))


def read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of the folder."""
    found: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= load_file(file)
    return found


def edit_tensors(folder: Path, changes: Mapping[str, torch.Tensor | None]) -> None:
    """Replace, add or (None) remove tensors; files and index stay consistent."""
    shards = len(list(folder.glob("*.safetensors")))
    tensors: dict[str, Any] = read_tensors(folder) | dict(changes)
    write_shards(folder, {k: v for k, v in tensors.items() if v is not None}, shards)


def edit_json(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file; None removes a key."""
    table = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in table.items() if v is not None}))


def edit_header(path: Path, change: Any) -> None:
    """Rewrite the header of a safetensors file by `change(table)`; the data stays."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    table = json.loads(data[8 : 8 + length])
    change(table)
    header = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :])
