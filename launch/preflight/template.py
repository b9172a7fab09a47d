"""Tokenizer, chat template and stop tokens: do they belong to the model and to the family?

One design choice: only what was rendered is believed. Whether a template opens a thinking block is
read off a prompt, not off the model's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from rewards.parsing.families import FAMILIES, Family
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import stop_ids

LEAST_USED = 0.9
"""Share of embedding rows a model's own tokenizer uses at least (Qwen3: 151,669 of 151,936)."""
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
CANNED = [{"role": "user", "content": "Where?"}]


def check_template(recipe: Recipe, context: Context) -> list[Finding]:
    """Everything about turning text into tokens and back."""
    area = Area("template")
    if context.no_tokenizer or context.model is None:
        area.skip("tokenizer", f"{context.no_tokenizer}: tokenizer and template not looked at")
        return area.findings
    # transformers makes an empty tokenizer of the config alone, and of a cut file an error of no
    # class of its own.
    try:
        if not any((context.model / name).is_file() for name in TOKENIZER_FILES):
            raise ValueError(f"none of {', '.join(TOKENIZER_FILES)} is there")
        if (context.model / TOKENIZER_FILES[0]).is_file():
            json.loads((context.model / TOKENIZER_FILES[0]).read_text())
        tokenizer = context.tokenizer
    except ValueError as error:
        area.fail(
            "tokenizer",
            f"cannot be loaded: {_first_line(error)}",
            f"bring the tokenizer files of the model into {context.model}",
        )
        return area.findings
    _vocabulary(tokenizer, context.shape.vocab_size, area)
    _end_token(tokenizer, context.model, area)
    family = FAMILIES[recipe.model.family]
    _stop_tokens(recipe, tokenizer, family, context, area)
    _thinking(recipe, tokenizer, family, area)
    return area.findings


def _vocabulary(tokenizer: Any, rows: int, area: Area) -> None:
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    outside = sorted((number, token) for token, number in vocabulary.items() if number >= rows)
    remedy = "the tokenizer is not this model's: download the model folder again, whole"
    if outside:
        some = ", ".join(f"{token!r} = {number}" for number, token in outside[:3])
        area.fail(
            "vocabulary",
            f"{len(outside)} tokens have no row among the model's {rows} embeddings, e.g. {some}",
            remedy,
        )
    elif len(vocabulary) < LEAST_USED * rows:
        area.warn(
            "vocabulary",
            f"the tokenizer knows {len(vocabulary)} tokens, the model has {rows} embeddings",
            remedy,
        )
    else:
        area.ok("vocabulary", f"{len(vocabulary)} tokens, {rows} embeddings")


def end_ids(folder: Path) -> set[int]:
    """Ids that end a text according to generation_config.json, or else to config.json."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        values = json.loads(path.read_text()) if path.is_file() else {}
        found = values.get("eos_token_id", (values.get("text_config") or {}).get("eos_token_id"))
        if found is not None:
            return {int(one) for one in (found if isinstance(found, list) else [found])}
    return set()


def _end_token(tokenizer: Any, folder: Path, area: Area) -> None:
    model, own = end_ids(folder), tokenizer.eos_token_id
    if own is None:
        area.warn(
            "end token",
            "the tokenizer names no end-of-text token",
            "set eos_token in tokenizer_config.json",
        )
    elif model and own not in model:
        area.fail(
            "end token",
            f"the tokenizer ends texts with {tokenizer.eos_token!r} = {own}, the model with "
            f"{_tokens(tokenizer, model)}",
            "the tokenizer is not this model's, or one of tokenizer_config.json and "
            "generation_config.json was edited: take both from one download",
        )
    else:
        area.ok("end token", _tokens(tokenizer, [own]))


def _stop_tokens(
    recipe: Recipe, tokenizer: Any, family: Family, context: Context, area: Area
) -> None:
    stops = stop_ids(tokenizer, family, recipe.model.stop_token_ids)
    rows = context.shape.vocab_size
    missing = sorted(end_ids(context.model or Path()) - set(stops))
    known = tokenizer.get_vocab()
    if outside := [one for one in stops if not 0 <= one < rows]:
        area.fail(
            "stop tokens",
            f"model.stop_token_ids {outside} are no tokens of the model",
            f"give ids below {rows}, or leave the key out to take the model's own",
        )
    elif not recipe.model.stop_token_ids and not any(t in known for t in family.stop_tokens):
        area.fail(
            "stop tokens",
            f"none of family {family.name!r}'s {', '.join(family.stop_tokens)} is in the "
            "vocabulary: every response would run to its cap",
            "set model.family to the model's own",
        )
    elif missing:
        area.warn(
            "stop tokens",
            f"the model also ends texts with {_tokens(tokenizer, missing)}, where a response would "
            "not be taken as complete",
            f"set model.stop_token_ids = {sorted({*stops, *missing})}",
        )
    else:
        area.ok("stop tokens", _tokens(tokenizer, stops))


def _thinking(recipe: Recipe, tokenizer: Any, family: Family, area: Area) -> None:
    """What the prompt already holds of a thinking block, against what the family expects."""
    if not tokenizer.chat_template:
        area.fail(
            "chat template",
            "the tokenizer has none",
            "take the instruction-tuned model, or add chat_template.jinja to its folder",
        )
        return
    from jinja2 import TemplateError

    try:
        prompt = str(
            tokenizer.apply_chat_template(
                CANNED,
                tokenize=False,
                add_generation_prompt=True,
                **recipe.model.chat_template_kwargs,
            )
        )
    except (TemplateError, ValueError, TypeError) as error:
        area.fail(
            "chat template",
            f"cannot render a user message: {_first_line(error)}",
            "correct model.chat_template_kwargs or the template",
        )
        return
    ending = prompt[prompt.index("Where?") + 6 :] if "Where?" in prompt else ""
    if not ending and "Where?" not in prompt:
        area.fail(
            "chat template",
            f"leaves the user's message out: {prompt[-80:]!r}",
            "take the model's own template",
        )
        return
    opened = ending.rstrip().endswith("<think>")
    closed = "</think>" in ending
    _compare(family, opened, closed, repr(ending), area)


def _compare(family: Family, opened: bool, closed: bool, ending: str, area: Area) -> None:
    said = "a prompt ends with the message" if ending == "''" else f"a prompt ends in {ending}"
    if family.thinking and closed:
        area.fail(
            "chat template",
            f"{said}: thinking is over before the response starts, and "
            f"family {family.name!r} would find every response ill-formed",
            'set model.family = "plain", or leave enable_thinking = false out of '
            "model.chat_template_kwargs",
        )
    elif opened and not family.thinking:
        area.fail(
            "chat template",
            f"{said}: the model thinks first, and family {family.name!r} "
            "takes thoughts for the answer",
            'set model.family = "qwen3" (or "deepseek_r1")',
        )
    elif opened and family.unclosed == "if_opened":
        area.warn(
            "chat template",
            f"{said}: family {family.name!r} takes a response that never "
            "leaves its thoughts for an answer without any",
            'set model.family = "qwen3", whose template opens the block too',
        )
    elif not opened and family.thinking and family.unclosed == "reasoning":
        area.warn(
            "chat template",
            f"{said} and opens no thinking block, as family "
            f"{family.name!r} expects: a response without </think> counts as thoughts only",
            'take a thinking model, or set model.family = "plain" if this one never thinks',
        )
    else:
        area.ok("chat template", said)


def _tokens(tokenizer: Any, ids: Iterable[int]) -> str:
    names = [f"{tokenizer.convert_ids_to_tokens(one)!r} = {one}" for one in sorted(ids)]
    return ", ".join(names)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
