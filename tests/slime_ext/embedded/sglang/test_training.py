"""Training on what real SGLang sampled equals training on the same tokens in our engine."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from slime_ext.embedded.engine.cache import WaveCache
from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.loop import host_args, to_updates
from slime_ext.embedded.rollouts import Rollouts, Step
from slime_ext.embedded.samples import TrainSample
from slime_ext.embedded.sglang.process import SglangProcess, sglang_installed
from slime_ext.embedded.trainer import Trainer
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.runtime import Runtime

STEPS = 3


def replayed(decoder: Decoder, sample: TrainSample) -> TrainSample:
    """The sample with the log-probs our engine gives the same tokens, one at a time."""
    cache = WaveCache(decoder.shape, [len(sample.prompt_ids)], [0])
    rows = [decoder.prefill([torch.tensor(sample.prompt_ids)], cache)]
    for token in sample.response_ids[:-1]:
        rows.append(decoder.decode(torch.tensor([token]), cache))
    log_probs = torch.cat(rows).log_softmax(-1)
    chosen = log_probs.gather(1, torch.tensor(sample.response_ids)[:, None])[:, 0]
    return replace(sample, rollout_log_probs=chosen.tolist())


def sampled(runtime: Runtime, process: SglangProcess, step: int) -> Step:
    """One step of rollouts through the hooks, by SGLang."""
    args: Namespace = host_args(runtime.recipe, RunFolder(runtime.folder))
    args.sglang_router_ip, args.sglang_router_port = "127.0.0.1", int(process.url.split(":")[-1])
    rollouts = Rollouts(args, runtime, RecipeDataSource(args))
    return asyncio.run(rollouts.train(step))


@pytest.mark.skipif(not sglang_installed(), reason="no .venv-sglang; run `make sglang`")
@pytest.mark.timeout(900)
def test_loss_and_gradient_norm_of_three_steps_agree(
    lab_runtime: Callable[..., Runtime], tmp_path: Path
) -> None:
    # IcePop makes the loss depend on the rollout log-probs; without it this would hold trivially.
    runtime = lab_runtime("loss.icepop=[0.5,2.0]", "rollout.updates=2")
    start = Path(runtime.recipe.model.path)
    theirs, ours = Trainer(start, runtime.recipe), Trainer(start, runtime.recipe)
    decoder = Decoder(start)
    weights = tmp_path / "weights"
    with SglangProcess(start, batch=32, log=tmp_path / "sglang.log") as process:
        for step in range(STEPS):
            updates = to_updates(sampled(runtime, process, step), runtime.recipe)
            again = [[replayed(decoder, sample) for sample in update] for update in updates]
            for update, replay in zip(updates, again, strict=True):
                for one, other in zip(update, replay, strict=True):
                    assert one.rollout_log_probs == pytest.approx(other.rollout_log_probs, abs=1e-4)
            got, wanted = theirs.train(updates), ours.train(again)
            assert got["loss"] == pytest.approx(wanted["loss"], rel=1e-4, abs=1e-6)
            assert got["grad_norm"] == pytest.approx(wanted["grad_norm"], rel=1e-4)
            assert wanted["grad_norm"] > 1e-3
            theirs.export(weights)
            process.update_weights(weights, step + 1)
            decoder.reload(weights)
