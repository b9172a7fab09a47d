"""A whole GRPO step, ours against TRL's GRPOTrainer, in CPU-seconds on one thread each.

Lab model's shape, 12 prompts x 8 samples x 40 new tokens, one update, no KL; both sides get the
same random weights and prompts, and both are forced to 40 tokens. Each side runs in a process of
its own, three times in alternation; the engine's process counts on our side. The figure is
TRL / ours, the lowest of the three.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

PEERS = Path(__file__).parent / "peers"
ROOT = Path(__file__).parents[2]
TRL = ROOT / ".venv-trl" / "bin" / "python"
LENGTHS, REPEATS, WARM_UP, MEASURED = (150, 600), 3, 2, 5
JOB = {"prompts": 12, "group_size": 8, "new_tokens": 40, "steps": WARM_UP + MEASURED}
VOCABULARY = [f"t{number}" for number in range(151)]


def write_model(folder: Path) -> None:
    """Random weights of the lab model's shape; a tokenizer of 151 words, none of them an end."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(VOCABULARY),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        bos_token_id=None,
        eos_token_id=None,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(described))


def write_job(folder: Path, length: int) -> None:
    """Model, rows and sizes of one comparison; every step of either side sees new prompts."""
    write_model(folder / "model")
    generator = random.Random(length)
    with (folder / "rows.jsonl").open("w") as out:
        for number in range(JOB["prompts"] * JOB["steps"]):
            prompt = " ".join(generator.choices(VOCABULARY[1:], k=length))
            row = {
                "id": str(number),
                "question": "which words?",
                "messages": [{"role": "user", "content": prompt}],
                "answer": " ".join(generator.sample(VOCABULARY[1:], 20)),
            }
            out.write(json.dumps(row) + "\n")
    (folder / "job.json").write_text(json.dumps(JOB | {"prompt_tokens": length}))


def median_seconds(python: Path, script: str, folder: Path) -> float:
    """Median CPU-seconds of one step, after the warm-up steps."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [str(python), str(PEERS / script), "--job", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    seconds = json.loads(done.stdout.splitlines()[-1])["cpu_seconds"]
    assert len(seconds) == JOB["steps"], seconds
    return statistics.median(seconds[WARM_UP:])


def compare(length: int) -> None:
    """Print the figures for prompts of `length` tokens."""
    sides = {"trl": (TRL, "trl_step.py"), "ours": (Path(sys.executable), "longrl_step.py")}
    found: dict[str, list[float]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        write_job(Path(folder), length)
        for repeat in range(REPEATS):
            for side, (python, script) in sides.items():
                found[side].append(median_seconds(python, script, Path(folder)))
            ours, peer = found["ours"][-1], found["trl"][-1]
            print(f"prompt {length}, repeat {repeat}: ours {ours:.3f} CPU-s, TRL {peer:.3f} CPU-s")
    pairs = zip(found["trl"], found["ours"], strict=True)
    print(f"figure grpo_step_ratio_{length} {min(peer / ours for peer, ours in pairs):.2f}")
    print(f"figure grpo_step_cpu_seconds_{length} {statistics.median(found['ours']):.3f}")
    print(f"figure trl_step_cpu_seconds_{length} {statistics.median(found['trl']):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="TOKENS")
    lengths = parser.parse_args().lengths
    if not TRL.is_file():
        sys.exit(f"{TRL} is missing; type `make trl` first")
    for length in lengths:
        compare(length)


if __name__ == "__main__":
    main()
