"""Fold text for whole-word matching: NFKC, casefold, everything but words turned into spaces.

One design choice: ASCII, which is nearly all of a response, is folded by one 256-entry byte table;
only runs outside ASCII pass through Unicode. 130,000 characters then cost about a millisecond.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import regex

UNSPACED = (
    r"[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u19e0-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\u2e80-\u2fdf"
    r"\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\ua960-\ua9df\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff\uf900-\ufaff\U00016fe0-\U0003ffff]"
)
"""Han, kana, bopomofo, Hangul, Thai, Lao, Tibetan, Myanmar, Khmer, Tai Tham, Balinese, Javanese:
written without spaces or (Hangul) with particles joined to the word, so without word boundaries.
Code ranges, because script properties are seven times slower to search for."""

_RUN = re.compile(r"[^\x00-\x7f]+")
_SEPARATOR = regex.compile(r"[^\x00-\x7f\p{L}\p{N}\p{M}]+")
_IGNORED = re.compile(r"[\u00ad\u034f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+")
_TRADEMARK = re.compile(r"[\u2120\u2122]")
_UNSPACED_RUN = re.compile(rf"({UNSPACED}+)")
_SYMBOL_NOT_AT_END = re.compile(
    rb"[+#](?<![+#][+#])(?:[+#]*+(?=[a-z0-9\x80-\xff])|(?<![a-z0-9\x80-\xff][+#])[+#]*+)"
)
"""A whole run of symbols before a word or not after one. It starts with the plain set, which the
regular expression engine scans for five times faster than it tries a look-behind everywhere."""
_DENSE = 16
"""At one extra UTF-8 byte in this many characters the whole text is folded in one pass, because
each run on its own costs about a microsecond."""


def _ascii_byte(code: int) -> int:
    char = chr(code)
    if code >= 0x80 or char in "+#":
        return code
    return ord(char.lower()) if char.isalnum() else ord(" ")


_ASCII = bytes(_ascii_byte(code) for code in range(256))


def fold_words(text: str) -> list[bytes]:
    """The words of `text` in UTF-8, compatibility-composed and casefolded. Linear; never raises.

    Words are runs of letters, digits and marks of any script; a run of a script written without
    spaces is one word, apart from its neighbours of other scripts. `+` and `#` belong to a word
    only at its end, which keeps "C++" and "C#" apart from "C". Invisible format characters vanish.
    """
    if not text.isascii():
        extra = len(text.encode(errors="surrogatepass")) - len(text)
        text = _fold_whole(text) if extra * _DENSE > len(text) else _fold_runs(text)
    folded = text.encode().translate(_ASCII)
    if b"+" in folded or b"#" in folded:
        folded = _SYMBOL_NOT_AT_END.sub(b" ", folded)
    return folded.split()


def _fold_runs(text: str) -> str:
    """Fold each run outside ASCII together with the ASCII character before it, which a combining
    accent may belong to; ASCII never composes with what precedes it."""
    parts: list[str] = []
    done = 0
    for match in _RUN.finditer(text):
        start = max(match.start() - 1, done)
        run = text[start : match.end()]
        parts += (text[done:start], _fold_short(run) if len(run) <= 8 else _fold_whole(run))
        done = match.end()
    parts.append(text[done:])
    return "".join(parts)


def _fold_whole(text: str) -> str:
    """NFKC, casefold, NFKC again because casefolding can decompose; separators become spaces.
    Trademark signs go first: NFKC would spell them out as letters of the name they follow."""
    text = _TRADEMARK.sub(" ", _IGNORED.sub("", text))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_UNSPACED_RUN.split(_SEPARATOR.sub(" ", text)))


_fold_short = lru_cache(maxsize=8192)(_fold_whole)
