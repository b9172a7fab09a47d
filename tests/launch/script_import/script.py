"""A training script of our own, with the habits of the released ones."""

from __future__ import annotations

SCRIPT = r"""#!/bin/bash
HERE=$(cd "$(dirname "$0")" && pwd)
pkill -9 something
export BUFFER=16   # a comment

TP=2; CP=2
CONTEXT=40000
ANSWER=8000
NAME="my-run"
MODEL=${HERE}/models/Qwen3-4B-Thinking-2507

SHAPE_ARGS=(
   --max-position-embeddings ${CONTEXT}
   --num-layers 36
   --hidden-size 2560
   --normalization "RMSNorm"
   --norm-epsilon 1e-6
   --use-rotary-position-embeddings
   --rotary-base "${ROTARY_BASE:-5000000}"
   # --fp16
   --attention-backend flash
)
ROLLOUT_ARGS=(
   --hf-checkpoint $MODEL
   --prompt-data $HERE/data/train.jsonl
   --input-key input_messages
   --rollout-batch-size 16
   --n-samples-per-prompt 8
   --global-batch-size 64
   --num-rollout 100
   --rollout-max-context-len ${CONTEXT}
   --rollout-max-response-len ${ANSWER}
   --rollout-shuffle
   --rollout-stop-token-ids 151643 151645  # <|im_end|>
   --use-dynamic-batch-size
   --max-tokens-per-gpu 8192
   --rubric-reward-ratio 0.25
   --normalize-rubric-reward
   --rubric-only-positive
   --rubric-use-content
   --keep-optim-recent 1
)
GRPO_ARGS=(
   --use-kl-loss
   --kl-loss-coef 0.00
   --eps-clip 0.2
   --eps-clip-high 0.28
   --calculate-per-token-loss
   --use-tis
   --custom-tis-function-path slime.backends.megatron_utils.loss.icepop_function
   --tis-clip-low 0.5
   --tis-clip 2.0
   --lr 2e-6
   --adam-beta2 0.98
)
TRACK_ARGS=(
   --use-wandb
   --wandb-key ${WANDB_API_KEY}
   --wandb-project ${PROJECT}
   --wandb-group ${NAME}
)

if [ -n "$FAST" ]; then
   ENGINE_GPUS=4
else
   ENGINE_GPUS=8
fi

for HOST in $(cat hosts); do
   ssh "$HOST" "ray start --address=${MASTER}:6379" &
done

ENV_JSON=$(cat <<EOF
{ "env_vars": { "PYTHONPATH": "/root/Megatron-LM", "X": "(" } }
EOF
)

ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json="${ENV_JSON}" \
   -- python3 train.py \
   --actor-num-nodes ${NODES} \
   --actor-num-gpus-per-node 8 \
   --rollout-num-gpus $(( ${NODES} * 8 )) \
   --rollout-num-gpus-per-engine ${ENGINE_GPUS} \
   --sglang-json-model-override-args "{\"max_position_embeddings\": $((CONTEXT + 1000))}" \
   --sglang-router-balance-abs-threshold 0 \
   --colocate \
   --use-fault-tolerance \
   --tensor-model-parallel-size ${TP} \
   --context-parallel-size ${CP} \
   --sequence-parallel \
   ${SHAPE_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   "${GRPO_ARGS[@]}" \
   ${TRACK_ARGS[@]}
"""
