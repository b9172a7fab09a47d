"""slime's GPT model with the rotary scaling that the model's config.json states.

One design choice: slime builds the model, and only the frequencies and the scale of attention are
set from outside, because its flags reach neither YaRN nor Llama's scaling with other constants.
YaRN scales queries and keys by a; that is a factor a^2 on their product, given as `softmax_scale`,
which every attention kernel takes (fused rotation takes no scale).
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from slime_ext.recipe.load import load_recipe
from slime_ext.weights.rope_config import YarnRope, scaling_from_config
from slime_ext.weights.shape import ModelShape, read_shape


def scaled_rope_model(
    pre_process: bool = True, post_process: bool = True, vp_stage: int | None = None
) -> Any:
    """For `--custom-model-provider-path`: the GPTModel of one pipeline stage.

    Raises ValueError under `--megatron-to-hf-mode bridge` (slime v0.2.4), whose models are not
    built from arguments.
    """
    from megatron.training import get_args
    from slime.backends.megatron_utils.model_provider import get_model_provider_func

    from slime_ext.weights.rope import rotary_frequencies

    args = copy.copy(get_args())
    if getattr(args, "megatron_to_hf_mode", "raw") != "raw":
        raise ValueError("rotary scaling needs --megatron-to-hf-mode raw; take the flag out")
    # Without it slime would come back here.
    args.custom_model_provider_path = None
    shape = stated_shape(args)
    if isinstance(shape.rope_scaling, YarnRope):
        args.softmax_scale = shape.rope_scaling.attention_scale**2 / math.sqrt(shape.head_dim)
    stage = {} if vp_stage is None else {"vp_stage": vp_stage}
    model = get_model_provider_func(args)(
        pre_process=pre_process, post_process=post_process, **stage
    )
    model.rotary_pos_emb.inv_freq = rotary_frequencies(shape)
    return model


def stated_shape(args: Any) -> ModelShape:
    """The shape in `args.hf_checkpoint`, with the recipe's `model.rope_scaling` in place of its
    own. Raises ValueError or FileNotFoundError as `read_shape`."""
    shape = read_shape(Path(args.hf_checkpoint))
    recipe = getattr(args, "longrl_recipe", None)
    override = load_recipe(Path(recipe)).recipe.model.rope_scaling if recipe else None
    if override is None:
        return shape
    return replace(shape, rope_scaling=scaling_from_config(override, "model.rope_scaling"))
