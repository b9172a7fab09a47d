"""A tokenizer that is not the model's, templates that think and families that do not."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.preflight.finding import Finding
from launch.preflight.template import check_template, end_ids
from tests.launch.preflight.conftest import MakeContext, named

Edit = Callable[..., None]
HEAD = "{% for m in messages %}{{ m.content }} {% endfor %}"


@pytest.fixture
def check(make: MakeContext) -> Callable[..., list[Finding]]:
    def run(**model: object) -> list[Finding]:
        context = make(model=model)
        return check_template(context.recipe, context)

    return run


Check = Callable[..., list[Finding]]


def test_the_lab_model_fits_its_family(check: Check) -> None:
    findings = check()
    assert {one.status for one in findings} == {"pass"}, findings
    assert {one.name for one in findings} == {
        "vocabulary", "end token", "stop tokens", "chat template",
    }  # fmt: skip


def test_no_folder_no_tokenizer(make: MakeContext) -> None:
    context = make(offline=True, model={"path": "/no/model"})
    assert [one.status for one in check_template(context.recipe, context)] == ["skip"]


def test_a_login_node_without_transformers(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    finding = named(check(), "tokenizer")
    assert finding.status == "skip"
    assert "transformers is not installed" in finding.message


def test_a_folder_without_tokenizer(check: Check, model: Path) -> None:
    (model / "tokenizer.json").unlink()
    finding = named(check(), "tokenizer")
    assert finding.status == "fail"
    assert "none of tokenizer.json" in finding.message


def test_a_tokenizer_whose_download_was_cut(check: Check, model: Path) -> None:
    whole = (model / "tokenizer.json").read_bytes()
    (model / "tokenizer.json").write_bytes(whole[: len(whole) // 2])
    assert named(check(), "tokenizer").status == "fail"


def test_tokens_beyond_the_embedding(check: Check, edit: Edit) -> None:
    edit("config.json", vocab_size=149)
    finding = named(check(), "vocabulary")
    assert finding.status == "fail"
    assert "2 tokens have no row among the model's 149 embeddings" in finding.message
    assert "= 149" in finding.message


def test_a_vocabulary_much_smaller_than_the_embedding(check: Check, edit: Edit) -> None:
    edit("config.json", vocab_size=200)
    assert named(check(), "vocabulary").status == "warn"
    edit("config.json", vocab_size=160)
    assert named(check(), "vocabulary").status == "pass"


def test_another_end_token_than_the_models(check: Check, edit: Edit) -> None:
    edit("generation_config.json", eos_token_id=[5, 6])
    finding = named(check(), "end token")
    assert finding.status == "fail"
    assert "'<eos>' = 2" in finding.message
    assert "= 5" in finding.message
    edit("generation_config.json", eos_token_id=[2, 6])
    assert named(check(), "end token").status == "pass"


def test_a_tokenizer_without_end_token(check: Check, edit: Edit) -> None:
    edit("tokenizer_config.json", eos_token=None)
    assert named(check(), "end token").status == "warn"


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({"generation_config.json": {"eos_token_id": [3, 4]}, "config.json": {"eos_token_id": 5}},
         {3, 4}),
        ({"generation_config.json": {}, "config.json": {"eos_token_id": 5}}, {5}),
        ({"config.json": {"text_config": {"eos_token_id": 6}}}, {6}),
        ({"config.json": {"eos_token_id": 0}}, {0}),
        ({"config.json": {}}, set()),
        ({}, set()),
    ],
)  # fmt: skip
def test_where_the_end_tokens_stand(tmp_path: Path, files: dict, ids: set[int]) -> None:
    for name, values in files.items():
        (tmp_path / name).write_text(json.dumps(values))
    assert end_ids(tmp_path) == ids


def test_stop_tokens_of_the_recipe(check: Check, edit: Edit) -> None:
    assert named(check(stop_token_ids=[2, 151]), "stop tokens").status == "fail"
    edit("generation_config.json", eos_token_id=[2, 6])
    finding = named(check(stop_token_ids=[3]), "stop tokens")
    assert finding.status == "warn"
    assert "= 6" in finding.message
    assert "stop_token_ids = [2, 3, 6]" in finding.remedy
    assert named(check(stop_token_ids=[2, 6]), "stop tokens").status == "pass"


def test_a_family_whose_stop_tokens_the_model_lacks(check: Check) -> None:
    finding = named(check(family="qwen3"), "stop tokens")
    assert finding.status == "fail"
    assert "<|im_end|>" in finding.message
    assert named(check(family="qwen3", stop_token_ids=[2]), "stop tokens").status == "pass"


@pytest.mark.parametrize(
    ("family", "ending", "status", "said"),
    [
        ("qwen3", "<think>\n", "pass", "ends in"),
        ("qwen3", "", "warn", "opens no thinking block"),
        ("qwen3", "<think>\n\n</think>\n\n", "fail", "thinking is over"),
        ("plain", "<think>\n", "fail", "takes thoughts for the answer"),
        ("plain", "<think>\n\n</think>\n\n", "pass", ""),
        ("plain", "", "pass", ""),
        ("deepseek_r1", "", "pass", ""),
        ("deepseek_r1", "<think>\n", "warn", "never leaves its thoughts"),
        ("lab", "", "pass", ""),
    ],
)
def test_thinking_of_template_and_family(
    check: Check, edit: Edit, family: str, ending: str, status: str, said: str
) -> None:
    edit(
        "tokenizer_config.json",
        chat_template=HEAD + "{% if add_generation_prompt %}" + ending + "{% endif %}",
    )
    finding = named(check(family=family), "chat template")
    assert finding.status == status, finding
    assert said in finding.message


def test_thinking_can_be_switched_by_the_recipe(check: Check, edit: Edit) -> None:
    switch = "{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}"
    edit("tokenizer_config.json", chat_template=HEAD + switch)
    assert named(check(family="plain"), "chat template").status == "fail"
    off = check(family="plain", chat_template_kwargs={"enable_thinking": False})
    assert named(off, "chat template").status == "pass"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ messages[0].content.nothing.more }}", "cannot render"),
        ("{% for m in %}", "cannot render"),
        ("{{ raise_exception('no system') }}", "no system"),
        ("Hello", "leaves the user's message out"),
    ],
)
def test_a_template_that_does_not_render(
    check: Check, edit: Edit, template: str, said: str
) -> None:
    edit("tokenizer_config.json", chat_template=template)
    finding = named(check(), "chat template")
    assert finding.status == "fail"
    assert said in finding.message


def test_no_template(check: Check, edit: Edit) -> None:
    edit("tokenizer_config.json", chat_template=None)
    assert named(check(), "chat template").status == "fail"
