"""The last step of an image's build: everything the package needs is there, nothing was replaced.

One design choice: the host's own modules are asked where they lie; a version number would not tell
PyPI's megatron-core from the Megatron-LM that bears its name.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

HOST = {"slime": "/root/slime", "megatron.core": "/root/Megatron-LM"}
"""Where slime's image has them."""


def faults(places: Mapping[str, str] = HOST) -> list[str]:
    """What is wrong with this Python environment, a line each."""
    found = [*_missing("longrl")]
    for name, place in places.items():
        origin = _origin(name)
        if origin is None:
            found.append(f"{name} cannot be imported")
        elif not origin.is_relative_to(place):
            found.append(f"{name} comes from {origin}, not from {place}: something replaced it")
    return found


def _missing(distribution: str) -> list[str]:
    """Requirements of the distribution without its extras that are absent or of another version."""
    found = []
    for text in metadata.requires(distribution) or []:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            found.append(f"{wanted.name} is missing; add it to launch/container/requirements.txt")
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            found.append(f"{wanted.name} is {version}, wanted {wanted.specifier}")
    return found


def _origin(name: str) -> Path | None:
    """Folder of a package without importing more than its parents; None where there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]).resolve() if places else None


def main() -> int:
    """Print the faults; exit code 1 where there are any."""
    found = faults()
    for line in found:
        print(f"longrl: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
