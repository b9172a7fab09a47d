"""CPU-seconds of our GRPO steps, engine process included; run in .venv by grpo_step.py.

One design choice: this is `longrl train` on an ordinary recipe, and the seconds are those the run
itself records, so nothing a user's step does is left out: sampling over HTTP, reward, records,
loss, update, and the new weights in the engine. Prints a JSON object as its last line.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from slime_ext.embedded.run import train
from slime_ext.recipe.schema import Recipe


def recipe(folder: Path, job: dict[str, int]) -> Recipe:
    """The step of job.json; the model knows no end token, so every response has its full length."""
    length = job["prompt_tokens"]
    return Recipe.model_validate(
        {
            "name": "ours",
            "model": {"path": str(folder / "model")},
            "data": {
                "train": str(folder / "rows.jsonl"),
                "prompt": "messages",
                "max_prompt_tokens": length,
                "shuffle": False,
            },
            "rollout": {
                "steps": job["steps"],
                "prompts": job["prompts"],
                "group_size": job["group_size"],
                "max_response_tokens": job["new_tokens"],
                "context_tokens": length + job["new_tokens"],
            },
            "reward": {"kind": "outcome", "truncated": "keep"},
            "outcome": {"kind": "f1"},
            "optimiser": {"lr": 1e-6},
            "checkpoint": {"every": job["steps"], "keep": 1},
        }
    )


def records(run: Path, name: str) -> list[dict[str, float]]:
    """The lines of one of the run's metric files."""
    path = run / "metrics" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def check(run: Path, job: dict[str, int]) -> None:
    """Every step trained on all its tokens; a group without signal would have been skipped."""
    wanted = job["prompts"] * job["group_size"] * job["new_tokens"]
    for rolled, trained in zip(records(run, "rollout"), records(run, "train"), strict=True):
        assert trained["tokens"] == wanted, trained
        assert rolled["group/zero_advantage"] == 0, rolled


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True, help="folder that grpo_step.py wrote")
    folder = parser.parse_args().job
    torch.set_num_threads(1)
    job = json.loads((folder / "job.json").read_text())
    code = train(recipe(folder, job), folder, fresh=True)
    assert code == 0, code
    check(folder / "ours", job)
    seconds = [record["cpu_seconds"] for record in records(folder / "ours", "train")]
    print(json.dumps({"cpu_seconds": seconds}))


if __name__ == "__main__":
    main()
