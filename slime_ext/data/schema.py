"""The row: one question over a long context, with its gold answer and gold evidence.

One design choice: a row that validates is usable. Besides types, the schema checks that gold
evidence can be found (ids in the context, spans inside their text, entities that a matcher can
match), so that no reward has to handle gold data that points nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from slime_ext.data import checks
from slime_ext.data.errors import explain


def _id_text(value: Any) -> Any:
    """Chunk ids may be written as numbers; 12 and "12" are the same id."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ChunkId = Annotated[str, BeforeValidator(_id_text)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Document(_Part):
    """One document or chunk of the context."""

    id: ChunkId
    title: str = ""
    text: str


class Message(_Part):
    """One message of a prompt that is rendered already."""

    role: Literal["system", "user", "assistant"]
    content: str


class GoldSpan(_Part):
    """Verbatim gold evidence: characters [start, end) of the text of document `chunk`."""

    chunk: ChunkId
    start: int = Field(ge=0)
    end: int = Field(gt=0)


class Row(_Part):
    """One sample (methods: section 0, "Data schema"); exactly one of `context`, `messages`.

    `gold_entities` lists each entity as the list of its aliases. `gold_chunks` are ids of
    documents; in a row of `messages` they are chunk numbers written as "CHUNK_12", "<CHUNK_12>" or
    12, whose texts `metadata["chunk_texts"]` may hold. A repeated gold chunk counts once.
    """

    id: str
    source: str = ""
    question: str
    context: list[Document] = Field(default_factory=list)
    messages: list[Message] = Field(default_factory=list)
    answer: str
    aliases: list[str] = Field(default_factory=list)
    gold_entities: list[list[str]] = Field(default_factory=list)
    gold_chunks: list[ChunkId] = Field(default_factory=list)
    gold_spans: list[GoldSpan] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _usable(self) -> Row:
        checks.check_text(self)
        checks.check_prompt(self)
        checks.check_chunks(self)
        checks.check_chunk_texts(self)
        checks.check_spans(self)
        checks.check_entities(self)
        return self


_KNOWN = {
    "": list(Row.model_fields),
    "context": list(Document.model_fields),
    "messages": list(Message.model_fields),
    "gold_spans": list(GoldSpan.model_fields),
}


def parse_row(values: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> Row:
    """Validate the fields of a row; raises DataError with the key, without file and line.

    `keys` maps row fields to the keys they were imported from, for the message.
    """
    try:
        return Row.model_validate(values)
    except ValidationError as error:
        raise explain(error, keys or {}, _KNOWN) from None
