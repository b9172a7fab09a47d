"""CPU time of one training step of the lab model, packing and optimiser included.

Width 64, 2 layers, 12 prompts x 8 samples, random tokens, one update, one thread; the median of
five steps after one to warm up, at prompts of about 150 and 600 tokens.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from slime_ext.embedded.samples import TrainSample
from slime_ext.embedded.trainer import Trainer
from slime_ext.recipe.schema import Recipe

VOCAB, GROUPS, PER_GROUP, STEPS = 151, 12, 8, 5


def lab_sized_model(folder: Path) -> None:
    """Save a random model of the lab's shape."""
    config = Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)


def recipe() -> Recipe:
    """The embedded defaults around one update of 96 samples."""
    return Recipe.model_validate(
        {
            "name": "bench",
            "model": {"path": "unused"},
            "data": {"train": "unused", "max_prompt_tokens": 700},
            "rollout": {
                "steps": 1,
                "prompts": GROUPS,
                "group_size": PER_GROUP,
                "max_response_tokens": 48,
                "context_tokens": 1024,
            },
            "reward": {"kind": "chunk"},
            "optimiser": {"lr": 1e-3},
        }
    )


def samples(prompt_tokens: int, rng: random.Random) -> list[TrainSample]:
    """Random groups with prompts within 3 tokens of `prompt_tokens` and responses of 22 to 28."""
    result = []
    for group in range(GROUPS):
        length = prompt_tokens + rng.randint(-3, 3)
        prompt = [rng.randrange(VOCAB) for _ in range(length)]
        for _ in range(PER_GROUP):
            response = [rng.randrange(VOCAB) for _ in range(rng.randint(22, 28))]
            size = len(response)
            advantage = rng.gauss(0, 1)
            result.append(
                TrainSample(
                    prompt, response, [-5.0] * size, advantage, [1] * size, group, len(result)
                )
            )
    return result


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lab_sized_model(Path(folder))
        trainer = Trainer(Path(folder), recipe())
        for prompt_tokens in (150, 600):
            batch = samples(prompt_tokens, random.Random(0))
            trainer.train([batch])
            times = []
            for _ in range(STEPS):
                start = time.process_time()
                trainer.train([batch])
                times.append(time.process_time() - start)
            print(f"figure train_step_cpu_s_{prompt_tokens} {statistics.median(times):.3f}")
        start = time.process_time()
        trainer.save(Path(folder) / "checkpoints")
        print(f"figure checkpoint_save_cpu_s {time.process_time() - start:.3f}")


if __name__ == "__main__":
    main()
