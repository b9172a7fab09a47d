"""CPU-seconds of GRPO steps by TRL's GRPOTrainer; run inside .venv-trl by grpo_step.py.

One design choice: TRL gets its fast settings (one micro-batch, no gradient checkpointing, no KL, no
second pass for old log-probs, fused AdamW, no logging), so that the comparison is with TRL at its
best on one thread. Prints a JSON object as its last line.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class StepClock(TrainerCallback):
    """CPU time of each step: generation, reward, loss, update; fetching the batch left out."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._began = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(time.process_time() - self._began)


def overlap(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """A cheap reward that differs between samples: how much of the answer a completion holds."""
    pairs = zip(completions, answer, strict=True)
    return [len({*text.split()} & {*gold.split()}) / 20 for text, gold in pairs]


def settings(job: dict[str, Any], output: Path, micro: int) -> GRPOConfig:
    """The same step as longrl_step.py's recipe: sizes, temperature, loss and optimiser."""
    samples = job["prompts"] * job["group_size"]
    return GRPOConfig(
        output_dir=str(output),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=samples // micro,
        num_generations=job["group_size"],
        max_completion_length=job["new_tokens"],
        generation_kwargs={"min_new_tokens": job["new_tokens"]},
        max_steps=job["steps"],
        temperature=1.0,
        beta=0.0,
        epsilon=0.2,
        epsilon_high=0.28,
        loss_type="dapo",
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        optim="adamw_torch_fused",
        adam_beta1=0.9,
        adam_beta2=0.98,
        weight_decay=0.1,
        max_grad_norm=1.0,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        report_to=[],
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        shuffle_dataset=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True, help="folder that grpo_step.py wrote")
    parser.add_argument("--micro", type=int, default=96, help="samples of one forward pass")
    options = parser.parse_args()
    torch.set_num_threads(1)
    job = json.loads((options.job / "job.json").read_text())
    rows = [json.loads(line) for line in (options.job / "rows.jsonl").read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(options.job / "model")
    # Never sampled: min_new_tokens forbids it, so that every response has its full length.
    tokenizer.eos_token = tokenizer.pad_token = "t0"
    clock = StepClock()
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(
            options.job / "model", dtype=torch.float32, attn_implementation="sdpa"
        ),
        reward_funcs=overlap,
        args=settings(job, options.job / "trl", options.micro),
        train_dataset=Dataset.from_list(
            [{"prompt": row["messages"][0]["content"], "answer": row["answer"]} for row in rows]
        ),
        processing_class=tokenizer,
        callbacks=[clock],
    )
    trainer.train()
    assert trainer.state.log_history[-1]["completions/min_length"] == job["new_tokens"]
    print(json.dumps({"cpu_seconds": clock.seconds}))


if __name__ == "__main__":
    main()
