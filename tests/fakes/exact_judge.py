"""What a perfect stand-in judge says to our prompts: right where the answers are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FENCED = re.compile(
    r"=== (reference|candidate) answers?(?: \w+)? begins ===\n(.*?)\n=== \1 answers?(?: \w+)? ends",
    re.DOTALL,
)
_VERDICT = re.compile(r"^correct (\w+): yes$", re.MULTILINE)


def exact_reply(messages: Sequence[Mapping[str, str]]) -> str:
    """The reply of the aa_lcr protocol, carrying the prompt's own code."""
    text = messages[-1]["content"]
    found = dict(_FENCED.findall(text))
    code = _VERDICT.search(text)
    assert code is not None, "the prompt of aa_lcr has another form; adapt this stand-in"
    references = [line.strip() for line in found["reference"].splitlines()]
    same = "yes" if found["candidate"].strip() in references else "no"
    return f"final answer: as given\nreasoning: compared\ncorrect {code[1]}: {same}"
