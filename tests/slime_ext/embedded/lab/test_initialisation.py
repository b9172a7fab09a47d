import torch

from slime_ext.embedded.lab.initialisation import initial_weights
from slime_ext.embedded.lab.start import lab_shape
from slime_ext.weights.names import HF_EMBEDDING, expected_tensors
from slime_ext.weights.rope import rotary_frequencies


def test_weights_fit_the_shape_and_repeat_for_the_same_seed():
    shape = lab_shape()
    weights = initial_weights(shape, seed=3)
    assert {name: tuple(w.shape) for name, w in weights.items()} == expected_tensors(shape)
    assert sum(w.numel() for w in weights.values()) == 108_416
    again, other = initial_weights(shape, seed=3), initial_weights(shape, seed=4)
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert not torch.equal(weights[HF_EMBEDDING], other[HF_EMBEDDING])


def _rotate(vectors, positions, shape):
    angles = positions[:, None] * rotary_frequencies(shape)
    first, second = vectors.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def test_first_layer_heads_look_one_to_four_tokens_back_whatever_the_tokens():
    shape = lab_shape()
    weights = initial_weights(shape, seed=0)
    words = torch.randint(shape.vocab_size, (60,), generator=torch.Generator().manual_seed(1))
    hidden = torch.nn.functional.rms_norm(weights[HF_EMBEDDING][words], (shape.hidden_size,))
    prefix = "model.layers.0.self_attn."
    for head in range(shape.num_heads):
        group = head // (shape.num_heads // shape.num_kv_heads)
        sides = []
        for kind, number in (("q", head), ("k", group)):
            rows = slice(number * shape.head_dim, (number + 1) * shape.head_dim)
            side = hidden @ weights[f"{prefix}{kind}_proj.weight"][rows].T
            gain = weights[f"{prefix}{kind}_norm.weight"]
            side = torch.nn.functional.rms_norm(side, (shape.head_dim,), gain)
            sides.append(_rotate(side, torch.arange(60.0), shape))
        scores = sides[0] @ sides[1].T / shape.head_dim**0.5
        seen = scores.masked_fill(torch.ones(60, 60).triu(1).bool(), -torch.inf)
        attention = seen.softmax(-1)[10:]
        looked_back = torch.arange(10, 60) - attention.argmax(-1)
        assert looked_back.median() == head + 1
        assert (looked_back == head + 1).float().mean() > 0.6
