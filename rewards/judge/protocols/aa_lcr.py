"""The judge of LongTraceRL: labelled lines, the last one `correct CODE: yes` or `no`.

One design choice: the judge names the candidate's final answer before it compares, because a long
answer that mentions the gold one in passing is not right.
"""

from __future__ import annotations

from typing import ClassVar

from rewards.judge.protocols.asking import AskingProtocol, find_lines

_INSTRUCTIONS = """\
You check a candidate answer against a reference answer to the same question.

Take the reference answer as true and complete; do not solve the question yourself. The candidate \
is right if its final answer says the same as the reference, or as any one of several references: \
other words, another order, spelling, unit notation or number format do not matter, nor do further \
details that contradict nothing. It is wrong if it contradicts the reference, leaves out a part \
the question asks for, offers several answers to choose from, or gives none. Numbers agree if they \
are equal after rounding to the precision of the reference."""

_FORM = """\
Reply with three labelled lines:
final answer: the answer the candidate settles on, or none
reasoning: one to three sentences on whether it agrees with the reference
and as the last line your verdict, in exactly one of these two forms:
correct {code}: yes
correct {code}: no
Write the verdict line once, with its code; a verdict without the code is not counted."""


class AaLcr(AskingProtocol):
    """Right or wrong by comparison with the gold answer.

    Model and length as in the released reward server of LongTraceRL; it leaves the temperature to
    the endpoint, here it is 0.
    """

    name: ClassVar[str] = "aa_lcr"
    version = "aa_lcr/1"
    model: ClassVar[str] = "qwen3-235b-a22b-instruct-2507"
    temperature: ClassVar[float] = 0.0
    max_tokens: ClassVar[int] = 4096

    def instructions(self) -> str:
        """The rules of comparison."""
        return _INSTRUCTIONS

    def reply_form(self, code: str) -> str:
        """Three labelled lines."""
        return _FORM.format(code=code)

    def find(self, words: str, code: str, bare: bool) -> list[float | None]:
        """The lines `correct CODE: yes|no`."""
        return find_lines(words, "correct", {"yes": 1.0, "no": 0.0}, code, bare)
