"""Who may use the service: tokens, their files, and addresses."""

from __future__ import annotations

import pytest

from rewards.judge.server.settings import (
    Guard,
    is_loopback,
    read_token,
    require_token_beyond_loopback,
)

TOKEN = "a-token-of-good-length"


async def test_every_route_but_bare_health_asks_for_the_token(served):
    async def endpoints():
        return {"http://secret-host/v1": "up"}

    one = served(token=TOKEN, endpoints=endpoints)
    body = {"task": {"question": "q", "answer": "Paris"}, "response": {"text": "Paris"}}
    for header in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer ü"):
        headers = {} if header is None else {"Authorization": header.encode()}
        refused = await one.client.post("/evaluate", json=body, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert (await one.client.get("/metrics", headers=headers)).status_code == 401
        health = await one.client.get("/health", headers=headers)
        assert health.json() == {"status": "ok"}
    assert one.outcome.asked == []
    good = {"Authorization": f"Bearer {TOKEN}"}
    assert (await one.client.post("/evaluate", json=body, headers=good)).status_code == 200
    assert (await one.client.get("/metrics", headers=good)).status_code == 200
    assert "secret-host" in (await one.client.get("/health", headers=good)).text


def test_without_a_token_the_guard_is_open():
    assert Guard(None).open
    assert Guard(None).admits(None)
    assert not Guard(TOKEN).open


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.4", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_other_addresses_need_a_token(host, own):
    assert is_loopback(host) is own
    require_token_beyond_loopback(host, TOKEN)
    if own:
        require_token_beyond_loopback(host, None)
    else:
        with pytest.raises(ValueError, match=r"--token-file judge\.token"):
            require_token_beyond_loopback(host, None)


def test_a_token_file_must_be_private(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600") as refused:
        read_token(None, path)
    assert TOKEN not in str(refused.value)
    path.chmod(0o600)
    assert read_token(None, path) == TOKEN


def test_tokens_from_the_environment(monkeypatch):
    monkeypatch.setenv("LONGRL_TOKEN", TOKEN)
    assert read_token("LONGRL_TOKEN", None) == TOKEN
    monkeypatch.setenv("LONGRL_TOKEN", "short")
    with pytest.raises(ValueError, match="fewer than 16"):
        read_token("LONGRL_TOKEN", None)
    monkeypatch.delenv("LONGRL_TOKEN")
    with pytest.raises(ValueError, match="not set"):
        read_token("LONGRL_TOKEN", None)
    assert read_token(None, None) is None


def test_two_sources_are_one_too_many(tmp_path):
    with pytest.raises(ValueError, match="not both"):
        read_token("LONGRL_TOKEN", tmp_path / "token")
