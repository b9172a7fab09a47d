"""Ports, open files, shared memory."""

from __future__ import annotations

import resource
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from launch.preflight import machine
from launch.preflight.machine import check_machine, is_free, named_ports
from tests.launch.preflight.conftest import MakeContext, named

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def listener() -> socket.socket:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken


def test_a_port_in_use_is_seen(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert not is_free(port)
    listener.close()
    assert is_free(port)


def test_ports_of_the_recipe_are_looked_at(
    make: MakeContext, host: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "RAY_PORTS", {})
    port = listener.getsockname()[1]
    context = make(extra={"slime": {"sglang-router-port": port, "sglang-router-ip": "10.0.0.1"}})
    assert named_ports(context.recipe) == {"extra.slime.sglang-router-port": port}
    finding = named(check_machine(context.recipe, context), "ports")
    assert finding.status == "warn"
    assert str(port) in finding.message
    listener.close()
    assert named(check_machine(context.recipe, context), "ports").status == "pass"


def test_a_ray_that_was_asked_for_may_hold_its_ports(
    make: MakeContext, host: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "RAY_PORTS", {"Ray's head": listener.getsockname()[1]})
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    context = make()
    assert named(check_machine(context.recipe, context), "ports").status == "warn"
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    assert named(check_machine(context.recipe, context), "ports").status == "pass"


@pytest.mark.parametrize(
    ("limits", "status", "remedy"),
    [
        ((1024, 4096), "warn", "the hard limit is 4096"),
        ((1024, 1_048_576), "warn", "ulimit -n 65536"),
        ((1024, resource.RLIM_INFINITY), "warn", "ulimit -n 65536"),
        ((1_048_576, 1_048_576), "pass", ""),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), "pass", ""),
    ],
)
def test_open_files(
    make: MakeContext,
    host: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[int, int],
    status: str,
    remedy: str,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    context = make()
    finding = named(check_machine(context.recipe, context), "open files")
    assert finding.status == status
    assert remedy in finding.remedy


@pytest.mark.parametrize(("gib", "status"), [(0.0625, "fail"), (8, "warn"), (64, "pass")])
def test_shared_memory(
    make: MakeContext, host: Path, monkeypatch: pytest.MonkeyPatch, gib: float, status: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, int(gib * 2**30)))
    context = make()
    assert named(check_machine(context.recipe, context), "shared memory").status == status


def test_another_machine_is_not_measured_by_this_one(make: MakeContext) -> None:
    context = make(offline=True)
    assert [one.status for one in check_machine(context.recipe, context)] == ["skip"]
