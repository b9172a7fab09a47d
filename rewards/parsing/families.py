"""Model families: how thinking is marked, how a response stops, which tokens must not be written.

One design choice: a family is plain data. Models differ in what a response without a closing tag
means, so that rule is a field here and not a branch in the parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """Rules by which a response is split and found ill-formed.

    Number of closing tags in a response of a thinking family:
    - one: reasoning before it, content after it;
    - several: ill-formed; content follows the last one, so evaluation judges the final answer;
    - none: ill-formed; `unclosed` says what the text is. "reasoning": the chat template opens the
      block itself, so the model never left it. "if_opened": the model opens the block itself, so a
      text without the opening tag is an answer given without thinking.

    `wrong_stops` end a response like `stop_tokens`, of which they are part, and make it ill-formed.
    """

    name: str
    open_tag: str
    close_tag: str
    stop_tokens: tuple[str, ...]
    special_tokens: tuple[str, ...]
    thinking: bool
    wrong_stops: tuple[str, ...] = ()
    unclosed: Literal["reasoning", "if_opened"] = "if_opened"
    needs_reasoning: bool = True
    """Whether an empty thinking block is ill-formed; the lab keeps the short cut open, as a policy
    that answers without evidence is what its rewards are compared on."""


_QWEN_SPECIALS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
_DEEPSEEK_SPECIALS = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜▁pad▁｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
)
_LLAMA_SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|python_tag|>",
)
_LAB_SPECIALS = (
    "<bos>",
    "<eos>",
    "<pad>",
    "<docs>",
    "</docs>",
    "<q>",
    "</q>",
    "<m_chunk>",
    "<m_eapo>",
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="qwen3",
            open_tag="<think>",
            close_tag="</think>",
            stop_tokens=("<|im_end|>", "<|endoftext|>"),
            special_tokens=_QWEN_SPECIALS,
            thinking=True,
            wrong_stops=("<|endoftext|>",),
            unclosed="reasoning",
        ),
        Family(
            name="deepseek_r1",
            open_tag="<think>",
            close_tag="</think>",
            stop_tokens=("<｜end▁of▁sentence｜>",),
            special_tokens=_DEEPSEEK_SPECIALS,
            thinking=True,
        ),
        Family(
            name="plain",
            open_tag="",
            close_tag="",
            stop_tokens=("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>"),
            special_tokens=_QWEN_SPECIALS + _LLAMA_SPECIALS,
            thinking=False,
        ),
        Family(
            name="lab",
            open_tag="<think>",
            close_tag="</think>",
            stop_tokens=("<eos>",),
            special_tokens=_LAB_SPECIALS,
            thinking=True,
            needs_reasoning=False,
        ),
    )
}


def get_family(name: str) -> Family:
    """The family called `name`; ValueError lists the known ones."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise ValueError(
            f"unknown model family {name!r}; write one of {sorted(FAMILIES)}"
        ) from None
