"""Where the host takes its prompts from: rows in seeded order, resumable at the exact next one.

One design choice: samples carry a row number and an id, never the context, which can be 500 KB and
would be copied G times and pickled between processes.
"""

from __future__ import annotations

import copy
from collections import deque
from pathlib import Path
from typing import Any

from slime_ext.data.stream import PromptStream
from slime_ext.host.types import DataSource, Sample
from slime_ext.rollout.positions import Positions
from slime_ext.rollout.refused import refuse_mismatch
from slime_ext.rollout.runtime import runtime_of
from slime_ext.rollout.usable import skipped_rows


class RecipeDataSource(DataSource):
    """Groups of `group_size` samples; `args` needs `longrl_recipe` and `save` (or None)."""

    def __init__(self, args: Any) -> None:
        self.runtime = runtime_of(args)
        refuse_mismatch(args, self.runtime)
        self.positions = Positions(Path(args.save)) if getattr(args, "save", None) else None
        recipe = self.runtime.recipe
        self.group_size = recipe.rollout.group_size
        self.stream = PromptStream(
            self.runtime.rows["train"], seed=recipe.seed, shuffle=recipe.data.shuffle
        )
        self.skipped = skipped_rows(self.runtime, "train")
        self.returned: deque[list[Sample]] = deque()
        self.next_group = 0
        if getattr(args, "rollout_global_dataset", False):
            # slime asks for `save` with its checkpoints alone, and never for one on request.
            self.runtime.after_rollout = self.remember

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        groups = [self.returned.popleft() for _ in range(min(num_samples, len(self.returned)))]
        while len(groups) < num_samples:
            positions = self.stream.next(num_samples - len(groups))
            groups += [self._group(place) for place in positions if place not in self.skipped]
        return groups

    def add_samples(self, samples: list[list[Sample]]) -> None:
        self.returned.extend(samples)

    def save(self, rollout_id: int) -> None:
        if self.positions is not None:
            self.positions.write(rollout_id, self.state())

    def load(self, rollout_id: int | None = None) -> None:
        if self.positions is None or rollout_id is None or rollout_id < 0:
            return
        self.restore(self.positions.read(rollout_id))

    def remember(self, rollout_id: int) -> None:
        """Store the position after `rollout_id`, and forget those that nothing can need."""
        self.save(rollout_id)
        if self.positions is not None:
            self.positions.forget(rollout_id)

    def __len__(self) -> int:
        return len(self.runtime.rows["train"])

    def state(self) -> dict[str, Any]:
        """Position in the stream, next group number, rows of the groups that were given back."""
        returned = [group[0].metadata["row"] for group in self.returned]
        return {
            "stream": self.stream.state(),
            "next_group": self.next_group,
            "returned": returned,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.stream.restore(state["stream"])
        self.next_group = int(state["next_group"])
        self.returned = deque(self._group(position) for position in state["returned"])

    def _group(self, position: int) -> list[Sample]:
        row = self.runtime.rows["train"].row(position)
        group = self.next_group
        self.next_group += 1
        first = Sample(
            group_index=group,
            label=row.answer,
            metadata={"row": position, "id": row.id, "source": row.source, "split": "train"},
        )
        samples = [copy.deepcopy(first) for _ in range(self.group_size)]
        for place, sample in enumerate(samples):
            sample.index = group * self.group_size + place
        return samples
