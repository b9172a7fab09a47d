"""A step measured on this machine's CPU, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from launch.plan.measure import run
from launch.plan.measure.buffers import build
from launch.plan.measure.meter import ProcessMeter
from launch.plan.measure.phases import Blind, Phases
from launch.plan.measure.run import Device, Measured, measure
from launch.plan.measure.share import MeasureError, Share
from tests.launch.plan.measure.shares import small

CPU = Device("cpu", "CPU", 2**34)
MIB = 2**20
NOISE = MIB
"""Kernels' scratch and interpreter; the terms compared are ten to hundreds of times this."""


@pytest.fixture(scope="module")
def one() -> tuple[Share, Measured]:
    share = small()
    return share, measure(share, CPU)


def parameters(share: Share) -> int:
    _, buffers = build(share, torch.device("meta"))
    return sum(len(buffer.weights) for buffer in buffers)


def test_static_terms_are_exact(one: tuple[Share, Measured]) -> None:
    share, measured = one
    count = parameters(share)
    assert count * 2 > 5 * NOISE
    assert measured.terms["weights"] == pytest.approx(2 * count, abs=NOISE)
    assert measured.terms["gradients"] == pytest.approx(4 * count, abs=NOISE)
    assert measured.terms["optimiser"] == pytest.approx(12 * count / share.shards, abs=NOISE)


def test_log_probs_are_copies_of_the_logits(one: tuple[Share, Measured]) -> None:
    """fp32 copies: logits and softmax; without gradients and in chunks, logits beside bf16 ones;
    in training the softmax of every chunk and their joined gradient."""
    share, measured = one
    copy = 4 * share.tokens * share.vocab
    for term, copies in {
        "log_prob_no_grad_unchunked": 2.0,
        "log_prob_no_grad_chunked": 1.5,
        "log_prob_train_unchunked": 2.0,
        "log_prob_train_chunked": 2.0,
    }.items():
        assert measured.terms[term] == pytest.approx(copies * copy, rel=0.1), term


def test_the_peak_is_the_sum_of_what_is_alive(one: tuple[Share, Measured]) -> None:
    terms = one[1].terms
    static = terms["weights"] + terms["gradients"] + terms["optimiser"]
    alive = static + terms["checkpoints"] + terms["log_prob_train_chunked"]
    # Besides: outputs and their gradients of both micro-batches, a few MiB here.
    assert alive <= terms["peak"] <= 1.15 * alive
    assert not one[1].out_of_memory


def test_activations_grow_with_length_and_not_with_its_square(
    one: tuple[Share, Measured],
) -> None:
    share, long = one[0], one[1].terms
    half = small(tokens=share.tokens // 2)
    short = measure(half, CPU).terms
    for shape, terms in ((share, long), (half, short)):
        kept = 2 * shape.in_flight * shape.layers * shape.cut_tokens * shape.hidden
        assert terms["checkpoints"] == pytest.approx(kept, abs=NOISE)
    # Scores of every query and key in bf16 would make it 2.7.
    assert 1.4 < long["layer"] / short["layer"] < 2.3


@pytest.mark.parametrize(
    "changes",
    [
        {"has_embedding": True, "has_head": False, "in_flight": 2},
        {"has_embedding": True, "tied": True, "recompute": False, "qk_norm": False},
        {"ffn": 0, "experts": 3, "all_experts": 6, "top_k": 2, "expert_ffn": 32, "etp": 2},
        {"sequence_parallel": False, "qkv_bias": True, "chunked": False},
    ],
    ids=["first", "one stage", "experts", "no sequence parallel"],
)
def test_every_parameter_is_trained(changes: dict[str, object]) -> None:
    share = small(vocab=64, tokens=32, hidden=32, head_dim=8, **changes)
    terms: dict[str, int] = {}
    phases = Phases(share, Blind(), torch.device("cpu"), terms.__setitem__)
    phases.run()
    for buffer in phases.buffers:
        pieces = buffer.gradients.split([p.numel() for p in buffer.parameters])
        assert all(piece.isfinite().all() and piece.abs().sum() > 0 for piece in pieces)
    assert ("embedding_gradient" in terms) == share.has_embedding
    assert ("log_prob_train_chunked" in terms) == share.has_head


def test_the_process_meter_sees_a_tensor_come_and_go() -> None:
    meter = ProcessMeter()
    before = meter.used()
    tensor = torch.ones(64 * MIB, dtype=torch.uint8)
    assert meter.used() - before == pytest.approx(tensor.nbytes, abs=8 * MIB)
    del tensor
    assert meter.peak() - before >= 60 * MIB
    assert meter.used() - before < 16 * MIB


def test_a_system_without_proc_is_refused(tmp_path) -> None:
    with pytest.raises(MeasureError, match="measure on Linux"):
        ProcessMeter(tmp_path / "nowhere").used()


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `script` run where the measuring process would."""
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setattr(run.sys, "executable", str(file))


def test_a_failed_process_shows_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "echo no such kernel >&2; exit 3", monkeypatch)
    with pytest.raises(MeasureError, match=r"the measuring process failed:\nno such kernel"):
        measure(small(), CPU)


def test_a_killed_process_leaves_its_terms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, """echo '{"term": "weights", "bytes": 7}'; kill -9 $$""", monkeypatch)
    assert measure(small(), CPU) == Measured("CPU", {"weights": 7}, True)


def test_an_explained_failure_stays_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, """echo '{"error": "no /proc here"}'""", monkeypatch)
    with pytest.raises(MeasureError, match=r"^no /proc here$"):
        measure(small(), CPU)
