"""The router's address in the run folder: written once, and again when it changes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from slime_ext.rollout.engine_address import FILE, note_engines, noted_router
from slime_ext.rollout.runtime import Runtime


def test_the_router_is_noted_when_it_is_new(lab_runtime: Callable[..., Runtime]) -> None:
    runtime = lab_runtime()
    file = runtime.folder / FILE
    note_engines(runtime, Namespace(sglang_router_ip=None, sglang_router_port=None))
    note_engines(runtime, Namespace())
    assert noted_router(runtime.folder) is None
    here = Namespace(sglang_router_ip="10.0.0.1", sglang_router_port=3000)
    note_engines(runtime, here)
    assert noted_router(runtime.folder) == "http://10.0.0.1:3000"
    file.unlink()
    note_engines(runtime, here)
    assert not file.exists(), "one write for each address"
    note_engines(runtime, Namespace(sglang_router_ip="10.0.0.1", sglang_router_port=3001))
    assert noted_router(runtime.folder) == "http://10.0.0.1:3001"
