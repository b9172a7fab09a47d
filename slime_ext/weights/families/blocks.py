"""Rows that several families share.

One design choice: `stored` gives Transformer Engine's name of a norm, which is fused with the
projection behind it; the local spec translates to the same names when it writes a dense layer.
"""

from __future__ import annotations

from slime_ext.weights.table import Part, Row

INPUT_NORM = Row(
    "input_layernorm.weight",
    (Part("input_layernorm.weight", ("hidden",)),),
    stored=("self_attention.linear_qkv.layer_norm_weight",),
)
MLP_NORM = Row(
    "pre_mlp_layernorm.weight",
    (Part("post_attention_layernorm.weight", ("hidden",)),),
    stored=("mlp.linear_fc1.layer_norm_weight",),
)
ATTENTION = (
    Row(
        "self_attention.linear_qkv.weight",
        (
            Part("self_attn.q_proj.weight", ("query", "hidden")),
            Part("self_attn.k_proj.weight", ("key", "hidden")),
            Part("self_attn.v_proj.weight", ("key", "hidden")),
        ),
        layout="qkv",
    ),
    Row(
        "self_attention.linear_proj.weight",
        (Part("self_attn.o_proj.weight", ("hidden", "query")),),
    ),
)
QKV_BIAS = Row(
    "self_attention.linear_qkv.bias",
    (
        Part("self_attn.q_proj.bias", ("query",)),
        Part("self_attn.k_proj.bias", ("key",)),
        Part("self_attn.v_proj.bias", ("key",)),
    ),
    layout="qkv",
)
QK_NORM = (
    Row("self_attention.q_layernorm.weight", (Part("self_attn.q_norm.weight", ("head",)),)),
    Row("self_attention.k_layernorm.weight", (Part("self_attn.k_norm.weight", ("head",)),)),
)
DENSE_MLP = (
    Row(
        "mlp.linear_fc1.weight",
        (
            Part("mlp.gate_proj.weight", ("ffn", "hidden")),
            Part("mlp.up_proj.weight", ("ffn", "hidden")),
        ),
        layout="gate_up",
    ),
    Row("mlp.linear_fc2.weight", (Part("mlp.down_proj.weight", ("hidden", "ffn")),)),
)
EXPERTS = (
    Row("mlp.router.weight", (Part("mlp.gate.weight", ("experts", "hidden")),)),
    Row(
        "mlp.experts.local_experts.{expert}.linear_fc1.weight",
        (
            Part("mlp.experts.{expert}.gate_proj.weight", ("expert_ffn", "hidden")),
            Part("mlp.experts.{expert}.up_proj.weight", ("expert_ffn", "hidden")),
        ),
        layout="gate_up",
        stored=(
            "mlp.experts.experts.linear_fc1.weight",
            "mlp.experts.experts.{expert}.linear_fc1.weight",
            "mlp.experts.linear_fc1.weight{expert}",
        ),
    ),
    Row(
        "mlp.experts.local_experts.{expert}.linear_fc2.weight",
        (Part("mlp.experts.{expert}.down_proj.weight", ("hidden", "expert_ffn")),),
        stored=(
            "mlp.experts.experts.linear_fc2.weight",
            "mlp.experts.experts.{expert}.linear_fc2.weight",
            "mlp.experts.linear_fc2.weight{expert}",
        ),
    ),
)
