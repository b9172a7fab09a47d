"""What every hook of one run shares: recipe, tokenizer, rows, reward.

One design choice: hooks receive only the host's `args`, so everything else is found through one
key in it, `longrl_recipe`, the path of the resolved recipe in the run folder; each process loads it
once.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from rewards.base import Reward
from rewards.judge.judge import rates
from rewards.outcome import make_outcome
from rewards.parsing.families import FAMILIES, Family
from rewards.registry import build_reward
from rewards.types import Task
from slime_ext.data.budget import prompt_ids
from slime_ext.data.hub.stored import file_format
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row
from slime_ext.metrics.alarms.alarms import Alarms
from slime_ext.metrics.records import Records
from slime_ext.metrics.stop_flag import StopFlag
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.kept import Kept

Split = str
"""`train`, `eval`, or a name in data.eval_sets."""

KEPT_TOKENS = 16_000_000
"""Tokens of the rendered prompts a process keeps: at 45 bytes each (a list of ints and its JSON)
0.7 GB, or 120 prompts of 128K."""
KEPT_CHARACTERS = 64_000_000
"""Characters of the chunks whose tasks it keeps: as many prompts, 64 to 256 MB."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt: token ids, and the same as JSON, which every sibling sends."""

    ids: list[int]
    json: orjson.Fragment


@dataclass
class Runtime:
    """Shared state of one run in one process."""

    recipe: Recipe
    folder: Path
    tokenizer: Any
    family: Family
    reward: Reward
    rows: dict[Split, RowStore]
    records: Records
    alarms: Alarms
    stop_ids: tuple[int, ...]
    close_id: int | None
    """Token of the closing thinking tag."""
    step: int | None = None
    """The step whose samples are being settled; set by the rollout log hook."""
    dropped: int = 0
    """Groups the dynamic filter has dropped from the step that is being sampled."""
    latest: dict[str, float] = field(default_factory=dict)
    """Metrics of that step."""
    after_rollout: Callable[[int], None] | None = None
    """Told the number of each rollout once it is sampled; set by the data source under slime."""
    router: str | None = None
    """Address of the engines' router that was written to the run folder."""
    _prompts: Kept[tuple[Split, int], Prompt] = field(
        default_factory=lambda: Kept(KEPT_TOKENS, lambda prompt: len(prompt.ids))
    )
    _tasks: Kept[tuple[Split, int], Task] = field(
        default_factory=lambda: Kept(KEPT_CHARACTERS, _characters)
    )
    _judge_before: dict[str, float] = field(default_factory=dict)

    @property
    def eval_splits(self) -> list[Split]:
        """The held-out splits, `eval` first."""
        return [split for split in self.rows if split != "train"]

    def prompt(self, split: Split, position: int) -> list[int]:
        """Token ids of the rendered prompt of one row, not to be changed; raises PromptTooLong."""
        return self.rendered(split, position).ids

    def rendered(self, split: Split, position: int) -> Prompt:
        """The prompt of one row, rendered for the first of a group and kept for its siblings.

        Raises PromptTooLong.
        """
        key = (split, position)
        kept = self._prompts.get(key)
        if kept is not None:
            return kept
        row = self.rows[split].row(position)
        ids = prompt_ids(
            row,
            self.recipe.data.prompt,
            self.tokenizer,
            self.recipe.model.chat_template_kwargs,
            self.recipe.data.max_prompt_tokens,
        )
        if self._tasks.get(key) is None:
            # The row is parsed already; at 128K tokens that takes longer than a reward does.
            self._tasks.put(key, task_from_row(row))
        return self._prompts.put(key, Prompt(ids, orjson.Fragment(orjson.dumps(ids))))

    def task(self, split: Split, position: int) -> Task:
        """What the reward may know about one row."""
        kept = self._tasks.get((split, position))
        if kept is not None:
            return kept
        return self._tasks.put((split, position), task_from_row(self.rows[split].row(position)))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of sampled ids, special tokens kept: parsing must see them."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))

    def thinking_tokens(self, ids: Sequence[int]) -> int | None:
        """Tokens up to and with the last closing thinking tag; None for a family without thinking
        or a tokenizer that has no token of its own for the tag."""
        if self.close_id is None:
            return None
        return max(
            (place + 1 for place, token in enumerate(ids) if token == self.close_id), default=0
        )

    def judge_counts(self) -> dict[str, float]:
        """What the judge counted since the last call, and rates of it, as metrics `judge/NAME`."""
        now = self.reward.outcome.counters()
        before, self._judge_before = self._judge_before, now
        grown = {name: value - before.get(name, 0.0) for name, value in now.items()}
        return {f"judge/{name}": value for name, value in (grown | rates(grown)).items()}

    def sampling_seed(self, *parts: object) -> int:
        """A 31-bit seed that depends on the recipe's seed and `parts` only."""
        text = "/".join(str(part) for part in (self.recipe.seed, *parts))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) >> 1


def _characters(task: Task) -> int:
    return sum(len(text) for text in task.chunk_texts.values())


def runtime_of(args: Any) -> Runtime:
    """The runtime of the run that `args.longrl_recipe` names."""
    path = getattr(args, "longrl_recipe", None)
    if not path:
        raise ValueError(
            "args has no longrl_recipe; start the run with `longrl train`, or put the line "
            "`longrl_recipe: RUN/recipe.toml` into the file given to --custom-config-path"
        )
    return load_runtime(Path(path))


@functools.lru_cache(maxsize=4)
def load_runtime(path: Path) -> Runtime:
    """The runtime of the resolved recipe at `path`; the run folder is the one that holds it."""
    from transformers import AutoTokenizer

    recipe = load_recipe(path).recipe
    tokenizer = AutoTokenizer.from_pretrained(recipe.model.path)
    family = FAMILIES[recipe.model.family]
    files: dict[Split, str] = {"train": recipe.data.train}
    if recipe.data.eval is not None:
        files["eval"] = recipe.data.eval
    rows = {split: _open(file, recipe) for split, file in (files | recipe.data.eval_sets).items()}
    records = Records(path.parent)
    config = getattr(recipe.reward, recipe.reward.kind, recipe.reward.options)
    return Runtime(
        recipe=recipe,
        folder=path.parent,
        tokenizer=tokenizer,
        family=family,
        reward=build_reward(recipe.reward.kind, config, family, make_outcome(recipe.outcome)),
        rows=rows,
        records=records,
        alarms=Alarms(recipe.alarms, records, StopFlag(path.parent).ask),
        stop_ids=stop_ids(tokenizer, family, recipe.model.stop_token_ids),
        close_id=tokenizer.get_vocab().get(family.close_tag) if family.thinking else None,
    )


def _open(file: str, recipe: Recipe) -> RowStore:
    path = Path(file)
    return RowStore(path, file_format(path, recipe.data.format))


def stop_ids(tokenizer: Any, family: Family, named: Sequence[int] = ()) -> tuple[int, ...]:
    """Ids that end a response: those the recipe names, else the family's stop tokens the tokenizer
    knows; and its own eos, at which engines stop whatever they are told."""
    known = tokenizer.get_vocab()
    ids = set(named) or {known[token] for token in family.stop_tokens if token in known}
    if tokenizer.eos_token_id is not None:
        ids.add(tokenizer.eos_token_id)
    return tuple(sorted(ids))
