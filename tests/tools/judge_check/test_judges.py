"""Judges named on the command line or in a file."""

from __future__ import annotations

import pytest
from longrl_tools.judge_check.judges import judges_at, load_judges, parse_judge, require_distinct

from slime_ext.errors import ExplainedError


def test_a_specification_with_everything():
    judge = parse_judge(
        "name=big, url=http://a:1/v1, url=http://b:2/v1, key_env=KEY, model=org/Qwen-3,"
        "protocol=longrlvr, temperature=0.5, structured=true, attempts=2, "
        "extra_body={chat_template_kwargs = {enable_thinking = false}}"
    )
    assert judge.name == "big"
    assert [end.url for end in judge.config.endpoints] == ["http://a:1/v1", "http://b:2/v1"]
    assert {end.key_env for end in judge.config.endpoints} == {"KEY"}
    assert (judge.config.model, judge.config.protocol) == ("org/Qwen-3", "longrlvr")
    assert (judge.config.temperature, judge.config.structured) == (0.5, True)
    assert judge.config.extra_body == {"chat_template_kwargs": {"enable_thinking": False}}


def test_a_judge_without_a_name_is_called_by_model_and_protocol():
    assert parse_judge("url=http://a/v1,model=m").name == "m/aa_lcr"
    names = [one.name for one in judges_at("http://a/v1", "m", ["aa_lcr", "eapo"])]
    assert names == ["m/aa_lcr", "m/eapo"]
    assert judges_at("http://a/v1", None, [])[0].name == "aa_lcr"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a/v1", "is not key=value"),
        ("url=http://a/v1,modle=m", "did you mean 'model'"),
        ("model=m", "no url"),
        ("url=a:1", "endpoints|url"),
        ("url=http://a/v1,protocol=nope", "protocol"),
        ("url=http://a/v1,model=a,model=b", "given twice"),
        ("url=http://a/v1,deadline_s=1", "deadline_s"),
    ],
)
def test_a_wrong_specification_says_what_to_write(text, expected):
    with pytest.raises(ExplainedError, match=expected):
        parse_judge(text)


def test_a_file_of_judges(tmp_path):
    path = tmp_path / "judges.toml"
    path.write_text(
        '[[judge]]\nname = "one"\nurl = "http://a/v1"\n'
        '[[judge]]\nname = "two"\nprotocol = "eapo"\nendpoints = [{ url = "http://b/v1" }]\n'
    )
    one, two = load_judges(path)
    assert (one.name, one.config.endpoints[0].url) == ("one", "http://a/v1")
    assert (two.config.protocol, two.config.endpoints[0].url) == ("eapo", "http://b/v1")
    path.write_text('judge = "x"')
    with pytest.raises(ExplainedError, match=r"\[\[judge\]\]"):
        load_judges(path)
    path.write_text("judge = ")
    with pytest.raises(ExplainedError, match="not valid TOML"):
        load_judges(path)


def test_names_must_differ_and_exist():
    with pytest.raises(ExplainedError, match="--endpoint"):
        require_distinct([])
    with pytest.raises(ExplainedError, match="two judges are called"):
        require_distinct(judges_at("http://a/v1", None, ["aa_lcr", "aa_lcr"]))
