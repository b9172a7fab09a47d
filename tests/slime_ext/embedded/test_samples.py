"""From samples to micro-batches: nothing lost, nothing over the limit that could be under it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_ext.embedded.samples import (
    TrainSample,
    check_samples,
    has_gradient,
    micro_batches,
    trees,
)
from slime_ext.embedded.tree import row_tokens


def sample(
    prompt: int = 5, response: int = 3, advantage: float = 1.0, mask: int = 1, group: int = 0
) -> TrainSample:
    return TrainSample(
        [7] * prompt, [8] * response, [-1.0] * response, advantage, [mask] * response, group, 0
    )


sizes = st.tuples(st.integers(2, 30), st.integers(1, 9), st.integers(0, 3))


@given(st.lists(sizes, min_size=1, max_size=20), st.integers(1, 120))
def test_every_sample_is_in_one_batch_and_batches_keep_the_limit(
    rows: list[tuple[int, int, int]], limit: int
) -> None:
    samples = [sample(prompt, response, group=group) for prompt, response, group in rows]
    batches = micro_batches(trees(samples), samples, limit)
    members = [index for batch in batches for tree in batch for index in tree.members]
    assert sorted(members) == list(range(len(samples)))
    for batch in batches:
        padded = len(batch) * row_tokens([tree.group for tree in batch])
        single = len(batch) == 1 and len(batch[0].members) == 1
        assert padded <= limit or single
        for tree in batch:
            for response, index in zip(tree.group.responses, tree.members, strict=True):
                assert response == samples[index].response_ids
                assert tree.group.prompt_ids == samples[index].prompt_ids


def test_samples_join_by_group_and_prompt() -> None:
    rows = [sample(5, group=1), sample(6, group=1), sample(5, group=1), sample(5, group=2)]
    assert [tree.members for tree in trees(rows)] == [(0, 2), (1,), (3,)]


def test_a_tree_has_no_gradient_without_advantage_or_mask() -> None:
    def gradient(rows: list[TrainSample], with_kl: bool = False) -> bool:
        return has_gradient(trees(rows)[0], rows, with_kl)

    flat, masked = sample(advantage=0.0), sample(mask=0)
    assert gradient([flat, sample()])
    assert not gradient([flat, masked])
    assert gradient([flat, masked], with_kl=True)
    assert not gradient([masked], with_kl=True)


def test_lengths_that_do_not_fit_are_named() -> None:
    short = TrainSample([1, 2], [3, 4], [-1.0], 1.0, [1, 1], 5, 6)
    with pytest.raises(ValueError, match=r"sample 1 \(group 5, rollout 6\)"):
        check_samples([sample(), short])
    with pytest.raises(ValueError, match="prompt of at least 2"):
        check_samples([sample(prompt=1)])
