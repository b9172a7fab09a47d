"""Reading and writing Hugging Face model folders, without transformers.

One design choice: a folder appears whole or not at all (written beside its name, then renamed), and
`config.json` states the rope base in both forms, because transformers 4 reads `rope_theta`, 5 reads
`rope_parameters`, and either falls back to 10,000 in silence.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_INDEX = "model.safetensors.index.json"
_WEIGHTS = "model.safetensors"
# Tokenizer files, chat template, generation settings; never weights in any format.
_COPIED_SUFFIXES = {".json", ".jinja", ".txt", ".model", ".tiktoken"}


def read_hf(folder: Path) -> dict[str, Tensor]:
    """Every tensor of `folder`, from one safetensors file or the shards its index names.

    Raises FileNotFoundError where there are no safetensors weights, ValueError where an index and
    its shards disagree.
    """
    index = folder / _INDEX
    if index.is_file():
        return _read_shards(folder, json.loads(index.read_text())["weight_map"])
    if (folder / _WEIGHTS).is_file():
        return _read_file(folder / _WEIGHTS)
    raise FileNotFoundError(
        f"{folder} holds neither {_WEIGHTS} nor {_INDEX}; convert the model to safetensors first"
    )


def write_hf(folder: Path, state: Mapping[str, Tensor], reference: Path) -> None:
    """Write `state` (Hugging Face names) as `folder`, with config, tokenizer, chat template and
    generation settings of the folder `reference`. An existing `folder` is replaced."""
    from safetensors.torch import save_file

    folder = folder.absolute()
    temporary = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        tensors = {name: tensor.detach().contiguous() for name, tensor in state.items()}
        save_file(tensors, temporary / _WEIGHTS, metadata={"format": "pt"})
        copy_side_files(reference, temporary)
        replace_folder(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def copy_side_files(reference: Path, folder: Path) -> None:
    """Copy config, tokenizer, chat template and generation settings of `reference` to `folder`, the
    rope base stated in both forms."""
    for path in sorted(reference.iterdir()):
        if path.is_file() and path.suffix in _COPIED_SUFFIXES and path.name != _INDEX:
            shutil.copyfile(path, folder / path.name)
    config = json.loads((reference / "config.json").read_text())
    text = json.dumps(with_both_rope_forms(config), indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n")


def replace_folder(temporary: Path, folder: Path) -> None:
    """Rename `temporary` to `folder`, setting an existing one aside first and removing it after."""
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def with_both_rope_forms(config: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `config` with `rope_theta` and `rope_scaling` (transformers 4) and
    `rope_parameters` (transformers 5) saying the same."""
    result = dict(config)
    scaling = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    theta = scaling.pop("rope_theta", config.get("rope_theta"))
    if theta is None:
        raise ValueError("config.json gives neither rope_theta nor rope_parameters.rope_theta")
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    result["rope_theta"] = theta
    result["rope_parameters"] = {"rope_type": kind, "rope_theta": theta, **scaling}
    result["rope_scaling"] = None if kind == "default" else {"rope_type": kind, **scaling}
    return result


def _read_file(path: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _read_shards(folder: Path, weight_map: Mapping[str, str]) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for shard in sorted(set(weight_map.values())):
        state.update(_read_file(folder / shard))
    odd = sorted(set(state) ^ set(weight_map))
    if odd:
        raise ValueError(
            f"{folder / _INDEX} and the shards beside it disagree about {', '.join(odd[:5])}; "
            "download the model again"
        )
    return state
