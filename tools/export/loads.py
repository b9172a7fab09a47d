"""Whether transformers loads a folder, and whether it then is the model that was trained.

One design choice: the training model is built by megatron-core from the checkpoint itself, not by
our reader and table, so an error of theirs shows as another token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_ext.embedded.supported import UnsupportedModelError, require_supported
from slime_ext.errors import ExplainedError
from slime_ext.weights.shape import read_shape

from .faults import Fault

CLOSE = 0.01
"""Largest difference between the two models' logits, as a share of their standard deviation: they
round in different orders (seen: 3e-6 of it)."""
_REFUSALS = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, ImportError)
"""What transformers raises for a folder it cannot load."""


class NoTrainingModelError(ExplainedError, ValueError):
    """The model that was trained cannot be run here."""


@dataclass
class Loaded:
    """What transformers made of a folder; `model` is None where it made none."""

    faults: list[Fault]
    tokenizer: Any = None
    model: Any = None


def load(folder: Path) -> Loaded:
    """Load config, tokenizer and model offline, the model in float32 on CPU.

    Peak memory is 4 bytes a parameter and the folder's own size. Raises ImportError without
    transformers.
    """
    import transformers

    said = f"transformers {transformers.__version__}"
    loaded = Loaded([])
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        architecture = getattr(transformers, config.architectures[0])
    except _REFUSALS as error:
        loaded.faults.append(Fault("config.json", f"{said} cannot read it: {_line(error)}"))
        return loaded
    try:
        tokenizers = transformers.AutoTokenizer
        loaded.tokenizer = tokenizers.from_pretrained(folder, local_files_only=True)
    except _REFUSALS as error:
        loaded.faults.append(Fault("tokenizer.json", f"{said} cannot read it: {_line(error)}"))
    try:
        loaded.model, report = architecture.from_pretrained(
            folder, local_files_only=True, dtype="float32", output_loading_info=True
        )
    except _REFUSALS as error:
        loaded.faults.append(Fault("all tensors", f"{said} cannot load them: {_line(error)}"))
    else:
        loaded.faults += _keys(report, said)
        loaded.faults += _vocabulary(loaded)
    return loaded


def compare_greedy(
    loaded: Loaded, base: Path, checkpoint: Path, prompt: str, tokens: int, dtype: str
) -> Iterator[Fault]:
    """Greedy tokens after `prompt` of the loaded model against those of the training model, whose
    weights are rounded to `dtype` first; and the logits behind them, as a short text can hide a
    wrong rotation. `base` is the folder of the model that was trained, whose config is the run's.

    Raises NoTrainingModelError for a family that the embedded backend does not run.
    """
    import torch

    model = _training_model(base, checkpoint, dtype)
    ids: list[int] = loaded.tokenizer.encode(prompt)
    start = len(ids)
    with torch.no_grad():
        for _ in range(tokens):
            row = torch.tensor([ids])
            ours = model.logits(row, torch.arange(len(ids))[None])[0]
            ids.append(int(ours[-1].argmax()))
        theirs = loaded.model(input_ids=torch.tensor([ids[:-1]])).logits[0]
    tie = CLOSE * float(ours.std())
    for place, row in enumerate(theirs[start - 1 :]):
        trained, exported = ids[start + place], int(row.argmax())
        if float(row[exported] - row[trained]) > tie:
            here, there = (loaded.tokenizer.decode([one]) for one in (exported, trained))
            problem = f"greedy token {place + 1} is {here!r}, the training model's {there!r}"
            yield Fault("all tensors", problem)
            return
    difference = float((ours - theirs).abs().max())
    if difference > tie:
        problem = f"same greedy tokens, but logits differ by {difference:.2g} at most"
        yield Fault("all tensors", f"{problem}, {tie:.2g} is rounding")


def _training_model(base: Path, checkpoint: Path, dtype: str) -> Any:
    import torch

    shape = read_shape(base)
    try:
        require_supported(shape)
    except UnsupportedModelError as error:
        raise NoTrainingModelError(f"--prompt compares with the training model: {error}") from error
    from slime_ext.embedded.checkpoint import load_tensors
    from slime_ext.embedded.model import build_model

    model = build_model(shape)
    load_tensors(checkpoint, model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(getattr(torch, dtype)).float())
    return model


def _keys(report: Mapping[str, Any], said: str) -> Iterator[Fault]:
    """Tensors that transformers missed, did not want or could not fit."""
    for key, problem in (
        ("missing_keys", "misses it and starts it at random"),
        ("unexpected_keys", "does not want it"),
        ("mismatched_keys", "expects another shape"),
    ):
        for entry in sorted(report.get(key) or (), key=str):
            yield Fault(str(entry if isinstance(entry, str) else entry[0]), f"{said} {problem}")


def _vocabulary(loaded: Loaded) -> Iterator[Fault]:
    """Every token of the tokenizer needs a row of the embedding."""
    if loaded.tokenizer is None:
        return
    rows = loaded.model.get_input_embeddings().weight.shape[0]
    if len(loaded.tokenizer) > rows:
        problem = f"has {len(loaded.tokenizer)} tokens, the embedding {rows} rows"
        yield Fault("tokenizer.json", problem)


def _line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
