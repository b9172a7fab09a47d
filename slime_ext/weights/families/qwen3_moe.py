"""Qwen3 with experts in every layer (Yang et al. 2505.09388): no shared expert, no router bias."""

from __future__ import annotations

from slime_ext.weights.families.blocks import ATTENTION, EXPERTS, INPUT_NORM, MLP_NORM, QK_NORM

LAYER = (INPUT_NORM, *ATTENTION, *QK_NORM, MLP_NORM, *EXPERTS)
