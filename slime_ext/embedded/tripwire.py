"""What happens when a loss or a gradient is not a finite number: stop, and leave evidence.

One design choice: the update is refused before the weights change, so the last checkpoint and the
live weights stay usable and the dump shows the batch that did it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from slime_ext.embedded.samples import TrainSample
from slime_ext.errors import ExplainedError


class NonFiniteError(ExplainedError, RuntimeError):
    """`quantity`, a loss or gradient norm, was NaN or infinite; `dump` is the file, if any."""

    def __init__(self, message: str, quantity: str, value: float, dump: Path | None) -> None:
        super().__init__(message)
        self.quantity = quantity
        self.value = value
        self.dump = dump


def refuse_update(
    quantity: str,
    value: float,
    step: int,
    model: torch.nn.Module,
    samples: Sequence[TrainSample],
    folder: Path | None,
) -> NonFiniteError:
    """The error to raise for `quantity` = `value`, after writing a dump into `folder`, if given."""
    dump = None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        dump = folder / f"nonfinite_step_{step}.json"
        record = {
            "step": step,
            "quantity": quantity,
            "value": str(value),
            "samples": [_sample_record(sample) for sample in samples],
            "parameters": _norms(model),
        }
        dump.write_text(json.dumps(record, indent=1))
    where = f"see {dump}" if dump else "give the trainer a dump folder to see the batch"
    return NonFiniteError(
        f"step {step}: {quantity} is {value}; the update was not applied; {where}; resume from the "
        "last checkpoint with a smaller optimiser.lr, or remove the sample",
        quantity,
        value,
        dump,
    )


def _sample_record(sample: TrainSample) -> dict[str, Any]:
    return {
        "group": sample.group,
        "rollout": sample.rollout,
        "advantage": sample.advantage,
        "prompt_tokens": len(sample.prompt_ids),
        "response_tokens": len(sample.response_ids),
        "loss_tokens": sum(sample.loss_mask),
        "lowest_rollout_log_prob": min(sample.rollout_log_probs),
    }


def _norms(model: torch.nn.Module) -> dict[str, dict[str, str]]:
    return {
        name: {
            "weight_norm": f"{parameter.detach().norm():.6g}",
            "gradient_norm": "none" if parameter.grad is None else f"{parameter.grad.norm():.6g}",
        }
        for name, parameter in model.named_parameters()
    }
