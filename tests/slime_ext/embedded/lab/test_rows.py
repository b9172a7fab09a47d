import json

import pytest

from slime_ext.data.schema import parse_row
from slime_ext.embedded.lab.render import chunk_prompt, evidence_prompt
from slime_ext.embedded.lab.rows import make_row, make_rows, write_rows
from slime_ext.embedded.lab.task import GraphSize
from slime_ext.embedded.lab.vocabulary import token_ids


def test_gold_fields_name_the_walk_through_the_context():
    row = make_row(0, hops=4, seed=3)
    facts = {document["id"]: document["text"].split() for document in row["context"]}
    start, *relations = row["question"].split()
    current = start
    for relation, chunk, entity in zip(
        relations, row["gold_chunks"], row["gold_entities"], strict=True
    ):
        assert facts[chunk] == [current, relation, entity[0]]
        current = entity[0]
    assert row["answer"] == current
    assert row["source"] == "lab"
    assert row["metadata"] == {"hops": 4}
    assert len(row["context"]) == 36


def test_rows_fit_the_data_schema():
    for row in make_rows(20, hops=4, seed=0):
        assert parse_row(row).model_dump(exclude_defaults=True)["gold_chunks"] == row["gold_chunks"]


def test_files_are_deterministic_and_a_longer_one_starts_with_the_shorter(tmp_path):
    write_rows(tmp_path / "a.jsonl", rows=3, hops=2, seed=1)
    write_rows(tmp_path / "deep" / "b.jsonl", rows=5, hops=2, seed=1)
    short = (tmp_path / "a.jsonl").read_text()
    long = (tmp_path / "deep" / "b.jsonl").read_text()
    assert len(short.splitlines()) == 3
    assert len(long.splitlines()) == 5
    assert long.startswith(short)


def test_different_seeds_share_no_document():
    def documents(seed):
        return {json.dumps(row["context"]) for row in make_rows(300, hops=3, seed=seed)}

    train, held_out = documents(0), documents(7)
    assert len(train) == len(held_out) == 300
    assert not train & held_out


def test_failed_write_leaves_neither_file_nor_remains(tmp_path):
    target = tmp_path / "rows.jsonl"
    with pytest.raises(ValueError, match="no walk of 9 hops"):
        write_rows(target, rows=2, hops=9, seed=0, size=GraphSize(4, 2, 6))
    with pytest.raises(ValueError, match="rows = 0"):
        write_rows(target, rows=0, hops=2, seed=0)
    assert list(tmp_path.iterdir()) == []


def test_prompt_shows_facts_in_context_order_with_the_id_last():
    values = make_row(0, hops=2, seed=0, size=GraphSize(3, 2, 4))
    row = parse_row(values)
    message = {"role": "user"}
    shown = " ".join(f"{d.text} <{d.id}>" for d in row.context)
    text = f"<docs> {shown} </docs> <q> {row.question} </q>"
    assert chunk_prompt(row) == [message | {"content": f"{text} <m_chunk>"}]
    assert evidence_prompt(row) == [message | {"content": f"{text} <m_eapo>"}]
    assert len(token_ids(text)) == 2 + 4 * 6 + 2 + 3
