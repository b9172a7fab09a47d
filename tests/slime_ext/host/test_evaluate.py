"""The launcher's own decisions, without slime: engines from outside, GPUs, refusals."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slime_ext.errors import ExplainedError
from slime_ext.host import evaluate, features
from slime_ext.host.evaluate import attach_engine, require_gpus
from slime_ext.host.features import UnsupportedHostError, require_slime


def parsed(**changes: Any) -> Namespace:
    """What slime's parser leaves for `--rollout-num-gpus 8`."""
    asked: dict[str, Any] = {
        "rollout_external_engine_addrs": None,
        "longrl_engine": None,
        "custom_config_path": None,
        "rollout_num_gpus": 8,
        "sglang_router_ip": None,
        "sglang_config": None,
    }
    return Namespace(**(asked | changes))


@pytest.fixture
def external_module(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether slime knows engines from outside; a test may change it."""
    known = [True]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if known[0] else None)
    return known


def test_without_slime_the_launcher_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "HAVE_SLIME", False)
    with pytest.raises(UnsupportedHostError, match="slime is not installed") as error:
        require_slime()
    assert "git clone -b v0.3.1" in str(error.value)


@pytest.mark.skipif(importlib.util.find_spec("slime") is not None, reason="slime is installed")
def test_the_module_ends_with_one_message_without_slime() -> None:
    command = [sys.executable, "-m", "slime_ext.host.evaluate", "--num-rollout", "0"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("longrl: slime is not installed")
    assert "Traceback" not in ended.stderr


def test_an_error_of_an_actor_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class WrappedError(ExplainedError):
        """As Ray raises it: the actor's traceback for text, the error itself beside it."""

        cause = ExplainedError("the judge is gone; start it")

    def fail() -> None:
        raise WrappedError("ray::RolloutManager.eval() ... Traceback ...")

    monkeypatch.setattr(evaluate, "evaluate", fail)
    with pytest.raises(SystemExit) as ended:
        evaluate.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "longrl: the judge is gone; start it\n"


def test_one_engine_takes_the_place_of_the_router(
    tmp_path: Path, external_module: list[bool]
) -> None:
    args = parsed(longrl_engine="[::1]:30000", custom_config_path=str(tmp_path / "longrl.yaml"))
    for external_module[0] in (True, False):
        attach_engine(args)
        assert (args.sglang_router_ip, args.sglang_router_port) == ("[::1]", 30000)
        assert args.rollout_num_gpus == 0
        groups = yaml.safe_load(Path(args.sglang_config).read_text())["sglang"][0]
        assert groups["server_groups"] == []


def test_one_engine_without_our_config_is_refused(external_module: list[bool]) -> None:
    with pytest.raises(ExplainedError, match="--custom-config-path"):
        attach_engine(parsed(longrl_engine="a:1"))


def test_several_engines_need_a_slime_that_takes_them(external_module: list[bool]) -> None:
    args = parsed(rollout_external_engine_addrs=["a:1", "b:2"])
    attach_engine(args)
    assert args == parsed(rollout_external_engine_addrs=["a:1", "b:2"])
    external_module[0] = False
    with pytest.raises(UnsupportedHostError, match="put a router before them"):
        attach_engine(args)


@pytest.mark.parametrize(
    "enough",
    [
        parsed(rollout_external_engine_addrs=["a:1", "b:2"]),
        parsed(longrl_engine="a:1"),
        parsed(rollout_num_gpus=None),
        parsed(rollout_num_gpus=4),
    ],
)
def test_gpus_are_needed_for_engines_of_slime_only(enough: Namespace) -> None:
    require_gpus(enough, 4)
    with pytest.raises(ExplainedError, match=r"asks for 8 GPUs and Ray has 4"):
        require_gpus(parsed(), 4.0)


def test_our_two_arguments_join_the_parser() -> None:
    parser = evaluate._own_arguments(ArgumentParser())
    words = ["--longrl-step", "9", "--longrl-engine", "a:1"]
    assert vars(parser.parse_args(words)) == {"longrl_step": 9, "longrl_engine": "a:1"}
    assert vars(parser.parse_args([])) == {"longrl_step": 0, "longrl_engine": None}
