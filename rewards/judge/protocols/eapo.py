"""The judge of EAPO's answer accuracy: last line `accuracy CODE: 1` or `0`.

One design choice: no partial credit is offered. The accuracy term has weight 0.6 in EAPO's reward
and is 0 or 1 there; a judge that may write 0.5 will.
"""

from __future__ import annotations

from typing import ClassVar

from rewards.judge.protocols.asking import AskingProtocol, find_lines

_INSTRUCTIONS = """\
You grade the answer of a student who worked through a very long text. You have the question and \
the reference answer, not the text.

Accuracy is 1 if the student's answer conveys the same fact, entity, number or list as the \
reference answer, or as any one of several references; brevity, extra wording and harmless context \
do not count against it. Accuracy is 0 if it differs in substance, is incomplete where the \
question asks for several things, hedges between possibilities, or says that there is no answer \
while the reference gives one. Do not use knowledge of your own against the reference answer."""

_FORM = """\
Compare the two answers in one to three sentences. Then end with one line, in exactly one of \
these two forms:
accuracy {code}: 1
accuracy {code}: 0
Write that line once and nothing after it; without its code it is not counted."""


class Eapo(AskingProtocol):
    """Accuracy 0 or 1. The model is the paper's (section 4.1); it states no temperature or length:
    0, and room for the comparison."""

    name: ClassVar[str] = "eapo"
    version = "eapo/1"
    model: ClassVar[str] = "gpt-4o-2024-11-20"
    temperature: ClassVar[float] = 0.0
    max_tokens: ClassVar[int] = 1024

    def instructions(self) -> str:
        """The rules of grading."""
        return _INSTRUCTIONS

    def reply_form(self, code: str) -> str:
        """A comparison and the accuracy line."""
        return _FORM.format(code=code)

    def find(self, words: str, code: str, bare: bool) -> list[float | None]:
        """The lines `accuracy CODE: 1|0`."""
        return find_lines(words, "accuracy", {"1": 1.0, "0": 0.0}, code, bare)
