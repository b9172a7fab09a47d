"""Qwen2 and Qwen2.5 (Yang et al. 2407.10671): Llama's layer with a bias on q, k and v."""

from __future__ import annotations

from slime_ext.weights.families.blocks import ATTENTION, DENSE_MLP, INPUT_NORM, MLP_NORM, QKV_BIAS

LAYER = (INPUT_NORM, *ATTENTION, QKV_BIAS, MLP_NORM, *DENSE_MLP)
