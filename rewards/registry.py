"""Which rewards exist: registered names, and rewards of one's own named by import path.

One design choice: the registry finds the modules of this package itself on first use, so that a new
reward is one new file and no list has to be edited.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import rewards
from rewards.base import Reward, RewardConfig
from rewards.outcome import Outcome
from rewards.parsing.families import Family

R = TypeVar("R", bound=type[Reward])

_RESERVED = frozenset({"kind", "truncated", "options"})


class _Registry(Mapping[str, type[Reward]]):
    """Name -> reward class; the modules of `rewards` are imported on first look-up."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Reward]] = {}
        self._searched = False

    def add(self, name: str, reward: type[Reward]) -> None:
        """Bind `name`; ValueError where it is taken or would hide a key of the [reward] section."""
        if name in _RESERVED:
            raise ValueError(f"a reward cannot be called {name!r}: that is a key of [reward]")
        if not name.isidentifier():
            raise ValueError(f"a reward cannot be called {name!r}: write a Python identifier")
        known = self._classes.setdefault(name, reward)
        if known.__qualname__ != reward.__qualname__ or known.__module__ != reward.__module__:
            raise ValueError(
                f"reward name {name!r} is taken by {known.__module__}:{known.__qualname__}"
            )

    def _search(self) -> None:
        if self._searched:
            return
        self._searched = True
        for module in pkgutil.iter_modules(rewards.__path__, "rewards."):
            if not module.ispkg:
                importlib.import_module(module.name)

    def __getitem__(self, name: str) -> type[Reward]:
        self._search()
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(self._classes)

    def __len__(self) -> int:
        self._search()
        return len(self._classes)


_registry = _Registry()
REWARDS: Mapping[str, type[Reward]] = _registry
"""Every registered reward by name."""


def register(name: str) -> Callable[[R], R]:
    """Class decorator: makes a `Reward` known as `[reward] kind = "name"`."""

    def bind(reward: R) -> R:
        _registry.add(name, reward)
        return reward

    return bind


def find_reward(kind: str) -> type[Reward]:
    """The class that `kind` names: a registered name, or "my_package.my_file:MyReward".

    Raises ValueError that says which part does not exist and what to write instead.
    """
    if ":" in kind:
        return _from_path(kind)
    if kind in REWARDS:
        return REWARDS[kind]
    near = difflib.get_close_matches(kind, REWARDS, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(
        f"unknown reward kind {kind!r}; {hint}known: {sorted(REWARDS)}; "
        'a reward of your own is written "my_package.my_file:MyReward"'
    )


def build_reward(
    kind: str, config: RewardConfig | Mapping[str, Any], family: Family, outcome: Outcome
) -> Reward:
    """An instance of the reward `kind` with its settings (validated where they are a mapping).

    Raises ValueError for an unknown kind (pydantic's ValidationError is one for bad settings) and
    TypeError where `config` is the settings of another reward.
    """
    cls = find_reward(kind)
    settings = cls.Config(**config) if isinstance(config, Mapping) else config
    if not isinstance(settings, cls.Config):
        raise TypeError(
            f"reward {kind!r} takes {cls.Config.__qualname__}, got {type(settings).__qualname__}"
        )
    return cls(settings, family, outcome)


def _from_path(path: str) -> type[Reward]:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"reward {path!r}: no module {error.name!r} on the Python path; "
            "set PYTHONPATH to the folder that holds your package"
        ) from None
    found = getattr(module, attribute, None)
    if found is None:
        classes = [name for name, value in vars(module).items() if _is_reward(value)]
        raise ValueError(
            f"reward {path!r}: {module_name} has no {attribute!r}; its rewards: {classes}"
        )
    if not _is_reward(found):
        raise ValueError(f"reward {path!r}: {attribute} is not a subclass of rewards.base.Reward")
    reward: type[Reward] = found
    return reward


def _is_reward(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Reward) and value is not Reward
