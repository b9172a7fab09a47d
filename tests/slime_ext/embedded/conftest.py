"""Random training samples for the tiny models."""

from __future__ import annotations

import random

import pytest

from slime_ext.embedded.samples import TrainSample


def random_samples(
    groups: int = 4, per_group: int = 3, seed: int = 0, vocab: int = 97
) -> list[TrainSample]:
    """Groups of uneven prompts and responses, with rollout log-probs that are off by a little."""
    rng = random.Random(seed)
    samples = []
    for group in range(groups):
        prompt = [rng.randrange(vocab) for _ in range(rng.randint(2, 20))]
        for _ in range(per_group):
            length = rng.randint(1, 9)
            samples.append(
                TrainSample(
                    prompt_ids=prompt,
                    response_ids=[rng.randrange(vocab) for _ in range(length)],
                    rollout_log_probs=[-4.0 + rng.gauss(0, 1) for _ in range(length)],
                    advantage=rng.gauss(0, 1),
                    loss_mask=[int(rng.random() < 0.9) for _ in range(length)],
                    group=group,
                    rollout=len(samples),
                )
            )
    return samples


@pytest.fixture
def samples() -> list[TrainSample]:
    """Four groups of three."""
    return random_samples()
