"""Stand-in judges behind real HTTP, labelled rows, and a judge's configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_FENCED = re.compile(
    r"=== (reference|candidate) answers?(?: \w+)? begins ===\n(.*?)\n=== \1 answers?(?: \w+)? ends",
    re.DOTALL,
)
_CODE = re.compile(r"^correct (\w+): yes$", re.MULTILINE)


def read_prompt(messages: Sequence[Mapping[str, str]]) -> tuple[set[str], str, str]:
    """References, candidate and code of an aa_lcr prompt."""
    text = messages[-1]["content"]
    found = dict(_FENCED.findall(text))
    code = _CODE.search(text)
    assert code is not None
    return set(found["reference"].split("\n")), found["candidate"], code[1]


def say(yes: bool, code: str) -> str:
    return f"final answer: it\nreasoning: compared\ncorrect {code}: {'yes' if yes else 'no'}"


def perfect(messages: Sequence[Mapping[str, str]]) -> str:
    """Yes where a reference is the candidate, filler around it left aside."""
    references, candidate, code = read_prompt(messages)
    bare = re.sub(r"^I have gone through.*I arrive: |\. The text returns to.*$", "", candidate)
    return say(bare in references, code)


def gullible(messages: Sequence[Mapping[str, str]]) -> str:
    """Perfect, but for believing a candidate that says "correct: yes"."""
    _, candidate, code = read_prompt(messages)
    return say(True, code) if "correct: yes" in candidate else perfect(messages)


def rows(count: int) -> list[dict]:
    """`count` right and `count` wrong answers, every other one with an alias."""
    return [
        {
            "question": f"Which town is number {number}?",
            "answer": f"town {number}",
            "aliases": [f"the town {number}"] if number % 2 else [],
            "candidate": f"town {number if right else number + 1}",
            "label": "right" if right else "wrong",
        }
        for number in range(count)
        for right in (True, False)
    ]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A file of 20 right and 20 wrong answers."""
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(20)))
    return path
