"""Whole runs of the lab recipe: finished, killed, interrupted, engine lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from slime_ext.metrics.records import last_rows, read_rows
from tests.fakes.runs import (
    STEPS,
    assert_same_run,
    engine_pid,
    finish,
    start,
    trained_steps,
    wait_for,
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    runs = tmp_path_factory.mktemp("reference")
    output = finish(start(runs))
    assert "answer accuracy" in output
    return runs / "lab"


def test_a_run_leaves_the_folder_the_design_names(reference: Path) -> None:
    names = {path.name for path in reference.iterdir()}
    assert names >= {
        "recipe.toml",
        "metrics",
        "rollouts",
        "events.jsonl",
        "attempts",
        "checkpoints",
        "hf",
        "summary.json",
        "data_report.json",
    }
    assert ".weights" not in names
    kinds = [row["kind"] for row in read_rows(reference / "events.jsonl")]
    assert kinds == ["start", "checkpoint", "checkpoint", "checkpoint", "finished"]
    assert trained_steps(reference) == STEPS
    assert {row["step"] for row in read_rows(reference / "metrics" / "eval.jsonl")} == {0, 3, 6}


def test_trainer_and_engine_agree_on_what_was_sampled(reference: Path) -> None:
    rows = last_rows(reference / "metrics" / "train.jsonl").values()
    assert max(row["train_rollout_logprob_abs_diff"] for row in rows) <= 1e-4


def test_a_run_killed_between_steps_goes_on_as_if_nothing_had_happened(
    reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "lab"
    process = start(tmp_path)
    wait_for(lambda: trained_steps(run) >= 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_gone = time.monotonic() + 10
    while engine_pid(run) is not None:
        assert time.monotonic() < wait_until_gone, "the engine outlived its run"
        time.sleep(0.05)
    finish(start(tmp_path))
    assert_same_run(run, reference)
    starts = [r["step"] for r in read_rows(run / "events.jsonl") if r["kind"] == "start"]
    assert starts[0] == 0
    assert starts[1] >= 2
    again = [row for row in read_rows(run / "metrics" / "train.jsonl") if row["attempt"] == 2]
    assert again


def test_an_engine_killed_mid_run_is_replaced_and_changes_no_sample(
    reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "lab"
    process = start(tmp_path)
    wait_for(lambda: trained_steps(run) >= 1, process)
    os.kill(wait_for(lambda: engine_pid(run), process), signal.SIGKILL)
    finish(process)
    assert_same_run(run, reference)
    assert "engine_restarted" in {row["kind"] for row in read_rows(run / "events.jsonl")}


def test_an_interrupt_stops_cleanly_and_the_run_goes_on(reference: Path, tmp_path: Path) -> None:
    run = tmp_path / "lab"
    process = start(tmp_path)
    wait_for(lambda: trained_steps(run) >= 1, process)
    process.send_signal(signal.SIGINT)
    output = finish(process, code=75)
    assert "the same command goes on" in output
    assert not (run / "summary.json").exists()
    finish(start(tmp_path))
    assert_same_run(run, reference)


def test_a_finished_run_is_not_overwritten(reference: Path) -> None:
    output = finish(start(reference.parent), code=2)
    assert "--fresh" in output
    assert "Traceback" not in output


def test_the_exported_model_says_in_transformers_what_it_says_in_the_engine(
    reference: Path, tmp_path: Path
) -> None:
    import httpx
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from slime_ext.embedded.engine.process import EngineProcess
    from slime_ext.embedded.samples import TrainSample
    from slime_ext.embedded.trainer import Trainer
    from slime_ext.rollout.runtime import load_runtime

    runtime = load_runtime(reference / "recipe.toml")
    model = AutoModelForCausalLM.from_pretrained(reference / "hf", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(reference / "hf")
    prompts = [runtime.prompt("eval", row) for row in range(4)]
    trainer = Trainer(reference / "hf", runtime.recipe)
    greedy = {"temperature": 0.0, "max_new_tokens": 40, "stop_token_ids": [tokenizer.eos_token_id]}
    with EngineProcess(reference / "hf", batch=8, log=tmp_path / "engine.log") as engine:
        for prompt in prompts:
            body = {"input_ids": prompt, "sampling_params": greedy, "return_logprob": True}
            answer = httpx.post(engine.url + "/generate", json=body).json()
            said = answer["output_ids"]
            expected = model.generate(
                torch.tensor([prompt]), max_new_tokens=40, do_sample=False, pad_token_id=0
            )[0, len(prompt) :]
            assert said == expected.tolist()
            assert len(said) > 5
            engine_says = [lp for lp, *_ in answer["meta_info"]["output_token_logprobs"]]
            sample = TrainSample(prompt, said, engine_says, 0.0, [1] * len(said), 0, 0)
            trainer_says = trainer.log_probs([sample])[0]
            assert trainer_says == pytest.approx(engine_says, abs=1e-4)
