"""What the installed slime can do.

One design choice: found by the attributes and modules it has, never by its version number; the
package of v0.2.4 calls itself 0.2.3, and a checkout of a later commit still says 0.3.1.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
from importlib import metadata
from types import ModuleType
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.host.types import HAVE_SLIME, Sample

LOGGING_MODULES = ("slime.utils.logging_utils", "slime.observability.logging_utils")
"""Up to v0.3.1, and after it."""


class UnsupportedHostError(ExplainedError, RuntimeError):
    """The installed slime cannot do what the recipe asks; the message names its version."""


def require_slime() -> None:
    """Raise UnsupportedHostError where slime is not installed: its half cannot run on stand-ins."""
    if not HAVE_SLIME:
        raise UnsupportedHostError(
            f"slime is not installed in {sys.prefix}; run this in slime's own image, or put a "
            "checkout on PYTHONPATH: git clone -b v0.3.1 https://github.com/THUDM/slime (the "
            "package of that name on PyPI is another project)"
        )


def can_fan_out(sample_type: type[Any] = Sample) -> bool:
    """Whether several samples of one rollout can be trained on as one.

    Without `rollout_id` slime cuts the flat batch to a multiple of the batch size, through the
    middle of rollouts.
    """
    return "rollout_id" in {field.name for field in dataclasses.fields(sample_type)}


def require_fan_out(kind: str, sample_type: type[Any] = Sample) -> None:
    """Raise UnsupportedHostError, naming slime's version, where rollouts of `kind` cannot run."""
    if not can_fan_out(sample_type):
        raise UnsupportedHostError(
            f"rollout.kind = {kind!r} makes several samples of one rollout, and this slime is "
            f"{release(sample_type)}, which trains on parts of such rollouts; install slime v0.3.1 "
            'or newer, or set rollout.kind = "single_turn"'
        )


def release(sample_type: type[Any] = Sample) -> str:
    """The installed slime as a person would name it: the release its features belong to, and the
    version its package states."""
    if not can_fan_out(sample_type):
        found = "v0.2.4 or older"
    elif HAVE_SLIME and logging_module_name() == LOGGING_MODULES[1]:
        found = "newer than v0.3.1"
    else:
        found = "v0.3.1"
    try:
        return f"{found} (its package says {metadata.version('slime')})"
    except metadata.PackageNotFoundError:
        return f"{found} (a checkout without package metadata)"


def logging_module_name() -> str:
    """Where this slime keeps `log`; raises UnsupportedHostError where it is in neither place."""
    for name in LOGGING_MODULES:
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ModuleNotFoundError as error:
            # The package above it is absent; a missing package of somebody else's is an error.
            if error.name is None or not name.startswith(error.name):
                raise
    raise UnsupportedHostError(
        f"this slime has neither {' nor '.join(LOGGING_MODULES)}; use v0.2.4, v0.3.1 or newer"
    )


def logging_module() -> ModuleType:
    """The module with slime's `log(args, metrics, step_key)`."""
    return importlib.import_module(logging_module_name())
