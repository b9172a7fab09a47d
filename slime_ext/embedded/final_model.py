"""The last thing a run does: its newest checkpoint becomes the model in `hf/`.

One design choice: the model is made from the checkpoint, by the code of `longrl export`, and not
from the weights in memory; so every finished run has shown that its checkpoint can be exported.
"""

from __future__ import annotations

import json

from slime_ext.embedded.checkpoint import latest_checkpoint
from slime_ext.embedded.trainer import Trainer
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.weights.export.plan import plan_export, refuse_extra
from slime_ext.weights.export.write import ExportReport, export_weights
from slime_ext.weights.hf_folder import copy_side_files


def export_newest(trainer: Trainer, folder: RunFolder) -> ExportReport:
    """Write `hf/` in the dtypes the model came in; an existing one is replaced.

    Raises what `plan_export` and `export_weights` raise.
    """
    checkpoint = latest_checkpoint(folder.checkpoints)
    config = json.loads((trainer.model_folder / "config.json").read_text())
    dtypes = {name: str(dtype).removeprefix("torch.") for name, dtype in trainer.dtypes.items()}
    plan = plan_export(checkpoint, config, dtypes)
    refuse_extra(plan)
    return export_weights(
        plan,
        folder.hf,
        lambda partial: copy_side_files(trainer.model_folder, partial),
        replace=True,
    )
