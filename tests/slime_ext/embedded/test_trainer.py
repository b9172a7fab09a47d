"""The trainer against a naive loop over transformers' own model, and its rules one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from slime_ext.embedded.samples import TrainSample
from slime_ext.embedded.trainer import Trainer
from slime_ext.embedded.tripwire import NonFiniteError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.hf_folder import read_hf

MakeRecipe = Callable[..., Recipe]


def naive_log_probs(model: torch.nn.Module, sample: TrainSample, temperature: float) -> Tensor:
    ids = torch.tensor([sample.prompt_ids + sample.response_ids])
    start = len(sample.prompt_ids)
    logits = model(ids).logits[0, start - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, ids[0, start:, None])[:, 0]


def naive_training(
    folder: Path, batches: list[list[TrainSample]], recipe: Recipe
) -> dict[str, Tensor]:
    """Weights after one optimiser step a batch: no packing, no micro-batches, no Megatron."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    reference = AutoModelForCausalLM.from_pretrained(folder)
    options, loss_options, heat = recipe.optimiser, recipe.loss, recipe.rollout.temperature
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    adam = torch.optim.AdamW(
        [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
        lr=options.lr,
        betas=options.betas,
        eps=options.eps,
        weight_decay=options.weight_decay,
    )
    old = [[naive_log_probs(model, s, heat).detach() for s in batch] for batch in batches]
    for number, batch in enumerate(batches):
        tokens = sum(sum(sample.loss_mask) for sample in batch)
        loss = torch.zeros(())
        for sample, before in zip(batch, old[number], strict=True):
            now = naive_log_probs(model, sample, heat)
            ratio = (now - before).exp()
            limited = ratio.clamp(1 - loss_options.clip_low, 1 + loss_options.clip_high)
            value = torch.minimum(ratio * sample.advantage, limited * sample.advantage)
            gap = naive_log_probs(reference, sample, heat).detach() - now
            value = value - loss_options.kl_coef * (gap.exp() - gap - 1).clamp(max=10)
            loss = loss - (value * torch.tensor(sample.loss_mask)).sum() / tokens
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_grad)
        adam.step()
    state = dict(model.state_dict())
    state.pop("lm_head.weight")
    return state


