"""From a row to the chat messages of its prompt.

One design choice: a renderer is a function of the row alone, looked up by name or import path; the
chat template of the model is applied later, by the model's own tokenizer.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from slime_ext.data import prompts
from slime_ext.data.errors import DataError
from slime_ext.data.numbering import chunk_numbers
from slime_ext.data.schema import Row
from slime_ext.errors import nearest

Messages = list[dict[str, str]]
Renderer = Callable[[Row], Messages]


def numbered_chunks(row: Row) -> Messages:
    """Chunks under their `<CHUNK_n>` markers; asks for the chunks used, then the answer."""
    _needs_context(row, "numbered_chunks")
    numbers = chunk_numbers(row)
    chunks = []
    for document in row.context:
        title = f"{document.title}\n" if document.title else ""
        chunks.append(f"<CHUNK_{numbers[document.id]}>\n{title}{document.text}")
    return _user(
        prompts.NUMBERED_CHUNKS.format(chunks="\n\n".join(chunks), question=row.question.strip())
    )


def documents(row: Row) -> Messages:
    """Titled documents in order, the question last; asks for the answer in answer tags."""
    _needs_context(row, "documents")
    shown = []
    for number, document in enumerate(row.context, 1):
        title = f": {document.title}" if document.title else ""
        shown.append(f"[Document {number}{title}]\n{document.text}")
    return _user(
        prompts.DOCUMENTS.format(documents="\n\n".join(shown), question=row.question.strip())
    )


def messages(row: Row) -> Messages:
    """The prompt as the row holds it."""
    if not row.messages:
        raise DataError(
            f"row {row.id!r} has documents, not messages",
            key="data.prompt",
            remedy='use prompt = "numbered_chunks" or "documents"',
        )
    return [message.model_dump() for message in row.messages]


RENDERERS: dict[str, Renderer] = {
    "numbered_chunks": numbered_chunks,
    "documents": documents,
    "messages": messages,
}


def renderer_for(name: str) -> Renderer:
    """The renderer called `name`, or the function at the import path "package.module:function".

    Raises DataError for an unknown name (with the nearest one) and for a path that leads nowhere.
    """
    if name in RENDERERS:
        return RENDERERS[name]
    module_name, colon, function_name = name.partition(":")
    if not colon:
        raise DataError(
            f"unknown prompt {name!r}",
            key="data.prompt",
            remedy=f'{nearest(name, RENDERERS)} (or your own "package.module:function")',
        )
    try:
        function = getattr(importlib.import_module(module_name), function_name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise DataError(
            f"there is no module {error.name!r}",
            key="data.prompt",
            remedy="install it or put its folder on PYTHONPATH",
        ) from None
    if not callable(function):
        raise DataError(
            f"module {module_name!r} has no function {function_name!r}",
            key="data.prompt",
            remedy=nearest(function_name, dir(importlib.import_module(module_name))),
        )
    renderer: Renderer = function
    return renderer


def render(row: Row, name: str) -> Messages:
    """Messages ({"role", "content"}) of the row's prompt; `name` as in `renderer_for`.

    Raises DataError where the row does not fit the renderer, or where a renderer of the user's own
    returns anything but a list of messages.
    """
    result: Any = renderer_for(name)(row)
    if not isinstance(result, list) or not result or not all(_is_message(m) for m in result):
        raise DataError(
            f"{name} returned {type(result).__name__} for row {row.id!r}",
            key="data.prompt",
            remedy='return a list of {"role": ..., "content": ...}',
        )
    return result


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("content"), str)
    )


def _needs_context(row: Row, name: str) -> None:
    if not row.context:
        raise DataError(
            f"row {row.id!r} has a rendered prompt, {name} needs documents",
            key="data.prompt",
            remedy='use prompt = "messages"',
        )


def _user(content: str) -> Messages:
    return [{"role": "user", "content": content}]
