"""The `json` protocol: the comparison of `aa_lcr`, answered as one JSON object.

One design choice: it always asks for `response_format`; a server without json_schema answers the
other protocols.
"""

from __future__ import annotations

from typing import ClassVar

from rewards.judge.protocols.aa_lcr import AaLcr


class JsonVerdict(AaLcr):
    """Right or wrong by comparison with the gold answer, held to a JSON schema by the server."""

    name: ClassVar[str] = "json"
    version = "json/1"
    max_tokens: ClassVar[int] = 1024

    def __init__(self, structured: bool = True) -> None:
        """Structured whatever is asked; the parameter is that of every protocol."""
        super().__init__(structured=False)
        self.structured = True
