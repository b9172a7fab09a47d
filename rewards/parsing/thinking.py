"""Split a response into reasoning and content, and say why it is ill-formed.

One design choice: parsing never fails. It always returns some split plus a list of problems;
training turns a problem into reward 0 and evaluation judges the content all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewards.parsing.families import Family
from rewards.types import Response


@dataclass(frozen=True, slots=True)
class Parsed:
    """Reasoning and content without surrounding white space, and what is wrong.

    Problems, in this order: "no_close_tag", "many_close_tags", "empty_reasoning", "empty_content",
    "open_tag_in_content", "special_token_in_content", "wrong_stop". Empty means well-formed.
    """

    reasoning: str
    content: str
    problems: tuple[str, ...]


def parse_response(response: Response, family: Family) -> Parsed:
    """Split `response.text` by the family's rules (methods, section 1; rules for the number of
    closing tags in `Family`). Linear in the text; never raises.

    The opening tag is optional: templates write it into the prompt. A family without thinking has
    content only. The stop token is checked for completed responses whose engine reported one; a
    host that cannot tell leaves `stop` None.
    """
    text = response.text
    reasoning, content, problems = "", text.strip(), []
    if family.thinking:
        closings = text.count(family.close_tag)
        reasoning, content = _split(text, family)
        if closings != 1:
            problems.append("many_close_tags" if closings else "no_close_tag")
        if not reasoning and family.needs_reasoning:
            problems.append("empty_reasoning")
    if not content:
        problems.append("empty_content")
    if family.thinking and family.open_tag in content:
        problems.append("open_tag_in_content")
    if any(token in content for token in (*family.special_tokens, *family.stop_tokens)):
        problems.append("special_token_in_content")
    if response.status == "completed" and response.stop is not None:
        right = response.stop in family.stop_tokens and response.stop not in family.wrong_stops
        if not right:
            problems.append("wrong_stop")
    return Parsed(reasoning, content, tuple(problems))


def _split(text: str, family: Family) -> tuple[str, str]:
    before, closed, after = text.rpartition(family.close_tag)
    if not closed:
        opened = family.open_tag in text
        if family.unclosed == "if_opened" and not opened:
            return "", text.strip()
        before, after = text, ""
    return before.strip().removeprefix(family.open_tag).strip(), after.strip()
