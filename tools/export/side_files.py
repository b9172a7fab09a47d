"""What a model folder holds beside its weights: config, tokenizer, chat template, licence.

One design choice: files are copied from the base model byte for byte, never loaded and saved again,
because a tokenizer saved by another transformers is another file; config.json alone is edited.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slime_ext.weights.hf_folder import with_both_rope_forms
from slime_ext.weights.rope_config import YarnRope, scaling_from_config

from .configs import CONFIG, read_config
from .faults import Fault

CARD = "README.md"
_SUFFIXES = {".json", ".jinja", ".txt", ".model", ".tiktoken"}
_LEGAL = ("license", "licence", "notice", "use_policy")
"""Starts of the names of files that say what may be done with a model."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""A folder without any of these has no tokenizer."""
_NOT_OURS = ("_name_or_path", "quantization_config")
"""Keys of a config that would be wrong here: a path on somebody's disk, and how weights were packed
that are now written whole."""


def side_files(reference: Path) -> list[str]:
    """Names of the files of a base model that an export takes over, config.json left out."""
    found = []
    for path in sorted(reference.iterdir()):
        legal = path.name.lower().startswith(_LEGAL)
        wanted = path.suffix in _SUFFIXES and not path.name.endswith(".index.json")
        if path.is_file() and (legal or wanted) and path.name != CONFIG:
            found.append(path.name)
    return found


def write_side_files(
    reference: Path, out: Path, dtype: str, rope_scaling: Mapping[str, Any] | None = None
) -> None:
    """Copy the side files of `reference` to `out` and write its config.json for weights of `dtype`
    (torch's word), with the recipe's `model.rope_scaling` where there is one.

    Raises FileNotFoundError or ValueError where the base model's config cannot be used.
    """
    config = exported_config(read_config(reference), dtype, rope_scaling)
    for name in side_files(reference):
        partial = out / f".{name}.partial"
        shutil.copyfile(reference / name, partial)
        partial.replace(out / name)
    partial = out / f".{CONFIG}.partial"
    text = json.dumps(config, indent=2, ensure_ascii=False)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(out / CONFIG)


def exported_config(
    config: Mapping[str, Any], dtype: str, rope_scaling: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The base model's config as an export states it: dtype and rotation in the words of both
    transformers 4 and 5. Of a config with a `text_config` that part is changed."""
    result = {key: value for key, value in config.items() if key not in _NOT_OURS}
    result["dtype"] = result["torch_dtype"] = dtype
    if isinstance(config.get("text_config"), dict):
        # Only transformers 5 knows models of this form, and it reads `rope_parameters`.
        text = dict(config["text_config"])
        if "dtype" in text or "torch_dtype" in text:
            text["dtype"] = dtype
            text.pop("torch_dtype", None)
        result["text_config"] = text if rope_scaling is None else _scaled(text, rope_scaling)
        return result
    if rope_scaling is not None:
        result = _scaled(result, rope_scaling)
    return with_both_rope_forms(result)


def _scaled(config: Mapping[str, Any], rope_scaling: Mapping[str, Any]) -> dict[str, Any]:
    """`config` with another rope scaling; base and rotated share stay."""
    old = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    kept = {key: old[key] for key in ("rope_theta", "partial_rotary_factor") if key in old}
    new = {key: value for key, value in rope_scaling.items() if key != "type"}
    new.setdefault("rope_type", rope_scaling.get("type", "default"))
    scaling = scaling_from_config(new, "model.rope_scaling")
    if isinstance(scaling, YarnRope) and scaling.attn_factor != 1.0:
        # SGLang reads attn_factor, transformers the product that it stands for.
        new["attention_factor"] = scaling.attention_scale
    return {**config, "rope_scaling": None, "rope_parameters": {**kept, **new}}


def check_side_files(folder: Path, reference: Path | None) -> Iterator[Fault]:
    """A missing tokenizer, and files of the base model that are missing or changed."""
    if not any((folder / name).is_file() for name in TOKENIZERS):
        yield Fault(TOKENIZERS[0], "is missing, and so is every other form of a tokenizer")
    if reference is None:
        return
    for name in side_files(reference):
        if not (folder / name).is_file():
            yield Fault(name, "is missing; the base model has it")
        elif not filecmp.cmp(folder / name, reference / name, shallow=False):
            yield Fault(name, "differs from the base model's")
