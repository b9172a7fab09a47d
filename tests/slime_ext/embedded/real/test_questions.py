"""The shipped questions: valid rows, passages of the promised size, gold evidence that is there."""

from __future__ import annotations

import json

import pytest

from slime_ext.data.schema import Row, parse_row
from slime_ext.embedded.real.questions import questions_file


def rows() -> list[Row]:
    return [parse_row(json.loads(line)) for line in questions_file().read_text().splitlines()]


def test_there_are_eight_questions_with_their_own_ids() -> None:
    assert len({row.id for row in rows()}) == 8


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_question_needs_every_hop_and_offers_distractors(row: Row) -> None:
    assert 4 <= len(row.context) <= 6
    assert all(40 <= len(document.text.split()) <= 80 for document in row.context)
    assert len(row.gold_chunks) == row.metadata["hops"] in (2, 3)
    assert len(row.context) - len(row.gold_chunks) >= 2
    assert row.answer not in row.question


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_each_hop_quotes_its_entity(row: Row) -> None:
    texts = {document.id: document.text for document in row.context}
    quotes = [texts[span.chunk][span.start : span.end] for span in row.gold_spans]
    assert {span.chunk for span in row.gold_spans} == set(row.gold_chunks)
    for aliases in row.gold_entities:
        assert any(alias.casefold() in quote.casefold() for quote in quotes for alias in aliases)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_only_gold_passages_tell_the_answer(row: Row) -> None:
    names = [row.answer, *row.aliases]
    for document in row.context:
        if document.id not in row.gold_chunks:
            assert not any(name.casefold() in document.text.casefold() for name in names)
