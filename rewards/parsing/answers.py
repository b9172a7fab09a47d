"""The final answer inside the content of a response.

One design choice: the answer is looked for in a fixed order of decreasing explicitness and falls
back to the whole content, so that a reward without a format of its own has something to judge.
"""

from __future__ import annotations

import re

from rewards.parsing.tags import one_block

_BOX_TOKENS = re.compile(r"\\boxed\s*+\{|\\[{}]|[{}]")
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf)\s*+\{([^{}]*+)\}")
_TAIL = 20_000
"""Characters at the end that are searched for a box: an answer stands at the end, and the scan of a
degenerate 160,000-character content stays within a few milliseconds."""


def extract_answer(content: str) -> str:
    r"""The body of the only `<answer>` block, else the last `\boxed{}`, else the whole content.

    A box inside the answer block is opened too. Several answer blocks hedge and name no answer, so
    they fall through to the next rule. Empty where the chosen place is empty. Linear; never raises.
    """
    block = one_block(content, "answer")
    place = content if block is None else block
    boxed = last_box(place)
    return (place if boxed is None else boxed).strip()


def last_box(text: str) -> str | None:
    r"""Body of the last complete `\boxed{...}` in the last 20,000 characters, braces balanced and
    one `\text{}` wrapper removed; None where there is none."""
    tail = text[-_TAIL:]
    if "\\boxed" not in tail:
        return None
    stack: list[int | None] = []
    found: str | None = None
    for token in _BOX_TOKENS.finditer(tail):
        written = token[0]
        if written == "{":
            stack.append(None)
        elif written == "}":
            start = stack.pop() if stack else None
            if start is not None:
                found = tail[start : token.start()]
        elif len(written) > 2:
            stack.append(token.end())
    if found is None:
        return None
    wrapped = _LATEX_TEXT.fullmatch(found.strip())
    return wrapped[1] if wrapped else found
