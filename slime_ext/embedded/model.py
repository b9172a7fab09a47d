"""The policy as a megatron-core GPTModel that yields hidden states and takes any positions.

One design choice: the model stops before the language model head, so that log-probabilities can be
computed chunk by chunk with the head inside the chunk (log_probs.py) and vocabulary logits of a
whole batch never exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor

from slime_ext.embedded import megatron_cpu
from slime_ext.embedded.attention import TreeAttention, TreeLayout
from slime_ext.embedded.supported import require_supported
from slime_ext.weights.names import megatron_shapes
from slime_ext.weights.rope import rotary_frequencies
from slime_ext.weights.shape import ModelShape


class PolicyModel(GPTModel):
    """GPTModel whose forward pass ends at the final norm."""

    def hidden_states(
        self, ids: Tensor, positions: Tensor, layout: TreeLayout | None = None
    ) -> Tensor:
        """Final hidden states [s, b, hidden] of `ids` [b, s] at `positions` [b, s]; rows are causal
        sequences, or trees as `layout` describes."""
        hidden: Tensor = self(input_ids=ids, position_ids=positions, attention_mask=layout)
        return hidden

    def head_weight(self) -> Tensor:
        """The language model head [vocab, hidden]; the embedding where the two are tied."""
        if self.share_embeddings_and_output_weights:
            weight: Tensor = self.shared_embedding_or_output_weight()
            return weight
        return self.output_layer.weight

    def logits(self, ids: Tensor, positions: Tensor, layout: TreeLayout | None = None) -> Tensor:
        """Vocabulary logits [b, s, vocab]; for tests and very small models."""
        hidden = self.hidden_states(ids, positions, layout)
        return torch.matmul(hidden, self.head_weight().t()).transpose(0, 1)

    def _preprocess(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        decoder_input: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor | None, Tensor, None, None, None, None]:
        """Megatron's own, with rotary angles [s, b, 1, head_dim] from each row's positions."""
        if decoder_input is None and self.pre_process:
            decoder_input = self.embedding(input_ids=input_ids, position_ids=position_ids)
        frequencies = self.rotary_pos_emb.inv_freq
        angles = position_ids.t().unsqueeze(-1).to(frequencies.dtype) * frequencies
        return decoder_input, torch.cat((angles, angles), -1).unsqueeze(2), None, None, None, None

    def _postprocess(self, hidden_states: Tensor, **_: Any) -> Tensor:
        return hidden_states


def build_model(shape: ModelShape, weights: Mapping[str, Tensor] | None = None) -> PolicyModel:
    """A float32 CPU model of this shape, with `weights` (live Megatron names) copied in if given.

    Starts the single-process parallel state where none runs. Raises ValueError where the shape is
    not supported or the weights do not fit.
    """
    require_supported(shape)
    megatron_cpu.init_single_process()
    model = PolicyModel(
        config=transformer_config(shape),
        transformer_layer_spec=_layer_spec(shape),
        vocab_size=shape.vocab_size,
        max_sequence_length=shape.max_position_embeddings,
        position_embedding_type="rope",
        rotary_base=shape.rope_theta,
        share_embeddings_and_output_weights=shape.tied_embeddings,
        parallel_output=True,
    )
    # megatron-core fixes three of Llama's four scaling constants; see weights/rope.py.
    model.rotary_pos_emb.inv_freq = rotary_frequencies(shape)
    if weights is not None:
        load_weights(model, weights, shape)
    return model


def load_weights(model: PolicyModel, weights: Mapping[str, Tensor], shape: ModelShape) -> None:
    """Copy full Megatron tensors into `model`, cast to its dtype; all or ValueError."""
    parameters = dict(model.named_parameters())
    if set(parameters) != set(megatron_shapes(shape)) or set(parameters) != set(weights):
        odd = sorted(set(parameters) ^ set(weights))
        raise ValueError(f"weights and model differ in {odd}; build the model from the same config")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def model_weights(model: PolicyModel) -> dict[str, Tensor]:
    """The live parameters by name, detached and not copied."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def transformer_config(shape: ModelShape) -> TransformerConfig:
    """Megatron's settings for this shape: no dropout, no bias, no fused kernel."""
    return TransformerConfig(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        num_attention_heads=shape.num_heads,
        num_query_groups=shape.num_kv_heads,
        kv_channels=shape.head_dim,
        ffn_hidden_size=shape.ffn_size,
        normalization="RMSNorm",
        layernorm_epsilon=shape.rms_norm_eps,
        qk_layernorm=shape.qk_norm,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        params_dtype=torch.float32,
        pipeline_dtype=torch.float32,
        use_cpu_initialization=True,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
        apply_rope_fusion=False,
    )


def _layer_spec(shape: ModelShape) -> ModuleSpec:
    spec = get_gpt_layer_local_spec(qk_layernorm=shape.qk_norm, normalization="RMSNorm")
    spec.submodules.self_attention.submodules.core_attention = TreeAttention
    return spec
