"""Names of published data sets in a recipe: `hub:OWNER/NAME[@REVISION][:SPLIT]`.

One design choice: SPLIT is an expression of the `datasets` library, slices included, so that one
published set gives training rows and held-out rows (`train[64:]`, `train[:64]`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from slime_ext.data.errors import DataError

PREFIX = "hub:"
_FORM = re.compile(
    r"hub:(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:@(?P<revision>[\w./-]+))?(?::(?P<split>[^\s:]\S*))?"
)


@dataclass(frozen=True, slots=True)
class HubName:
    """A data set's repository, the revision asked for (None: the newest) and the split."""

    owner: str
    name: str
    revision: str | None = None
    split: str = "train"

    @property
    def repository(self) -> str:
        """`OWNER/NAME`."""
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.repository}{revision}:{self.split}"

    def key(self, format: str) -> str:
        """Name of the entry in the cache, different for each revision, split and `format`."""
        asked = "\n".join([self.repository, self.revision or "", self.split, format])
        digest = hashlib.blake2b(asked.encode(), digest_size=6).hexdigest()
        return f"{self.owner}--{self.name}-{digest}"


def is_hub(text: str) -> bool:
    """Whether a data file's name means a published set."""
    return text.startswith(PREFIX)


def parse_hub(text: str) -> HubName:
    """The parts of a name; raises DataError where it has another form."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise DataError(
            f"{text!r} is no name of a published data set",
            remedy="write hub:OWNER/NAME, hub:OWNER/NAME:train[64:] or hub:OWNER/NAME@REVISION",
        )
    parts = found.groupdict()
    return HubName(parts["owner"], parts["name"], parts["revision"], parts["split"] or "train")
