"""Which versions were released together, and which of them a run cannot do without.

One design choice: the table holds what slime's own images pin, host by host; anything else is not
wrong but untested, and is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping

RELEASED_WITH: Mapping[str, Mapping[str, str]] = {
    "v0.3.1": {
        "sglang": "0.5.15.post1",
        "transformer-engine": "2.16.1",
        "flash-attn": "2.8.3",
        "numpy": "1.26.4",
    },
    "v0.2.4": {
        "sglang": "0.5.9",
        "transformer-engine": "2.10.0",
        "flash-attn": "2.7.4.post1",
    },
}
"""Pins of docker/Dockerfile of each release. Megatron-LM is pinned by commit, see MEGATRON."""

MEGATRON: Mapping[str, str] = {"v0.3.1": "1dcf0da", "v0.2.4": "3714d81"}
"""Commit of Megatron-LM in the image; a patch of slime's lies on top."""

REQUIRED = (
    "python",
    "longrl",
    "slime",
    "megatron",
    "sglang",
    "torch",
    "transformer-engine",
    "flash-attn",
    "numpy",
    "ray",
    "datasets",
)
"""Without one of these slime's train.py does not start, or its Megatron actor does not."""
USEFUL = ("apex",)
"""Megatron goes on without it, slower."""

NEED_GPU = ("transformer-engine", "flash-attn", "sglang", "apex")
"""Their libraries may not load on a node without a driver."""
