"""Answer normalisation as SQuAD and HotpotQA define it, so that EM and F1 are comparable.

One design choice: the official rule is kept to the letter (ASCII punctuation, English articles),
because published numbers depend on it; entity matching has its own Unicode rule in entities.py.
"""

from __future__ import annotations

import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Lower-case, drop ASCII punctuation and English articles, join by one space (SQuAD v1.1)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())
