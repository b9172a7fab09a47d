"""Eight multi-hop questions over short passages, shipped as package data.

One design choice: the passages are this project's own prose about invented people and places, so a
model can answer only from the context, and nothing has to be downloaded or licensed.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def questions_file() -> Path:
    """`questions.jsonl`: 8 rows in the project's data schema.

    Each has 4 to 6 passages of 40 to 80 words and needs 2 or 3 of them; the others are near
    distractors. Raises FileNotFoundError where the package was built without its data.
    """
    path = Path(str(files("slime_ext.embedded.real").joinpath("questions.jsonl")))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; install longrl again with `pip install -e .`")
    return path
