"""A hub on this machine and the `longrl` command with caches of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.hub import FakeHub, fake_hub

ROOT = Path(__file__).parents[3]
RECIPE = """
name = "made"
[model]
path = "{path}"
hub = "owner/model"
[data]
train = "hub:THU-KEG/LongTraceRL:train[1:]"
eval = "hub:THU-KEG/LongTraceRL:train[:1]"
format = "longtracerl"
prompt = "messages"
max_prompt_tokens = 64
[rollout]
steps = 1
prompts = 2
group_size = 2
max_response_tokens = 16
context_tokens = 80
[reward]
kind = "rubric"
[optimiser]
lr = 1e-6
"""


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A hub with one model and one data set of three rows."""
    extra = {"question": "Which city?", "rubrics": ["Ada Byrd", "Ur"], "dataset_name": "longqa"}
    row = {
        "source": "longqa",
        "input_messages": [{"role": "user", "content": "Documents. Which city?"}],
        "label": "Ur",
        "metadata": {"extra_reward_info": extra},
    }
    with fake_hub() as made:
        made.repositories["datasets/THU-KEG/LongTraceRL"] = {
            "README.md": b"---\nlicense: apache-2.0\n---\nMade.\n",
            "data.jsonl": b"".join(json.dumps(row).encode() + b"\n" for _ in range(3)),
        }
        made.repositories["models/owner/model"] = {
            "config.json": b"{}",
            "tokenizer.json": b"{}",
            "model.safetensors": b"w" * 4096,
            "pytorch_model.bin": b"w" * 4096,
            "original/consolidated.00.pth": b"w" * 4096,
        }
        yield made


@pytest.fixture
def prepare(tmp_path: Path, hub: FakeHub) -> Callable[..., subprocess.CompletedProcess[str]]:
    """prepare(*arguments, **environment) runs `longrl prepare` on a recipe of `tmp_path`.

    In a process of its own, because the hub's clients read their settings when imported.
    """
    recipe = tmp_path / "made.toml"
    recipe.write_text(RECIPE.format(path=tmp_path / "model"))
    own = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(tmp_path / "hf"),
        "LONGRL_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    clean = {key: value for key, value in os.environ.items() if not key.startswith("LONGRL_")}

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "launch.cli.main", "prepare", str(recipe), *arguments]
        return subprocess.run(
            command, env=clean | own | environment, capture_output=True, text=True, timeout=120
        )

    return run
