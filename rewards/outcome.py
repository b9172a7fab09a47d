"""Outcome scorers: is the final answer right? Exact match, token F1, multiple choice, a judge.

One design choice: a scorer is asynchronous and returns a typed verdict even where it only compares
strings, so that an LLM judge stands behind the same interface and a reward cannot tell them apart.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rewards.judge.config import JudgeConfig
from rewards.normalise import normalise_answer
from rewards.types import Task
from rewards.verdicts import Verdict, verdict


class OutcomeConfig(BaseModel):
    """The [outcome] section: how an answer is judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["exact", "f1", "choice", "judge"] = "exact"
    """Exact match, token F1, the letter of a multiple-choice question, or a language model."""
    f1_threshold: float | None = Field(default=None, gt=0, le=1)
    """F1 at or above it counts 1, below it 0 (LongTraceRL needs r_oc in {0,1}); None keeps F1."""
    letters: str = Field(default="ABCD", pattern=r"^[A-Z]{2,26}$")
    """Letters a multiple-choice answer may take."""
    judge: JudgeConfig = JudgeConfig()
    """The language model that judges."""


class Outcome(ABC):
    """Scores one final answer against the task's gold answer."""

    def __init__(self, config: OutcomeConfig) -> None:
        self.config = config

    @abstractmethod
    async def judge(self, task: Task, answer: str) -> Verdict:
        """A verdict in [0, 1], or no verdict. An empty answer is wrong without any call."""

    def counters(self) -> dict[str, float]:
        """What was counted since the start, by name; values only grow."""
        return {}

    async def aclose(self) -> None:  # noqa: B027 - nothing to close is the normal case
        """Release what the scorer holds open; it is not used afterwards."""


class ExactMatch(Outcome):
    """1 where the normalised answer equals a normalised reference (SQuAD, HotpotQA)."""

    async def judge(self, task: Task, answer: str) -> Verdict:
        return verdict(max(exact_match(answer, gold) for gold in task.answers))


class TokenF1(Outcome):
    """Token F1, best over the references; `f1_threshold` makes it binary."""

    async def judge(self, task: Task, answer: str) -> Verdict:
        value = max(token_f1(answer, gold) for gold in task.answers)
        if self.config.f1_threshold is not None:
            value = float(value >= self.config.f1_threshold)
        return verdict(value)


class Choice(Outcome):
    """1 where the answer names the gold letter and no reading of it is open."""

    async def judge(self, task: Task, answer: str) -> Verdict:
        letters = self.config.letters
        gold = {choice_letter(text, letters) for text in task.answers} - {None}
        if not gold:
            raise ValueError(
                f"task {task.id}: gold answer {task.answer!r} names no letter of {letters}; "
                'set outcome.letters, or outcome.kind = "exact"'
            )
        return verdict(float(choice_letter(answer, letters) in gold))


_OUTCOMES: dict[str, type[Outcome]] = {"exact": ExactMatch, "f1": TokenF1, "choice": Choice}


def make_outcome(config: OutcomeConfig) -> Outcome:
    """The scorer that `config.kind` names; ValueError where it lacks a setting."""
    if config.kind == "judge":
        # Here, because the judge's scorer is an Outcome; and httpx is loaded by those who need it.
        from rewards.judge.outcome import JudgeOutcome

        return JudgeOutcome(config)
    return _OUTCOMES[config.kind](config)


def exact_match(answer: str, gold: str) -> float:
    """1.0 where both normalise to the same text. A gold answer made of articles or punctuation only
    (a band called "The The") normalises to nothing and is compared as written."""
    wanted = normalise_answer(gold)
    if not wanted:
        return float(bool(gold.strip()) and answer.strip().casefold() == gold.strip().casefold())
    return float(normalise_answer(answer) == wanted)


def token_f1(answer: str, gold: str) -> float:
    """F1 over normalised tokens. Where either side is yes, no or noanswer, the whole strings must
    match (HotpotQA's scorer; CoEM section 4 of methods)."""
    given, wanted = normalise_answer(answer), normalise_answer(gold)
    if not wanted:
        return exact_match(answer, gold)
    if {given, wanted} & {"yes", "no", "noanswer"}:
        return float(given == wanted)
    given_tokens, wanted_tokens = given.split(), wanted.split()
    same = sum((Counter(given_tokens) & Counter(wanted_tokens)).values())
    if not same:
        return 0.0
    precision, recall = same / len(given_tokens), same / len(wanted_tokens)
    return 2 * precision * recall / (precision + recall)


def choice_letter(text: str, letters: str) -> str | None:
    """The letter an answer chooses, or None where it names none or leaves it open.

    In this order: the text is a letter, alone or before its option ("B", "(b)", "B. Paris"); the
    last "answer is B" or "option: (B)"; the only letter that stands in parentheses.
    """
    upper = letters.upper()
    alone = re.match(rf"[\s(\[*\"']*+([{upper}{upper.lower()}])(?:\s*+$|[.):\]*])", text)
    if alone:
        return alone[1].upper()
    phrase = rf"(?i:answer|option|choice)[\s:*]*+(?i:is)?+[\s:*(\[]*+([{upper}])(?![\w'])"
    said = [match[1] for match in re.finditer(phrase, text)]
    if said:
        return said[-1]
    bracketed = set(re.findall(rf"\(([{upper}])\)", text))
    return bracketed.pop() if len(bracketed) == 1 else None
