import random

import pytest
import torch

from slime_ext.embedded.lab.batches import Stage, make_batch
from slime_ext.embedded.lab.initialisation import initial_weights
from slime_ext.embedded.lab.start import lab_shape
from slime_ext.embedded.lab.supervised import Plan, supervised_loss, train
from slime_ext.embedded.lab.task import GraphSize
from slime_ext.embedded.lab.warm_start import make_start
from slime_ext.embedded.model import build_model, model_weights
from slime_ext.weights.names import hf_to_megatron

STAGE = Stage("tiny", steps=12, documents=2, hops=(2,), size=GraphSize(4, 2, 6), recite=0.5)
PLAN = Plan(stages=(STAGE,), muon_lr=0.02, adam_lr=0.03)


def _model():
    shape = lab_shape()
    return build_model(shape, hf_to_megatron(initial_weights(shape, 0), shape))


def test_loss_is_the_mean_cross_entropy_of_learned_tokens():
    model, batch = _model(), make_batch(random.Random(0), STAGE)
    tree = batch.tree
    logits = model.logits(tree.ids, tree.positions, tree.layout).transpose(0, 1).flatten(0, 1)
    picked = logits[tree.hidden_index][batch.learned]
    expected = torch.nn.functional.cross_entropy(picked, tree.targets[batch.learned])
    torch.testing.assert_close(supervised_loss(model, batch), expected)


def test_training_lowers_the_loss_and_repeats_bit_for_bit():
    models = [_model(), _model()]
    batch = make_batch(random.Random(9), STAGE)
    before = supervised_loss(models[0], batch).item()
    for model in models:
        train(model, PLAN, "test")
    assert supervised_loss(models[0], batch).item() < before - 0.3
    first, second = (model_weights(model) for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_schedule_warms_up_holds_and_decays():
    plan = Plan(stages=(Stage("long", 1000, 1, (2,)),), muon_lr=0.02, adam_lr=0.03)
    assert plan.schedule(0) == 1 / 50
    assert plan.schedule(49) == plan.schedule(599) == 1
    assert abs(plan.schedule(800) - 0.5) < 1e-9
    assert plan.schedule(999) == 0.05
    assert 0 < PLAN.schedule(11) < PLAN.schedule(5) < 1


def test_unknown_regime_is_refused():
    with pytest.raises(ValueError, match=r"'hx'.*'a', 'hs'"):
        make_start("hx", seed=0)
