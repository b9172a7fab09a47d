"""Every metric is described, the README shows the table, and no key equals one of slime's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewards.types import Score
from slime_ext.host.types import Sample
from slime_ext.metrics.aggregate import eval_metrics, rollout_metrics
from slime_ext.metrics.names import describe, table
from slime_ext.metrics.sample_scores import remember_score

ROOT = Path(__file__).parents[3]
SLIME: dict[str, Any] = json.loads((ROOT / "tests" / "contracts" / "slime_keys.json").read_text())


def sample(group: int, source: str, score: Score, **metadata: Any) -> Sample:
    made = Sample(
        group_index=group,
        response_length=metadata.pop("length", 10),
        status=metadata.pop("status", Sample.Status.COMPLETED),
        metadata={"source": source, **metadata},
    )
    remember_score(made, score)
    made.metadata["combined"] = score.total
    made.metadata["combined_parts"] = dict(score.parts)
    return made


def samples() -> list[Sample]:
    """Two sources, with everything that makes a key appear."""
    right = Score(1.0, {"outcome": 1.0, "rubric_raw": 0.5})
    wrong = Score(0.0, {"outcome": 0.0}, "ill_formed:no_close_tag")
    none = Score(None, {}, "no_verdict:timeout")
    split = {"thinking_tokens": 4, "prompt_tokens": 100, "cached_tokens": 75}
    return [
        sample(0, "a/b", right, advantage=1.0, length=20, **split),
        sample(0, "a/b", wrong, advantage=-1.0, length=40, **split),
        sample(1, "c", none, status=Sample.Status.ABORTED),
        sample(1, "c", right, status=Sample.Status.TRUNCATED),
    ]


def test_every_emitted_key_is_described() -> None:
    keys = set(rollout_metrics(samples(), {"groups": 2})) | set(eval_metrics(samples()))
    assert [key for key in sorted(keys) if describe(key) is None] == []
    assert "source/a_b/reward/total" in keys


def test_no_key_equals_one_of_slimes() -> None:
    for key in rollout_metrics(samples(), {"groups": 2}):
        assert f"rollout/{key}" not in SLIME["rollout"]
        assert not f"rollout/{key}".startswith(tuple(SLIME["rollout_prefixes"]))
    for key in eval_metrics(samples()):
        assert f"eval/D/{key}" not in SLIME["eval"]
        assert not f"eval/D/{key}".startswith(tuple(SLIME["eval_prefixes"]))


def test_values_leave_out_what_is_undetermined_and_count_it() -> None:
    metrics = rollout_metrics(samples(), {})
    assert metrics["reward/total"] == pytest.approx(2 / 3)
    assert metrics["reward/outcome"] == pytest.approx(2 / 3)
    assert metrics["reward/rubric_raw"] == 0.5
    assert metrics["undetermined"] == 1
    assert metrics["undetermined/no_verdict:timeout"] == 1
    assert metrics["ill_formed/no_close_tag"] == 0.25
    assert (metrics["truncated_share"], metrics["lost_share"]) == (0.25, 0.25)
    assert metrics["length/max"] == 40
    assert metrics["length/p50"] == 15
    assert metrics["length_thinking/mean"] == 4
    assert metrics["length_content/max"] == 36
    assert metrics["cached_prompt_share"] == 0.75
    assert (metrics["group/mixed"], metrics["group/all_right"]) == (1, 1)
    assert metrics["group/zero_advantage"] == 1
    assert metrics["source/c/samples"] == 2


def test_one_source_is_not_repeated() -> None:
    assert not any(key.startswith("source/") for key in eval_metrics(samples()[:2]))


def test_the_readme_shows_the_table() -> None:
    assert table() in (ROOT / "slime_ext" / "README.md").read_text()
