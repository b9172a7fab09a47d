"""Dense Qwen3 (Yang et al. 2505.09388): a norm on each query and key head in place of the bias."""

from __future__ import annotations

from slime_ext.weights.families.blocks import ATTENTION, DENSE_MLP, INPUT_NORM, MLP_NORM, QK_NORM

LAYER = (INPUT_NORM, *ATTENTION, *QK_NORM, MLP_NORM, *DENSE_MLP)
