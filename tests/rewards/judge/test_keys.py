"""Keys: where they come from, what is refused, and that they show up nowhere."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from rewards.judge.client import ChatClient
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.keys import KeyMissingError, read_key
from rewards.judge.types import ChatRequest, NoReplyError
from tests.fakes.judge import RESET, Behaviour, fake_judge, status
from tests.fakes.timing import FakeTime

KEY = "sk-correct-horse-7"
URL = "http://judge/v1"
REQUEST = ChatRequest(({"role": "user", "content": "Is it right?"},), "m", 0.0, 64)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    path.chmod(0o600)
    return path


def from_file(path: Path) -> EndpointConfig:
    return EndpointConfig(url=URL, key_file=path)


def test_a_key_comes_from_the_environment_or_a_file(
    monkeypatch: pytest.MonkeyPatch, key_file: Path
) -> None:
    monkeypatch.setenv("JUDGE_KEY", f" {KEY}\n")
    from_environment = read_key(EndpointConfig(url=URL, key_env="JUDGE_KEY"))
    assert from_environment is not None
    assert from_environment.get_secret_value() == KEY
    assert KEY not in repr(from_environment)
    kept = read_key(from_file(key_file))
    assert kept is not None
    assert kept.get_secret_value() == KEY
    assert read_key(EndpointConfig(url=URL)) is None


@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_absent_variable_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("JUDGE_KEY", value)
    with pytest.raises(KeyMissingError, match=r"JUDGE_KEY.*not set; type: .*export JUDGE_KEY"):
        read_key(EndpointConfig(url=URL, key_env="JUDGE_KEY"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_file_others_can_reach_is_refused(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(KeyMissingError, match=f"chmod 600 {key_file}") as caught:
        read_key(from_file(key_file))
    assert KEY not in str(caught.value)


def test_a_file_that_is_absent_empty_or_not_text_is_named(key_file: Path) -> None:
    with pytest.raises(KeyMissingError, match="cannot be read: No such file"):
        read_key(from_file(key_file.with_name("absent")))
    key_file.write_text("\n")
    with pytest.raises(KeyMissingError, match="is empty"):
        read_key(from_file(key_file))
    key_file.write_bytes(b"\xff\xfe")
    with pytest.raises(KeyMissingError, match="not text"):
        read_key(from_file(key_file))


@pytest.mark.parametrize("value", [f"{KEY} {KEY}", f"{KEY}\r\nx: y", f"{KEY}\u00e9"])
def test_a_key_that_could_not_be_a_header_is_refused_unquoted(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("JUDGE_KEY", value)
    with pytest.raises(KeyMissingError, match="the key alone") as caught:
        read_key(EndpointConfig(url=URL, key_env="JUDGE_KEY"))
    assert KEY not in str(caught.value)


def locals_of(error: BaseException | None) -> list[str]:
    """What a traceback with local variables could print, of every frame but this file's."""
    shown: list[str] = []
    while error is not None:
        trace = traceback.TracebackException.from_exception(error, capture_locals=True)
        shown += [repr(frame.locals) for frame in trace.stack if frame.filename != __file__]
        error = error.__context__
    return shown


async def test_the_key_reaches_the_server_and_nothing_else(
    key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    echo = f'{{"error": {{"message": "Incorrect key {KEY}", "code": "invalid_api_key"}}}}'.encode()
    with fake_judge() as fake, caplog.at_level(logging.DEBUG):
        fake.plan.extend([RESET, status(503), Behaviour(), Behaviour(status=401, body=echo)])
        endpoint = EndpointConfig(url=fake.url, key_file=key_file)
        config = JudgeConfig(endpoints=(endpoint,))
        judge = ChatClient(config, "default", sleep=FakeTime().sleep)
        await judge.chat(REQUEST)
        with pytest.raises(NoReplyError) as caught:
            await judge.chat(REQUEST)
        fake.plan.append(RESET)
        with pytest.raises(NoReplyError) as cut:
            await ChatClient(config.model_copy(update={"attempts": 1}), "m").chat(REQUEST)
        await judge.aclose()
    assert [headers["authorization"] for headers in fake.headers] == [f"Bearer {KEY}"] * 5
    assert "invalid_api_key" in caught.value.detail
    shown = [str(caught.value), *locals_of(caught.value), *locals_of(cut.value)]
    shown += [repr(judge), repr(judge._endpoints._all), repr(judge.counters()), repr(config)]
    shown += [record.getMessage() + repr(record.__dict__) for record in caplog.records]
    assert any("status 401" in text for text in shown)
    assert any("ReadError" in text for text in shown)
    assert not [text for text in shown if KEY in text]
