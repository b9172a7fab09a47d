"""Real training stopped and crashed six times in a row: every figure equals that of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from slime_ext.embedded.builtin import resolve, write_data
from slime_ext.embedded.loop import Loop
from slime_ext.embedded.stopping import StopRequest
from slime_ext.metrics.records import ATTEMPT_VARIABLE, read_rows
from slime_ext.metrics.run_folder import open_run, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout.runtime import load_runtime
from tests.fakes.runs import ROOT, SETTINGS, figures, order

STEPS = 6
ENDS: list[tuple[str, int]] = [
    ("crash", 1),
    ("stop", 1),
    ("crash", 3),
    ("stop", 3),
    ("crash", 4),
    ("stop", 4),
]
"""How each attempt ends, and at which step; a stop lets the step end, a crash does not."""


class CrashError(Exception):
    """What ends an attempt in the middle of a step."""


class StopAt(StopRequest):
    """A request to stop that comes while step `last` is trained."""

    def __init__(self, loop: Loop, last: int) -> None:
        super().__init__()
        train = loop.trainer.train

        def then_stop(*arguments: object) -> object:
            if loop.trainer.step == last:
                self.request("SIGUSR1")
            return train(*arguments)

        loop.trainer.train = then_stop  # type: ignore[method-assign]


def one_attempt(runs: Path, end: tuple[str, int] | None, patch: pytest.MonkeyPatch) -> bool:
    """Run or resume the lab run under `runs`; whether it reached its last step."""
    recipe_file = ROOT / "configs" / "embedded" / "lab.toml"
    asked = load_recipe(recipe_file, SETTINGS).recipe
    recipe = resolve(asked, runs / asked.name)
    folder, number = open_run(runs, recipe, fresh=False)
    patch.setenv(ATTEMPT_VARIABLE, str(number))
    write_data(asked, recipe)
    write_recipe(folder, recipe)
    load_runtime.cache_clear()
    loop = Loop(recipe, folder, number)
    stop = StopRequest()
    if end is not None and end[0] == "stop":
        stop = StopAt(loop, end[1])
    elif end is not None:
        push = loop._push

        def crash(version: int) -> None:
            if version == end[1] + 1:
                raise CrashError
            push(version)

        loop._push = crash  # type: ignore[method-assign]
    return loop.run(stop).finished


@pytest.mark.timeout(300)
def test_six_restarts_learn_exactly_what_one_run_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert one_attempt(tmp_path / "whole", None, monkeypatch)
    runs = tmp_path / "cut"
    for end in ENDS:
        if end[0] == "crash":
            with pytest.raises(CrashError):
                one_attempt(runs, end, monkeypatch)
        else:
            assert not one_attempt(runs, end, monkeypatch)
    assert one_attempt(runs, None, monkeypatch)
    cut, whole = runs / "lab", tmp_path / "whole" / "lab"
    assert figures(cut) == figures(whole)
    assert order(cut) == order(whole)
    rows = read_rows(cut / "metrics" / "rollout.jsonl")
    assert {row["attempt"] for row in rows} == set(range(1, len(ENDS) + 2))
    seen: set[int] = set()
    for row in rows:
        assert row.get("again", False) == (row["step"] in seen)
        seen.add(row["step"])
    assert seen == set(range(STEPS))
