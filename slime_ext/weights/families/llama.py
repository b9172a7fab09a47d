"""Llama 2 and 3 (Grattafiori et al. 2407.21783): no bias, no norm on queries and keys."""

from __future__ import annotations

from slime_ext.weights.families.blocks import ATTENTION, DENSE_MLP, INPUT_NORM, MLP_NORM

LAYER = (INPUT_NORM, *ATTENTION, MLP_NORM, *DENSE_MLP)