def largest_difference(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    assert left.keys() == right.keys()
    return max(float((left[name] - right[name]).abs().max()) for name in left)


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("kl_coef", [0.0, 0.2])
def test_equals_a_naive_loop(
    model_folder: Path,
    make_recipe: MakeRecipe,
    samples: list[TrainSample],
    updates: int,
    kl_coef: float,
) -> None:
    # eps keeps Adam's first step smooth where a gradient is tiny.
    recipe = make_recipe(
        loss={"kl_coef": kl_coef},
        optimiser={"lr": 1e-2, "eps": 1e-3},
        rollout={"temperature": 0.8},
        embedded={"micro_batch_tokens": 60, "log_prob_chunk": 5},
    )
    batches = [samples] * updates
    trainer = Trainer(model_folder, recipe)
    metrics = trainer.train(batches)
    start = read_hf(model_folder)
    expected = naive_training(model_folder, batches, recipe)
    assert largest_difference(start, expected) > 5e-3
    assert largest_difference(trainer.hf_state(), expected) < 2e-5
    assert (trainer.step, trainer.updates) == (1, updates)
    assert metrics["tokens"] == updates * sum(sum(s.loss_mask) for s in samples)
    if updates == 1:
        assert metrics["ppo_kl"] == 0.0
    else:
        assert metrics["ppo_kl"] != 0.0
    assert ("kl_loss" in metrics) == (kl_coef > 0)


def test_metrics_and_weights_do_not_depend_on_micro_batches(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    trainers = [
        Trainer(model_folder, make_recipe(embedded={"micro_batch_tokens": limit}))
        for limit in (1, 10_000)
    ]
    one, many = (trainer.train([samples]) for trainer in trainers)
    assert one.keys() == many.keys()
    for name, value in one.items():
        assert value == pytest.approx(many[name], abs=1e-5), name
    assert largest_difference(trainers[0].hf_state(), trainers[1].hf_state()) < 1e-4


def test_flat_groups_count_in_the_denominator_only(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    flat = [replace(s, advantage=0.0) if s.group < 2 else s for s in samples]
    # An advantage too small to matter in float32, but not 0, forces the full computation.
    full = [replace(s, advantage=1e-30) if s.group < 2 else s for s in samples]
    results = []
    for batch in (flat, full):
        trainer = Trainer(model_folder, make_recipe(optimiser={"lr": 1e-2, "eps": 1e-3}))
        results.append((trainer.train([batch]), trainer.hf_state()))
    assert results[0][0]["loss"] == pytest.approx(results[1][0]["loss"], abs=1e-6)
    assert results[0][0]["grad_norm"] == pytest.approx(results[1][0]["grad_norm"], rel=1e-5)
    assert results[0][0]["tokens"] == results[1][0]["tokens"]
    assert largest_difference(results[0][1], results[1][1]) < 2e-5


def test_an_update_without_any_gradient_only_decays(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    recipe = make_recipe(optimiser={"lr": 0.1, "weight_decay": 0.5})
    trainer = Trainer(model_folder, recipe)
    metrics = trainer.train([[replace(sample, advantage=0.0) for sample in samples]])
    assert metrics["loss"] == metrics["grad_norm"] == 0.0
    before, after = read_hf(model_folder), trainer.hf_state()
    for name, tensor in after.items():
        factor = 0.95 if tensor.dim() > 1 else 1.0
        torch.testing.assert_close(tensor, before[name] * factor)


def test_log_probs_are_those_of_transformers(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    recipe = make_recipe(rollout={"temperature": 0.7}, embedded={"micro_batch_tokens": 50})
    ours = Trainer(model_folder, recipe).log_probs(samples)
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    for sample, got in zip(samples, ours, strict=True):
        assert got == pytest.approx(naive_log_probs(model, sample, 0.7).tolist(), abs=1e-5)


def test_training_raises_the_probability_of_what_had_an_advantage(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    signs = [replace(s, advantage=1.0 if n % 3 else -1.0) for n, s in enumerate(samples)]
    trainer = Trainer(model_folder, make_recipe(optimiser={"lr": 1e-3}))
    before = trainer.log_probs(signs)
    trainer.train([signs])
    after = trainer.log_probs(signs)
    for sample, old, new in zip(signs, before, after, strict=True):
        masked = [(a - b) * m for a, b, m in zip(new, old, sample.loss_mask, strict=True)]
        if any(sample.loss_mask):
            assert math.copysign(1, sum(masked)) == sample.advantage


def test_warm_up_reaches_the_full_rate(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    trainer = Trainer(model_folder, make_recipe(optimiser={"lr": 1e-3, "warmup_steps": 4}))
    rates = [trainer.train([samples])["lr"] for _ in range(5)]
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3])


@pytest.mark.parametrize("quantity", ["loss", "gradient norm"])
def test_a_number_that_is_not_finite_stops_the_update(
    model_folder: Path,
    make_recipe: MakeRecipe,
    samples: list[TrainSample],
    tmp_path: Path,
    quantity: str,
) -> None:
    trainer = Trainer(model_folder, make_recipe(), dump_folder=tmp_path / "dumps")
    before = trainer.hf_state()
    if quantity == "loss":
        bad = [replace(samples[0], advantage=math.nan, loss_mask=[1] * 9), *samples[1:]]
        bad[0] = replace(bad[0], loss_mask=[1] * len(samples[0].response_ids))
    else:
        bad = samples
        trainer.model.decoder.final_layernorm.weight.register_hook(lambda g: g * math.inf)
    with pytest.raises(NonFiniteError, match=quantity) as error:
        trainer.train([bad])
    assert largest_difference(before, trainer.hf_state()) == 0.0
    assert trainer.updates == 0
    assert error.value.dump is not None
    record = json.loads(error.value.dump.read_text())
    assert record["quantity"] == quantity
    assert [entry["rollout"] for entry in record["samples"]] == [s.rollout for s in samples]
    assert "decoder.final_layernorm.weight" in record["parameters"]


def test_export_without_training_is_bitwise_the_source(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample], tmp_path: Path
) -> None:
    half = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.bfloat16)
    half.save_pretrained(tmp_path / "half")
    trainer = Trainer(tmp_path / "half", make_recipe())
    trainer.export(tmp_path / "out")
    source, out = read_hf(tmp_path / "half"), read_hf(tmp_path / "out")
    assert {t.dtype for t in out.values()} == {torch.bfloat16}
    assert all(torch.equal(out[name], source[name]) for name in source)
    trainer.train([samples])
    trainer.export(tmp_path / "out")
    assert largest_difference(read_hf(tmp_path / "out"), source) > 0


def test_empty_and_misfit_updates_are_refused(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample]
) -> None:
    trainer = Trainer(model_folder, make_recipe())
    with pytest.raises(ValueError, match="no update"):
        trainer.train([])
    with pytest.raises(ValueError, match="no samples"):
        trainer.train([[]])
    with pytest.raises(ValueError, match="sample 0"):
        trainer.train([[replace(samples[0], loss_mask=[])]])
