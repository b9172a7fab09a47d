"""Families without a table here (Qwen3.5): slime's own converter, called, completed and renamed.

One design choice: slime writes the decoder alone, and what stands beside it (vision tower,
prediction heads) is taken from the base model here and counted. slime's own switch for that takes
every missing tensor from the base model, a lost layer included.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import load_recipe
from slime_ext.weights.checkpoints import incomplete
from slime_ext.weights.hf_folder import replace_folder
from slime_ext.weights.shape import read_shape

from .contents import beside_the_decoder
from .folder import INDEX, Weights, read_weights
from .headers import Stored
from .model_card import write_card
from .run_facts import gather
from .side_files import write_side_files
from .source import Source

CONVERTER = "tools/convert_torch_dist_to_hf.py"
FROM_BASE = "model-from-base.safetensors"
_COPIED = 16 * 2**20


class ConverterError(ExplainedError, RuntimeError):
    """slime's converter is not here, or failed; says what to type instead."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written."""

    out: Path
    tensors: int
    from_base: int
    """Tensors beside the decoder, which the run did not train."""

    def lines(self) -> list[str]:
        """What a person wants to know of it."""
        return [
            f"{self.out}: {self.tensors} tensors by slime's converter, {self.from_base} beside the "
            "decoder from the base model"
        ]


def export_by_slime(
    source: Source, out: Path, slime: Path | None, dtype: str, shard_bytes: int
) -> Converted:
    """Export `source` by the converter of the slime checkout `slime` (None: that of the run's
    recipe) as the folder `out`.

    The converter holds the whole model in memory, and unpickles the checkpoint's `common.pt` as
    Megatron does, running what it says. Raises ConverterError without one, where it fails, for a
    checkpoint that is not whole, and where `out` exists.
    """
    if fault := incomplete(source.checkpoint):
        raise ConverterError(f"{source.checkpoint} is not whole: {fault}; name another checkpoint")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConverterError(f"{out} exists and is not empty; name another folder, or remove it")
    checkout = slime or _checkout(source)
    partial = out.absolute().with_name(f"{out.name}.partial")
    words = _words(checkout, source, partial, shard_bytes)
    if not (checkout / CONVERTER).is_file():
        raise ConverterError(
            f"this model's family has no table here, and {checkout / CONVERTER} is not there; name "
            f"slime's checkout with --slime, or type where slime is, then check with --verify:\n"
            f"  PYTHONPATH={shlex.quote(str(checkout))} {shlex.join(['python3', *words[1:]])}"
        )
    shutil.rmtree(partial, ignore_errors=True)
    _run(words, checkout)
    made = read_weights(partial)
    if not made.tensors:
        raise ConverterError(f"{CONVERTER} ended well and wrote no tensor into {partial}")
    base = read_weights(source.reference)
    missing = {
        name: stored
        for name, stored in base.tensors.items()
        if beside_the_decoder(name) and name not in made.tensors
    }
    _copy(base, missing, partial)
    _write_index(partial)
    write_side_files(source.reference, partial, dtype, source.rope_scaling)
    facts = gather(source.run, source.checkpoint) if source.run else None
    write_card(partial, source.reference, out.name, facts)
    replace_folder(partial, out.absolute())
    return Converted(out, len(made.tensors), len(missing))


def _checkout(source: Source) -> Path:
    if source.run is None:
        raise ConverterError(
            "this model's family has no table here; slime's own converter knows it: name slime's "
            "checkout with --slime"
        )
    return Path(load_recipe(source.run.recipe).recipe.slime.path)


def _words(checkout: Path, source: Source, out: Path, shard_bytes: int) -> list[str]:
    """The command; padding of the vocabulary is cut by its size."""
    vocabulary = read_shape(source.reference).vocab_size
    return [
        *(sys.executable, str(checkout / CONVERTER)),
        *("--input-dir", str(source.checkpoint.absolute()), "--output-dir", str(out)),
        *("--origin-hf-dir", str(source.reference.absolute())),
        *("--vocab-size", str(vocabulary), "--chunk-size", str(shard_bytes)),
    ]


def _run(words: list[str], checkout: Path) -> None:
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        words,
        env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise ConverterError(f"{CONVERTER} ended with exit code {done.returncode}:\n{last}")


def _copy(base: Weights, tensors: dict[str, Stored], folder: Path) -> None:
    """Write tensors of the base model as one more file, bytes as they are."""
    if not tensors:
        return
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, one in tensors.items():
        offsets = [place, place + one.length]
        table[name] = {"dtype": one.dtype, "shape": list(one.shape), "data_offsets": offsets}
        place += one.length
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)
    with (folder / FROM_BASE).open("xb") as sink:
        sink.write(struct.pack("<Q", len(header)) + header)
        for one in tensors.values():
            with (base.folder / one.file).open("rb") as file:
                file.seek(one.start)
                left = one.length
                while left and (block := file.read(min(left, _COPIED))):
                    left -= sink.write(block)


def _write_index(folder: Path) -> None:
    """From the headers: the converter's own total is wrong where it adds tensors."""
    found = read_weights(folder)
    index = {
        "metadata": {"total_size": found.bytes},
        "weight_map": {name: one.file for name, one in found.tensors.items()},
    }
    partial = folder / f".{INDEX}.partial"
    partial.write_text(json.dumps(index, indent=2) + "\n")
    partial.replace(folder / INDEX)
