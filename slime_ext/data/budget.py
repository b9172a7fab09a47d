"""From a row to the token ids of its prompt, refused where they are too many.

One design choice: a prompt over the limit raises, it is never cut; gold ids would keep pointing at
chunks that the model was not shown (methods: section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_ext.data.errors import DataError
from slime_ext.data.render import render
from slime_ext.data.schema import Row


class PromptTooLong(DataError):  # noqa: N818 - the name says what happened
    """A rendered prompt above the limit. `row_id`, `length` and `limit` (tokens) are attributes."""

    def __init__(self, row_id: str, length: int, limit: int) -> None:
        self.row_id = row_id
        self.length = length
        self.limit = limit
        super().__init__(
            f"the prompt of row {row_id!r} has {length} tokens, the limit is {limit}",
            key="data.max_prompt_tokens",
            remedy='raise the limit, shorten the context, or set data.over_budget = "skip"',
        )

    def __reduce__(self) -> tuple[type[PromptTooLong], tuple[str, int, int]]:
        return PromptTooLong, (self.row_id, self.length, self.limit)


def prompt_ids(
    row: Row,
    name: str,
    tokenizer: Any,
    chat_template_kwargs: Mapping[str, Any],
    max_prompt_tokens: int,
) -> list[int]:
    """Token ids of the row's prompt, the model's own chat template and generation prompt included.

    `name` is a renderer as in `render`. Raises PromptTooLong above `max_prompt_tokens`, DataError
    where the row does not fit the renderer.
    """
    # transformers 5 returns a mapping unless told otherwise.
    ids = tokenizer.apply_chat_template(
        render(row, name),
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
        **chat_template_kwargs,
    )
    if len(ids) > max_prompt_tokens:
        raise PromptTooLong(row.id, len(ids), max_prompt_tokens)
    return [int(token) for token in ids]
