"""What a slime can do is read from made-up slimes of each generation."""

from __future__ import annotations

import dataclasses
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_ext.host import features, loggers
from slime_ext.host.features import (
    UnsupportedHostError,
    can_fan_out,
    logging_module_name,
    release,
    require_fan_out,
)
from slime_ext.host.standins import Sample


@dataclasses.dataclass
class OldSample:
    """A sample of v0.2.4, as far as it matters here."""

    index: int | None = None
    session_id: str | None = None


LOG = "seen = []\ndef log(args, metrics, step_key):\n    seen.append((metrics, step_key))\n"


@pytest.fixture
def slime_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install a package `slime` made of the modules given as path=source."""

    def make(**modules: str) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "slime"]:
            monkeypatch.delitem(sys.modules, name)
        for name, source in modules.items():
            folder = tmp_path / "slime" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
            (folder / "logging_utils.py").write_text(source)
        (tmp_path / "slime").mkdir(exist_ok=True)
        (tmp_path / "slime" / "__init__.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(features, "HAVE_SLIME", True)
        monkeypatch.setattr(loggers, "HAVE_SLIME", True)

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "slime"]:
        del sys.modules[name]


def test_fan_out_needs_a_rollout_id() -> None:
    assert can_fan_out(Sample)
    assert not can_fan_out(OldSample)
    require_fan_out("mine", Sample)


def test_the_refusal_names_kind_version_and_remedy() -> None:
    with pytest.raises(UnsupportedHostError) as refused:
        require_fan_out("my.module:EPISODES", OldSample)
    message = str(refused.value)
    assert "my.module:EPISODES" in message
    assert "v0.2.4 or older" in message
    assert "v0.3.1 or newer" in message


def test_the_stated_version_is_quoted_and_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    # v0.2.4's package states 0.2.3.
    monkeypatch.setattr(features.metadata, "version", lambda _: "0.2.3")
    assert release(OldSample) == "v0.2.4 or older (its package says 0.2.3)"


@pytest.mark.parametrize(
    ("place", "name"), [("utils", "v0.3.1 ("), ("observability", "newer than v0.3.1 (")]
)
def test_the_logger_is_found_where_this_slime_has_it(
    slime_with: Callable[..., None], place: str, name: str
) -> None:
    slime_with(**{place: LOG})
    assert logging_module_name() == f"slime.{place}.logging_utils"
    assert release(Sample).startswith(name)
    loggers.log(Namespace(use_wandb=False), {"a": 1.0}, 4, axis="eval/step")
    seen: list[Any] = sys.modules[f"slime.{place}.logging_utils"].seen
    assert seen == [({"a": 1.0, "eval/step": 4}, "eval/step")]


def test_a_slime_with_an_empty_utils_has_moved_its_logger(
    slime_with: Callable[..., None], tmp_path: Path
) -> None:
    slime_with(utils=LOG, observability=LOG)
    (tmp_path / "slime" / "utils" / "logging_utils.py").unlink()
    assert logging_module_name() == "slime.observability.logging_utils"


def test_a_missing_requirement_of_slimes_logger_is_not_taken_for_a_move(
    slime_with: Callable[..., None],
) -> None:
    slime_with(utils="import a_tracker_that_is_absent\n", observability=LOG)
    with pytest.raises(ModuleNotFoundError, match="a_tracker_that_is_absent"):
        features.logging_module()


def test_a_slime_without_a_logger_is_named(slime_with: Callable[..., None]) -> None:
    slime_with()
    with pytest.raises(UnsupportedHostError, match=re.escape("slime.utils.logging_utils")):
        logging_module_name()
