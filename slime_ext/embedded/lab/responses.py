"""The two response formats of the lab, written from their parts.

One design choice: the text of a response is built in this file only; demonstrations, tests and the
README's examples all come from here, and rewards read it back with their own parsers.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.embedded.lab.task import Fact, Question
from slime_ext.embedded.lab.vocabulary import CHUNK_MODE, EOS, EVIDENCE_MODE, chunk_word


def write_response(
    mode: str, facts: Sequence[Fact], cited: Sequence[int], relations: Sequence[str], answer: str
) -> str:
    """A response in `mode`, end token included.

    Chunk mode writes `facts` as its reasoning and the chunk numbers `cited` as its list; evidence
    mode writes the question's `relations`, the facts as quotes, and their objects as its reasoning.
    Raises ValueError for a mode that is neither.
    """
    quotes = [str(fact) for fact in facts]
    if mode == CHUNK_MODE:
        words = ["<think>", *quotes, "</think>"]
        words += ["<useful_chunks>", *map(chunk_word, cited), "</useful_chunks>"]
    elif mode == EVIDENCE_MODE:
        words = ["<analysis>", *relations, "</analysis>", "<evidence>", *quotes, "</evidence>"]
        words += ["<reasoning>", *(fact.object for fact in facts), "</reasoning>"]
    else:
        raise ValueError(f"mode = {mode!r}; write {CHUNK_MODE!r} or {EVIDENCE_MODE!r}")
    return " ".join([*words, "<answer>", answer, "</answer>", EOS])


def perfect_response(question: Question, mode: str) -> str:
    """The response that earns the full reward in `mode`."""
    cited = [fact.chunk for fact in question.path]
    return write_response(mode, question.path, cited, question.relations, question.answer)
