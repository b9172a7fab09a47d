"""Keys and texts taken out of what leaves the machine in a bug report.

One design choice: known keys go by their value and unknown ones by their form; a line too long to
be a message goes too, for only prompts and responses are that long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

REMOVED = "[removed]"
LONGEST = 600
"""Characters of a log line; the host prints whole samples as one line."""
HEAD = 40
"""What stays of a longer one: the logger's own prefix."""
_FORMS = (
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}",  # OpenAI and its likes
    r"\bhf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"\b(?:ghp|gho|ghs|github_pat)_[A-Za-z0-9_]{16,}",  # GitHub
    r"\b(?:wandb_v1_[A-Za-z0-9_]{16,}|local-[0-9a-f]{40})",  # W&B
    r"\bAKIA[A-Z0-9]{16}\b",  # AWS
    r"(?<![A-Za-z0-9])[0-9a-f]{40}(?![A-Za-z0-9])",  # W&B's older keys; a commit has this form too
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",  # JSON web tokens
)
_FORM = re.compile("|".join(_FORMS))
_NAMED = re.compile(
    r"(?i)((?:[A-Z0-9_-]*(?:api_?key|token|secret|password|passwd|credential)s?[\"']?\s*[=:]\s*"
    r"|authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+|\bbearer\s+))[\"']?[^\s\"',;}]{6,}"
)
_IN_URL = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_SAMPLE = re.compile(r"First rollout sample|Finish rollout")
"""Lines of the host that hold a prompt and its response."""


def redact_keys(text: str, known: Sequence[str] = ()) -> str:
    """`text` without the values in `known` and without anything of the form of a key."""
    for value in sorted(known, key=len, reverse=True):
        if len(value) > 3:
            text = text.replace(value, REMOVED)
    text = _FORM.sub(REMOVED, text)
    text = _NAMED.sub(lambda match: match[1] + REMOVED, text)
    return _IN_URL.sub(REMOVED, text)


def redact_log(text: str, known: Sequence[str] = ()) -> tuple[str, int]:
    """A log without keys and without texts, and how many of its lines were changed."""
    lines, changed = [], 0
    for line in text.split("\n"):
        kept = redact_keys(line, known)
        if _SAMPLE.search(kept):
            kept = f"[a sample of {len(line)} characters left out]"
        elif len(kept) > LONGEST:
            kept = f"{kept[:HEAD]} [{len(line) - HEAD} characters left out]"
        changed += kept != line
        lines.append(kept)
    return "\n".join(lines), changed
