"""Prompts of the lab: a row as words, one prompt for each response format.

One design choice: the user message is the whole prompt but for `<bos>`, which the chat template
adds, so a lab row takes the same way into a run as any other row.
"""

from __future__ import annotations

from slime_ext.data.numbering import chunk_numbers
from slime_ext.data.schema import Row
from slime_ext.embedded.lab.vocabulary import CHUNK_MODE, EVIDENCE_MODE, chunk_word


def chunk_prompt(row: Row) -> list[dict[str, str]]:
    """`<docs> s r o <CHUNK_i> ... </docs> <q> e r1 .. rk </q> <m_chunk>` as one user message.

    Asks for reasoning, a list of useful chunks and an answer (methods: section 2).
    """
    return _prompt(row, CHUNK_MODE)


def evidence_prompt(row: Row) -> list[dict[str, str]]:
    """The same ending in `<m_eapo>`: asks for analysis, quoted evidence, reasoning and an answer
    (methods: section 3)."""
    return _prompt(row, EVIDENCE_MODE)


def prompt_text(document: str, question: str, mode: str) -> str:
    """The words of a prompt; `document` with its `<docs>` tags, `mode` one of the mode words."""
    return f"{document} <q> {question} </q> {mode}"


def _prompt(row: Row, mode: str) -> list[dict[str, str]]:
    numbers = chunk_numbers(row)
    facts = (f"{fact.text} {chunk_word(numbers[fact.id])}" for fact in row.context)
    document = " ".join(("<docs>", *facts, "</docs>"))
    return [{"role": "user", "content": prompt_text(document, row.question, mode)}]
