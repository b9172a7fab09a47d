"""CPU time of ours per sample at a 128K-token prompt, the one rendering of a group left out.

One design choice: the time of the thread that runs the hooks is taken, so the stand-in engine,
whose threads answer at once, is left out. Sending is in it: 128K ids are a body of 0.6 MB.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[2]))

from slime_ext import hooks
from slime_ext.embedded.builtin import resolve
from slime_ext.embedded.lab.start import builtin_model
from slime_ext.host.types import Sample
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.runtime import Runtime, load_runtime
from tests.fakes.engine import answer, fake_engine

PROMPT_TOKENS, GROUPS, GROUP_SIZE, RESPONSE_TOKENS = 128_000, 6, 8, 512
LIMIT_MS = 5.0
LAB = Path(__file__).parents[2] / "configs" / "embedded" / "lab.toml"
SETTINGS = [
    'data.prompt="numbered_chunks"',
    "data.max_prompt_tokens=2000000",
    "rollout.context_tokens=3000000",
    f"rollout.prompts={GROUPS}",
    f"rollout.group_size={GROUP_SIZE}",
    f"rollout.max_response_tokens={RESPONSE_TOKENS}",
]


def write_rows(path: Path, words: list[str]) -> None:
    """GROUPS rows of about PROMPT_TOKENS tokens in 200 chunks, two of them gold."""
    draw = random.Random(0)
    with path.open("w") as file:
        for number in range(GROUPS):
            length = PROMPT_TOKENS // 200
            context = [
                {"id": str(chunk), "title": "", "text": " ".join(draw.choices(words, k=length))}
                for chunk in range(200)
            ]
            row = {"id": f"r{number}", "question": words[0], "answer": words[1]}
            file.write(json.dumps({**row, "context": context, "gold_chunks": ["3", "90"]}) + "\n")


def write_model(folder: Path) -> list[str]:
    """The lab's tokenizer with a vocabulary of a usual size; the words added to it."""
    shutil.copytree(builtin_model("lab-hs"), folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    words = [f"w{number}" for number in range(150_000)]
    first = max(vocabulary.values()) + 1
    vocabulary |= {word: first + number for number, word in enumerate(words)}
    tokenizer["model"]["unk_token"] = "<pad>"
    path.write_text(json.dumps(tokenizer))
    return words


def make_runtime(folder: Path) -> Runtime:
    """The lab recipe on rows of this benchmark's length."""
    rows, model = folder / "rows.jsonl", folder / "model"
    write_rows(rows, write_model(model))
    places = [f"data.train={rows}", f"data.eval={rows}", f"model.path={model}"]
    asked = load_recipe(LAB, [*SETTINGS, *places]).recipe
    run = RunFolder(folder / "run")
    run.path.mkdir()
    write_recipe(run, resolve(asked, run.path))
    return load_runtime(run.recipe)


async def sample_group(args: Namespace, group: list[Sample]) -> list[Sample]:
    """What the host asks of the hooks for one group, all samples at once."""
    sampling = {"temperature": 1.0, "max_new_tokens": RESPONSE_TOKENS}

    async def one(sample: Sample) -> Sample:
        sample = await hooks.generate(args, sample, dict(sampling))
        sample.reward = await hooks.reward(args, sample)  # type: ignore[assignment]
        return sample

    return list(await asyncio.gather(*(one(sample) for sample in group)))


async def cost(args: Namespace, runtime: Runtime) -> tuple[list[float], list[float]]:
    """Milliseconds of this thread by group: the rendering, and per sample all that follows."""
    source = RecipeDataSource(args)
    rendering, spent = [], []
    for step in range(GROUPS):
        start = time.thread_time()
        (group,) = source.get_samples(1)
        runtime.rendered("train", group[0].metadata["row"])
        rendering.append(1000 * (time.thread_time() - start))
        start = time.thread_time()
        samples = await sample_group(args, group)
        hooks.keep_group(args, samples)
        hooks.log_rollout(step, args, samples, None, 1.0)
        hooks.post_process_rewards(args, samples)
        spent.append(1000 * (time.thread_time() - start) / GROUP_SIZE)
    return rendering, spent


def main() -> int:
    """Print the figures; exit code 1 where a sample costs LIMIT_MS or more."""
    reply = answer([200 + n for n in range(RESPONSE_TOKENS - 1)] + [2], {"type": "stop"})
    with tempfile.TemporaryDirectory() as name, fake_engine(reply) as engine:
        runtime = make_runtime(Path(name))
        args = Namespace(
            longrl_recipe=str(runtime.folder / "recipe.toml"),
            sglang_router_ip="127.0.0.1",
            sglang_router_port=engine.port,
        )
        rendering, spent = asyncio.run(cost(args, runtime))
        length = len(runtime.prompt("train", 0))
    print(f"{length} prompt tokens; ms per sample by group: {[round(ms, 2) for ms in spent]}")
    print(f"figure group_rendering_ms {fmean(rendering):.1f}")
    print(f"figure sample_overhead_ms {median(spent):.2f}")
    return 0 if median(spent) < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
