"""A stand-in for W&B's server, and no trace of this machine's own W&B."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.wandb_server import KEY, FakeWandb, fake_wandb


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    """The server, with its address and key in the environment."""
    with fake_wandb() as fake:
        monkeypatch.setenv("WANDB_BASE_URL", fake.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
        yield fake
