"""What every reward on a final answer does alike: screen the response, judge the answer, add parts.

One design choice: a template method. A reward states what it measures in the content and how the
total follows from outcome and parts; the rules for truncated, ill-formed, lost and undecided
responses are here once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from rewards.base import Reward
from rewards.parsing.answers import extract_answer
from rewards.parsing.thinking import Parsed, parse_response
from rewards.types import Response, Score, Task, undetermined
from rewards.verdicts import Verdict, verdict


class GradedReward(Reward):
    """Base of the rewards that judge a final answer (methods, sections 1 and 2).

    Training: a truncated response scores 0 ("truncated"), an ill-formed one 0 ("ill_formed:WHY"),
    neither asks the outcome scorer. A lost request ("aborted", "failed") is undetermined: it says
    nothing about the policy. (The released LongTraceRL scores it 0.) A scorer without verdict makes
    the score undetermined ("no_verdict:WHY").

    Evaluation: an ill-formed response is judged on its content; a truncated, lost or empty one is 0
    without asking; the total is the outcome alone.
    """

    @abstractmethod
    def measure(self, task: Task, parsed: Parsed) -> dict[str, float]:
        """Named parts that need no outcome, `evidence_recall` among them where there is gold."""

    @abstractmethod
    def total(self, outcome: float, parts: Mapping[str, float]) -> float:
        """The training total of a well-formed response."""

    def has_gold(self, task: Task) -> bool:
        """Whether the task has what `needs` names; without it the outcome alone is the total."""
        return all(getattr(task, name) for name in self.needs)

    def format_problems(self, parsed: Parsed) -> tuple[str, ...]:
        """Violations of the reward's own format, beyond those of the model family."""
        return ()

    async def score(self, task: Task, response: Response) -> Score:
        """Score one response; the parts always hold `outcome` (where decided) and `format`."""
        lost = response.status in ("aborted", "failed")
        if lost and not response.evaluation:
            return undetermined(response.status)
        parsed = parse_response(response, self.family)
        problems = parsed.problems + self.format_problems(parsed)
        parts = self.measure(task, parsed)
        if response.evaluation:
            parts = self.evaluation_parts(parts)
        why = f"ill_formed:{problems[0]}" if problems else None
        if response.status != "completed":
            return _nothing(parts, response.status)
        if problems and not (response.evaluation and parsed.content):
            return _nothing(parts, why)
        parts["format"] = float(not problems)
        decided = await self.judge(task, parsed.content)
        if decided.value is None:
            return undetermined(f"no_verdict:{decided.reason}", **parts)
        parts["outcome"] = decided.value
        if response.evaluation:
            return Score(decided.value, parts, why)
        if not self.has_gold(task):
            return Score(decided.value, {**parts, "outcome_only": 1.0})
        return Score(self.total(decided.value, parts), parts)

    def evaluation_parts(self, parts: dict[str, float]) -> dict[str, float]:
        """The parts that mean something in evaluation; all of them by default."""
        return parts

    async def judge(self, task: Task, content: str) -> Verdict:
        """The verdict on the answer in `content`; an empty answer is wrong without a call."""
        answer = extract_answer(content)
        return await self.outcome.judge(task, answer) if answer else verdict(0.0)


def _nothing(parts: Mapping[str, float], why: str | None) -> Score:
    """A determined 0: every part that a scored response has, as 0, so that means over parts run
    over the same responses."""
    return Score(0.0, {**dict.fromkeys(parts, 0.0), "outcome": 0.0, "format": 0.0}, why)
