"""The step hook under a real gloo group, with stand-ins for slime's checkpoint functions."""

from __future__ import annotations

import subprocess
import sys
import types
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from slime_ext import hooks
from slime_ext.host.step_hook import MARKER, StoppedOnRequestError
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.stop_flag import StopFlag

Calls = list[tuple[str, object]]
"""What was asked of slime and Megatron, in order."""


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    import torch.distributed as dist

    if dist.is_initialized():  # by an embedded trainer earlier in this process
        yield
        return
    store = tmp_path_factory.mktemp("gloo") / "store"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "checkpoints").mkdir()
    return tmp_path


@pytest.fixture
def args(run: Path) -> Namespace:
    return Namespace(longrl_recipe=str(run / "recipe.toml"), save=str(run / "checkpoints"))


@pytest.fixture
def calls(group: None, run: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Stand-ins for the three modules of slime and Megatron that the hook loads by name."""
    import torch.distributed as dist

    made: Calls = []

    def save(iteration: int, model: object, optimizer: object, scheduler: object) -> None:
        assert (model, optimizer, scheduler) == ("model", "optimizer", "scheduler")
        made.append(("save", iteration))
        (run / "checkpoints" / MARKER).write_text(str(iteration))

    def finalize(blocking: bool) -> None:
        made.append(("finalize", blocking))

    found = {
        "slime.utils.distributed_utils": {"get_gloo_group": lambda: dist.group.WORLD},
        "slime.backends.megatron_utils.model": {"save": save},
        "megatron.training.async_utils": {"maybe_finalize_async_save": finalize},
    }
    for name, members in found.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return made


def step(args: Namespace, rollout: int, update: int = 0) -> None:
    hooks.before_train_step(args, rollout, update, "model", "optimizer", "scheduler")


def test_without_a_wish_training_goes_on(args: Namespace, calls: Calls, run: Path) -> None:
    step(args, 3)
    assert calls == []
    assert StopFlag(run).saved_step() is None


def test_a_stop_saves_what_the_rollout_before_left(
    args: Namespace, calls: Calls, run: Path
) -> None:
    StopFlag(run).ask("job 7")
    with pytest.raises(StoppedOnRequestError, match="up to rollout 2 is saved"):
        step(args, 3)
    assert calls == [("save", 2)]
    assert StopFlag(run).saved_step() == 2
    (event,) = read_rows(run / "events.jsonl")
    assert (event["kind"], event["step"], event["reason"]) == ("stopped", 2, "job 7")


def test_in_the_middle_of_a_rollout_it_waits_for_the_next(
    args: Namespace, calls: Calls, run: Path
) -> None:
    StopFlag(run).ask("job 7")
    step(args, 3, update=1)
    assert calls == []
    with pytest.raises(StoppedOnRequestError):
        step(args, 4)
    assert calls == [("save", 3)]


def test_an_iteration_is_never_saved_twice(args: Namespace, calls: Calls, run: Path) -> None:
    StopFlag(run).ask("job 7")
    (run / "checkpoints" / MARKER).write_text("2\n")
    with pytest.raises(StoppedOnRequestError):
        step(args, 3)
    assert calls == []
    assert StopFlag(run).saved_step() == 2


def test_before_rollout_0_there_is_nothing_to_save(
    args: Namespace, calls: Calls, run: Path
) -> None:
    StopFlag(run).ask("job 7")
    with pytest.raises(StoppedOnRequestError):
        step(args, 0)
    assert calls == []
    assert StopFlag(run).saved_step() == -1


def test_pending_saves_are_finished_before_and_after(
    args: Namespace, calls: Calls, run: Path
) -> None:
    StopFlag(run).ask("job 7")
    args.async_save = True
    with pytest.raises(StoppedOnRequestError):
        step(args, 3)
    assert calls == [("finalize", True), ("save", 2), ("finalize", True)]


def test_a_failed_save_is_no_answer(
    args: Namespace, calls: Calls, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["slime.backends.megatron_utils.model"], "save", full)
    StopFlag(run).ask("job 7")
    with pytest.raises(OSError, match="No space left"):
        step(args, 3)
    assert StopFlag(run).saved_step() is None


RANK = """
import sys, types
from argparse import Namespace
from pathlib import Path
import torch.distributed as dist
from slime_ext import hooks
from slime_ext.host.step_hook import StoppedOnRequestError
from slime_ext.metrics.stop_flag import StopFlag

rank, run = int(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{run}/store", rank=rank, world_size=2)
utils = types.ModuleType("slime.utils.distributed_utils")
utils.get_gloo_group = lambda: dist.group.WORLD
model = types.ModuleType("slime.backends.megatron_utils.model")
model.save = lambda iteration, *_: (run / f"saved_{rank}").write_text(str(iteration))
sys.modules |= {utils.__name__: utils, model.__name__: model}
args = Namespace(longrl_recipe=str(run / "recipe.toml"), save=str(run))
if rank == 1:
    # What rank 1 sees of the flag must not matter.
    StopFlag.asked = lambda self: None
hooks.before_train_step(args, 4, 0, None, None, None)
if rank == 0:
    StopFlag(run).ask("job 7")
try:
    hooks.before_train_step(args, 5, 0, None, None, None)
except StoppedOnRequestError:
    print("stopped", StopFlag(run).saved_step())
"""


def test_all_ranks_do_what_rank_0_saw(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert said == ["stopped 4\n", "stopped 4\n"]
    assert [(tmp_path / f"saved_{rank}").read_text() for rank in range(2)] == ["4", "4"]
