"""Tagged blocks such as `<answer>...</answer>`, found by one forward scan.

One design choice: plain `str.find` on fixed strings. A lazy regular expression restarts its search
at every opening tag, which is quadratic on a response that repeats one.
"""

from __future__ import annotations


def find_blocks(text: str, tag: str) -> list[str]:
    """Bodies of the blocks of `tag`, in order: each closing tag with the nearest opening tag
    between it and the previous closing one. Tags without a partner are passed over."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    blocks: list[str] = []
    start = 0
    while (end := text.find(closing, start)) >= 0:
        begin = text.rfind(opening, start, end)
        if begin >= 0:
            blocks.append(text[begin + len(opening) : end])
        start = end + len(closing)
    return blocks


def one_block(text: str, tag: str) -> str | None:
    """The body where `text` has exactly one opening and one closing tag, in order; else None."""
    span = block_span(text, tag)
    return None if span is None else text[span[0] : span[1]]


def block_span(text: str, tag: str) -> tuple[int, int] | None:
    """Where the body of the only block starts and ends (exclusive), or None as in `one_block`."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.count(opening) != 1 or text.count(closing) != 1:
        return None
    begin, end = text.find(opening) + len(opening), text.find(closing)
    return (begin, end) if begin <= end else None
