"""A judge whose client is a script: no HTTP, and it says yes to answers that hold "Rhine"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rewards.judge import judge as judge_module
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.judge import Judge
from rewards.judge.protocols.base import Protocol
from rewards.judge.types import ChatReply, ChatRequest, NoReplyError
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict

URL = "http://127.0.0.1:9/v1"
TASK = Task(id="t", question="Which river?", answer="Rhine", chunk_texts={1: "It is the Rhine."})


class YesNo(Protocol):
    name, version, model = "yes_no", "1", "paper-model"
    temperature, max_tokens = 0.5, 77

    def messages(self, task: Task, answer: str) -> tuple[Mapping[str, str], ...]:
        return ({"role": "user", "content": f"{task.question}|{task.chunk_texts}|{answer}"},)

    def read(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        return {"yes": verdict(1), "no": verdict(0)}.get(reply.content, no_verdict("unparsable"))


class Structured(YesNo):
    def response_format(self) -> Mapping[str, Any] | None:
        return {"type": "json_schema"} if self.structured else None

    def read_structured(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        return self.read(ChatReply(reply.content.strip("{}")), task, answer)


class ScriptedClient:
    """Stands where the HTTP client stands: says "yes" to answers that hold "Rhine"."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.deadlines: list[float | None] = []
        self.failure: NoReplyError | None = None
        self.say: str | None = None
        self.gate: Callable[[], Coroutine[Any, Any, None]] | None = None

    def __call__(self, config: JudgeConfig, default_model: str) -> ScriptedClient:
        return self

    async def chat(self, request: ChatRequest, deadline_s: float | None = None) -> ChatReply:
        self.requests.append(request)
        self.deadlines.append(deadline_s)
        await (self.gate() if self.gate else asyncio.sleep(0.01))
        if self.failure:
            raise self.failure
        answer = request.messages[0]["content"].rpartition("|")[2]
        said = self.say if self.say is not None else "yes" if "Rhine" in answer else "no"
        return ChatReply(said, prompt_tokens=10, completion_tokens=1)

    def counters(self) -> dict[str, float]:
        return {"requests": float(len(self.requests))}

    async def aclose(self) -> None:
        return


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ScriptedClient:
    scripted = ScriptedClient()
    monkeypatch.setattr(judge_module, "ChatClient", scripted)
    monkeypatch.setattr(judge_module, "make_protocol", lambda *_: YesNo())
    return scripted


async def passes(times: int) -> None:
    """Let the event loop go round."""
    for _ in range(times):
        await asyncio.sleep(0)


def config(**changes: Any) -> JudgeConfig:
    return JudgeConfig(**({"endpoints": [EndpointConfig(url=URL)]} | changes))


@asynccontextmanager
async def judging(**changes: Any) -> AsyncIterator[Judge]:
    judge = Judge(config(**changes))
    yield judge
    await judge.aclose()
