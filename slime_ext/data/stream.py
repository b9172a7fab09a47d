"""The order in which prompts are served, resumable at the exact next prompt.

One design choice: an epoch's order is a function of (seed, epoch) alone, by sorting raw Philox
words: numpy guarantees that bit stream across versions, but not `Generator.permutation`. The state
is therefore two numbers, however long the file.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slime_ext.data.errors import DataError


class Rows(Protocol):
    """What a stream needs to know of the rows."""

    @property
    def fingerprint(self) -> Any: ...

    def __len__(self) -> int: ...


def epoch_order(rows: int, seed: int, epoch: int, shuffle: bool) -> NDArray[np.int64]:
    """Positions [rows] in the order of one epoch; file order without shuffle."""
    if not shuffle:
        return np.arange(rows)
    words = np.random.Philox(np.random.SeedSequence([seed, epoch])).random_raw(rows)
    return np.argsort(words, kind="stable")


class PromptStream:
    """Endless row positions, epoch by epoch; every epoch serves each row once.

    `seed` is at least 0. The state belongs to one file (its fingerprint), seed and shuffle setting.
    """

    def __init__(self, store: Rows, seed: int, shuffle: bool) -> None:
        if len(store) == 0:
            raise DataError("there are no rows to serve", key="data.train")
        self._identity: dict[str, Any] = {
            "rows": len(store),
            "fingerprint": str(store.fingerprint),
            "seed": seed,
            "shuffle": shuffle,
        }
        self._go_to(0, 0)

    def next(self, n: int) -> list[int]:
        """The next `n` positions; may run over the end of an epoch."""
        if n < 0:
            raise ValueError(f"n = {n}; ask for 0 or more prompts")
        positions: list[int] = []
        while len(positions) < n:
            if self._offset == len(self._order):
                self._go_to(self._epoch + 1, 0)
            taken = self._order[self._offset : self._offset + n - len(positions)]
            positions += taken.tolist()
            self._offset += len(taken)
        return positions

    def state(self) -> dict[str, Any]:
        """JSON values from which `restore` continues with the prompt after the last served."""
        return {"epoch": self._epoch, "offset": self._offset, **self._identity}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`; raises DataError for a state of other rows, seed or shuffle."""
        for key, expected in self._identity.items():
            if state.get(key) != expected:
                raise DataError(
                    f"the saved position has {key} = {state.get(key)!r}, this run {expected!r}",
                    key=key,
                    remedy=_REMEDIES[key],
                )
        epoch, offset = state.get("epoch"), state.get("offset")
        if not isinstance(epoch, int) or not isinstance(offset, int) or epoch < 0:
            raise DataError("the saved position is damaged", remedy="use an earlier checkpoint")
        if not 0 <= offset <= self._identity["rows"]:
            raise DataError(
                f"the saved position {offset} is outside the file",
                remedy="use an earlier checkpoint",
            )
        self._go_to(epoch, offset)

    def _go_to(self, epoch: int, offset: int) -> None:
        identity = self._identity
        self._epoch, self._offset = epoch, offset
        self._order = epoch_order(identity["rows"], identity["seed"], epoch, identity["shuffle"])


_REMEDIES = {
    "rows": "resume with the file the run started with, or start a new run",
    "fingerprint": "resume with the file the run started with, or start a new run",
    "seed": "resume with the recipe's first seed, or start a new run",
    "shuffle": "resume with the recipe's first data.shuffle, or start a new run",
}
