"""How many GPUs this process was given, as CUDA_VISIBLE_DEVICES tells it.

One design choice: fewer than the recipe counts on is an error here, on the node, because Ray would
take the number it is told and the trainer would fail hours later with "invalid device ordinal".
"""

from __future__ import annotations

import argparse
import os
import socket
import sys


class DeviceError(ValueError):
    """The node has other GPUs than the recipe counts on."""


def visible(text: str | None) -> list[str] | None:
    """Devices named by CUDA_VISIBLE_DEVICES: indices or UUIDs; None where it says nothing.

    Unset, and what SLURM writes for a step without GPUs ("NoDevFiles"), say nothing about the
    node's devices; an empty value hides all of them.
    """
    if text is None or text.strip() == "NoDevFiles":
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def count(text: str | None, expected: int) -> int:
    """GPUs to announce; raises DeviceError where fewer than `expected` are visible."""
    found = visible(text)
    if found is None:
        return expected
    if len(found) < expected:
        raise DeviceError(
            f"CUDA_VISIBLE_DEVICES={text!r} shows {len(found)} GPUs, the recipe counts on "
            f"{expected}; ask SLURM for --gres=gpu:{expected}, or set cluster.gpus_per_node = "
            f"{len(found)}"
        )
    return expected


def take(text: str | None, expected: int, first: int, number: int) -> str:
    """CUDA_VISIBLE_DEVICES of a process that gets `number` GPUs of the node's, from `first` on.

    Raises DeviceError as `count`.
    """
    count(text, expected)
    found = visible(text) or [str(index) for index in range(expected)]
    return ",".join(found[first : first + number])


def main() -> int:
    """Print the number of GPUs, or those that `--take` asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expected", type=int, required=True)
    parser.add_argument("--take", type=int, nargs=2, metavar=("FIRST", "NUMBER"))
    asked = parser.parse_args()
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        print(
            take(shown, asked.expected, *asked.take) if asked.take else count(shown, asked.expected)
        )
    except DeviceError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
