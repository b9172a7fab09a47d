"""Make a lab start from nothing: `python -m slime_ext.embedded.lab.warm_start --out DIR`.

One design choice: lengths are steps, not seconds, so a start is a function of regime and seed. The
curriculum grows the graph (recitation first), then demonstrations turn imperfect, so that the
policy answers in the right form and is wrong at a rate GRPO can learn from.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

import torch

from slime_ext.embedded.lab.batches import Stage
from slime_ext.embedded.lab.demonstrations import Flaws
from slime_ext.embedded.lab.initialisation import initial_weights
from slime_ext.embedded.lab.start import lab_shape, write_start
from slime_ext.embedded.lab.supervised import Plan, train
from slime_ext.embedded.lab.task import GraphSize
from slime_ext.embedded.model import PolicyModel, build_model, model_weights
from slime_ext.weights.names import hf_to_megatron, megatron_to_hf

CURRICULUM = Plan(
    stages=(
        Stage("4 x 2 facts", 240, 32, (2,), GraphSize(4, 2, 6), recite=0.5),
        Stage("6 x 3 facts", 100, 16, (2, 3), GraphSize(6, 3, 6), recite=0.5),
        Stage("12 x 3 facts", 260, 16, (2, 3, 4), recite=0.15),
    ),
    muon_lr=0.02,
    adam_lr=0.03,
    decay_from=0.7,
)
"""Perfect demonstrations; ends at 0.002 nats a token."""


def imperfect(hops: tuple[int, ...], flaws: Flaws) -> Plan:
    """Flawed demonstrations after the curriculum.

    Muon's rate decides how far retrieval is blurred: the right edge stays the likeliest in 74% of
    hops at 0.003, 67% at 0.005 and 50 to 60% at 0.01, where GRPO hardly gets away from the start.
    """
    stage = Stage("imperfect", 150, 16, hops, flaws=flaws)
    return Plan(stages=(stage,), muon_lr=0.005, adam_lr=0.003)


REGIMES: dict[str, Plan] = {
    "a": imperfect((2, 3), Flaws(0.5, 0.3, 0.15, 0.05)),
    "hs": imperfect((3, 4), Flaws(0.4, 0.55, 0.15, 0.05)),
}
"""The last part. a: for questions of 3 hops. hs: for 4 hops; half of the demonstrations guess."""


def make_start(regime: str, seed: int) -> PolicyModel:
    """The trained model of `regime` ("a", "hs"); a few CPU-minutes on one thread.

    Raises ValueError for an unknown regime.
    """
    if regime not in REGIMES:
        raise ValueError(f"regime = {regime!r}; write one of {sorted(REGIMES)}")
    shape = lab_shape()
    model = build_model(shape, hf_to_megatron(initial_weights(shape, seed), shape))
    train(model, CURRICULUM, f"curriculum:{seed}")
    train(model, REGIMES[regime], f"{regime}:{seed}")
    return model


def main(arguments: list[str] | None = None) -> int:
    """Command line: make a start and write it as a Hugging Face folder."""
    parser = argparse.ArgumentParser(description="Make a lab start: a Hugging Face folder.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--regime", choices=sorted(REGIMES), default="hs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    # Sums of one thread have one order, and matrices this small are slower on several.
    torch.set_num_threads(1)
    model = make_start(options.regime, options.seed)
    write_start(options.out, megatron_to_hf(model_weights(model), lab_shape()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
