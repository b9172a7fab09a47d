"""A local copy of a published set, and caches of this test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def local_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """local_set(name, rows, kind) -> the folder of OWNER/NAME under LONGRL_HUB_FOLDER."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "arrow")
    monkeypatch.setenv("LONGRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGRL_HUB_FOLDER", str(tmp_path / "hub"))

    def make(name: str, rows: list[dict[str, Any]], kind: str = "jsonl") -> Path:
        folder = tmp_path / "hub" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\nA made set.\n")
        if kind == "jsonl":
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / "data.jsonl").write_text(text)
        else:
            pyarrow = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "train.parquet")
        return folder

    return make


@pytest.fixture
def trace() -> Callable[..., dict[str, Any]]:
    """trace(n) -> a row as LongTraceRL publishes it."""

    def make(number: int, label: str = "Ur", rubrics: tuple[str, ...] = ("Ada Byrd", "Ur")) -> Any:
        extra = {"question": "Which city?", "rubrics": list(rubrics), "dataset_name": "longqa"}
        return {
            "source": "longqa",
            "input_messages": [{"role": "user", "content": f"Documents {number}. Which city?"}],
            "label": label,
            "metadata": {"extra_reward_info": extra},
        }

    return make


@pytest.fixture
def verl() -> Callable[..., dict[str, Any]]:
    """verl(n) -> a row as LongRLVR publishes it; `texts` may be left out."""

    def make(number: int, texts: bool = True) -> dict[str, Any]:
        extra: dict[str, Any] = {"question": "Which?", "ref_chunks": [1]}
        if texts:
            extra["ref_chunks_text"] = ["Ur."]
        return {
            "prompt": [{"role": "user", "content": f"<CHUNK_0> {number} <CHUNK_1> Ur. Which?"}],
            "data_source": "books",
            "reward_model": {"style": "rule", "ground_truth": "Ur"},
            "extra_info": extra,
        }

    return make
