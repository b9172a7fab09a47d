"""The host's value types: slime's own where slime is installed, stand-ins of the same shape
elsewhere.

One design choice: a stand-in is used only when the package `slime` itself is absent. A slime that
is there and fails to import raises, because a half-broken image must not train on stand-ins.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

HAVE_SLIME: bool = importlib.util.find_spec("slime") is not None

if TYPE_CHECKING or not HAVE_SLIME:
    from slime_ext.host.standins import (
        DataSource,
        DynamicFilterOutput,
        RolloutFnEvalOutput,
        RolloutFnTrainOutput,
        Sample,
    )
else:
    from slime.rollout.base_types import RolloutFnEvalOutput, RolloutFnTrainOutput
    from slime.rollout.data_source import DataSource
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput
    from slime.utils.types import Sample

__all__ = [
    "HAVE_SLIME",
    "DataSource",
    "DynamicFilterOutput",
    "RolloutFnEvalOutput",
    "RolloutFnTrainOutput",
    "Sample",
]
