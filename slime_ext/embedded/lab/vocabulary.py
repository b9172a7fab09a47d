"""The lab's words: tags, chunk ids, relations and entities.

One design choice: a word is a token and its number is its place in one list, so prompts, rewards
and the model can be read side by side, and a checkpoint depends on nothing but this order.
"""

from __future__ import annotations

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
SPECIAL: tuple[str, ...] = (PAD, BOS, EOS)
"""The only words a decoder may drop; the tags below are part of a response."""

CHUNK_MODE, EVIDENCE_MODE = "<m_chunk>", "<m_eapo>"
"""The last word of a prompt: which of the two response formats is asked for."""

TAGS: tuple[str, ...] = (
    *("<docs>", "</docs>", "<q>", "</q>", ";", ".", CHUNK_MODE, EVIDENCE_MODE),
    *("<think>", "</think>", "<useful_chunks>", "</useful_chunks>", "<answer>", "</answer>"),
    *("<analysis>", "</analysis>", "<evidence>", "</evidence>", "<reasoning>", "</reasoning>"),
)

NUM_CHUNKS, NUM_RELATIONS, NUM_ENTITIES = 48, 16, 64


def chunk_word(number: int) -> str:
    """The word for chunk `number`, as prompts show it and responses cite it: `<CHUNK_17>`."""
    return f"<CHUNK_{number}>"


RELATIONS: tuple[str, ...] = tuple(f"rel{i}" for i in range(NUM_RELATIONS))
ENTITIES: tuple[str, ...] = tuple(f"ent{i}" for i in range(NUM_ENTITIES))

VOCABULARY: tuple[str, ...] = (
    *SPECIAL,
    *TAGS,
    *(chunk_word(i) for i in range(NUM_CHUNKS)),
    *RELATIONS,
    *ENTITIES,
)
TOKEN_IDS: dict[str, int] = {word: i for i, word in enumerate(VOCABULARY)}


def token_ids(text: str) -> list[int]:
    """The ids of `text`, words separated by white space.

    Raises ValueError for a word outside the vocabulary.
    """
    try:
        return [TOKEN_IDS[word] for word in text.split()]
    except KeyError as error:
        raise ValueError(
            f"{error.args[0]!r} is no word of the lab; its words are tags, <CHUNK_0> to "
            f"<CHUNK_{NUM_CHUNKS - 1}>, rel0 to rel{NUM_RELATIONS - 1} and ent0 to "
            f"ent{NUM_ENTITIES - 1}, separated by spaces"
        ) from None
