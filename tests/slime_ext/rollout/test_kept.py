"""The cache keeps what was used last, within its limit; a group renders its prompt once."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_ext import hooks
from slime_ext.rollout import runtime as runtime_module
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.kept import Kept
from slime_ext.rollout.runtime import Runtime
from tests.fakes.engine import answer, fake_engine


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=60))
def test_the_weight_stays_within_the_limit(puts: list[tuple[int, int]]) -> None:
    kept: Kept[int, int] = Kept(40, lambda weight: weight)
    for key, weight in puts:
        if kept.get(key) is None:
            assert kept.put(key, weight) == weight
        values = [v for k in range(10) if (v := kept.get(k)) is not None]
        assert sum(values) <= 40
        assert kept.get(key) is not None


def test_what_was_used_last_is_kept() -> None:
    kept: Kept[str, int] = Kept(2, lambda _: 1)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)


def test_a_value_over_the_limit_is_kept_alone() -> None:
    kept: Kept[str, int] = Kept(2, lambda weight: weight)
    kept.put("a", 1)
    kept.put("b", 99)
    assert (kept.get("a"), kept.get("b")) == (None, 99)


def test_siblings_share_one_rendering_and_one_parse(
    lab_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = lab_runtime()
    calls = {"prompt_ids": 0, "task_from_row": 0}
    for name in calls:
        original = getattr(runtime_module, name)

        def counted(*args: object, _name: str = name, _original: object = original) -> object:
            calls[_name] += 1
            return _original(*args)  # type: ignore[operator]

        monkeypatch.setattr(runtime_module, name, counted)

    async def both_groups(args: Namespace) -> None:
        groups = RecipeDataSource(args).get_samples(2)
        samples = [sample for group in groups for sample in group]

        async def one(sample: hooks.Sample) -> None:
            done = await hooks.generate(args, sample, {"max_new_tokens": 4})
            await hooks.reward(args, done)

        await asyncio.gather(*(one(sample) for sample in samples))
        # Samples carry tokens of their own: a host may change one without touching its siblings.
        assert len({id(sample.tokens) for sample in samples}) == len(samples)

    with fake_engine(answer([30, 2], {"type": "stop", "matched": 2})) as engine:
        args = Namespace(
            longrl_recipe=str(runtime.folder / "recipe.toml"),
            sglang_router_ip="127.0.0.1",
            sglang_router_port=engine.port,
        )
        asyncio.run(both_groups(args))
        assert len(engine.received) == 2 * runtime.recipe.rollout.group_size
        sent = {tuple(body["input_ids"]) for body in engine.received}
    assert calls == {"prompt_ids": 2, "task_from_row": 2}
    rows = range(len(runtime.rows["train"]))
    assert sent < {tuple(runtime.prompt("train", row)) for row in rows}
