"""The judge of LongRLVR: sees the gold chunks, replies [[Yes CODE]] or [[No CODE]].

One design choice: gold chunks enter whole as far as they fit, because half a chunk may end before
the sentence that carries the answer; only a first chunk longer than everything is cut.
"""

from __future__ import annotations

import re
from typing import ClassVar

from rewards.judge.protocols.asking import AskingProtocol
from rewards.judge.protocols.fence import fenced, visible
from rewards.types import Task

MAX_PASSAGES = 12_000
"""Characters of all gold chunks together, as in the released reward manager."""

_INSTRUCTIONS = """\
You decide whether a candidate answer to a question about a long document is right.

You are given the passages of the document that hold the answer, and a reference answer. Judge the \
meaning, not the wording: the candidate is right if it answers the question with the same content \
as the reference answer, or as any one of several references, and the passages do not contradict \
it. It is wrong if it misses or changes a part the question asks for, adds something false, names \
several answers to choose from, or does not answer. The reference answer outweighs your own \
reading of the passages, which may be cut."""

_FORM = """\
First explain in one to three sentences whether both answers agree. Then give your verdict on a \
line of its own, in exactly one of these two forms, code and double brackets included:
[[Yes {code}]]
[[No {code}]]
Write the brackets nowhere else; a verdict without its code is not counted."""

_VALUES = {"yes": 1.0, "no": 0.0}
_EMPHASIS = str.maketrans("", "", "*_")
_EDGE = " \t`\"'.#-"


class LongRlvr(AskingProtocol):
    """Right or wrong with the gold chunks at hand.

    Temperature 0 and 512 tokens as in the released reward manager, whose endpoint serves its only
    model under the name "default"; the paper names none.
    """

    name: ClassVar[str] = "longrlvr"
    version = "longrlvr/1"
    model: ClassVar[str] = "default"
    temperature: ClassVar[float] = 0.0
    max_tokens: ClassVar[int] = 512

    def instructions(self) -> str:
        """The rules of comparison."""
        return _INSTRUCTIONS

    def material(self, task: Task) -> str:
        """The passages, then question and gold answer."""
        return f"{passages(task)}\n\n{super().material(task)}"

    def reply_form(self, code: str) -> str:
        """An explanation and a bracketed verdict."""
        return _FORM.format(code=code)

    def find(self, words: str, code: str, bare: bool) -> list[float | None]:
        """The bracketed verdicts outside quoted lines and quotation marks.

        One that neither begins nor ends its line is part of a sentence and decides nothing.
        """
        mark = re.compile(
            rf"(?<![`\"'“‘«])\[\[ *({code})?[ :]*+(yes|no)[ :,]*+({code})? *+\]\](?: *({code}))?"
            r"(?![`\"'”’»])",
            re.IGNORECASE,
        )
        found: list[float | None] = []
        for line in words.splitlines():
            text = line.translate(_EMPHASIS).strip(_EDGE)
            if "[[" not in text or text.startswith(">"):
                continue
            for match in mark.finditer(text):
                if bare or match[1] or match[3] or match[4]:
                    at_edge = match.start() == 0 or match.end() == len(text)
                    found.append(_VALUES[match[2].lower()] if at_edge else None)
        return found


def passages(task: Task, limit: int = MAX_PASSAGES) -> str:
    """The gold chunks of `task`, in their order, at most `limit` characters of text in all.

    A chunk that does not fit any more is left out; where none fits, the first is cut. A line says
    how many of the gold chunks stand there.
    """
    gold = dict.fromkeys(task.gold_chunks)
    texts = {n: visible(task.chunk_texts[n]) for n in gold if task.chunk_texts.get(n)}
    shown: dict[int, str] = {}
    room = limit
    for number, text in texts.items():
        if len(text) <= room:
            shown[number] = text
            room -= len(text)
    note = ""
    if texts and not shown:
        number, text = next(iter(texts.items()))
        shown[number] = text[:limit]
        note = f", cut after {limit:,} of its {len(text):,} characters"
    if not shown:
        return "No passage of the document is at hand; go by the reference answer."
    head = f"Passages with the answer: {len(shown)} of {len(gold)}{note}."
    return "\n".join([head, *(fenced(f"passage {n}", text) for n, text in shown.items())])
