"""The whole check of a folder, as deep as asked: headers, numbers, loading, greedy tokens.

One design choice: each depth is a switch of its own, because each costs ten times the one before:
a moment, a read of the disk, the memory of the model, a forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slime_ext.errors import ExplainedError

from .verify import Against, Verified, verify_folder


@dataclass(frozen=True, slots=True)
class Depth:
    """What is looked at beside headers and small files."""

    values: bool = False
    """Read every tensor."""
    load: bool = False
    """Load the folder in transformers."""
    prompt: str | None = None
    """Text whose greedy continuation is compared with the training model's; loads too."""
    tokens: int = 16
    """Tokens of that continuation."""


class NothingToCompareError(ExplainedError, ValueError):
    """Greedy tokens were asked for without the model they are compared with."""


def check_folder(
    folder: Path, against: Against, depth: Depth, checkpoint: Path | None = None
) -> Verified:
    """Check `folder` against its config and base model, and against the training model in
    `checkpoint` where a prompt is given.

    Raises what `verify_folder` raises, NothingToCompareError for a prompt without checkpoint and
    base model, NoTrainingModelError for a family that cannot run here.
    """
    base = against.reference
    if depth.prompt is not None and (checkpoint is None or base is None):
        raise NothingToCompareError(
            "--prompt compares with the training model: name its checkpoint with --checkpoint and "
            "the model it started from with --reference"
        )
    found = verify_folder(folder, against, depth.values)
    if not (depth.load or depth.prompt is not None):
        found.not_checked.append("loading in transformers; add --load")
        return found
    from .loads import compare_greedy, load

    loaded = load(folder)
    found.faults += loaded.faults
    if depth.prompt is None:
        return found
    if loaded.faults or checkpoint is None or base is None:
        found.not_checked.append("greedy tokens, as the folder does not load")
    else:
        dtype = found.dtypes[0] if len(found.dtypes) == 1 else "float32"
        found.faults += compare_greedy(loaded, base, checkpoint, depth.prompt, depth.tokens, dtype)
    return found
