"""The OpenAI SDK's client for agents, each request of which takes the line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from openai.types.chat import ChatCompletion

from core.errors import BudgetError, InputError, ModelError, ModelUnavailableError, StoppedError
from core.llm import Access, Budget
from core.llm.sdk import SdkClient
from core.rollout import Usage
from tests.core.test_llm import KEY, MemoryLedger, access_to, endpoint, key_in_environment
from tests.stub_server import Fault, StubServer

__all__ = ["key_in_environment"]  # the fixture

T = TypeVar("T")
TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
]
ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "content": "What is 17 + 25?"}],
    "model": "any",
    "max_tokens": 9,
}


class ToolStub(StubServer):
    """Answers each prompt with a tool call, until the prompt holds a tool's output."""

    def _completion(self, body: dict[str, Any], positions: Any, silent: bool = False) -> dict[str, Any]:
        made = super()._completion(body, positions, silent)
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 17}'}}
            made["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
            made["choices"][0]["finish_reason"] = "tool_calls"
        made["created"] = 1_700_000_000 + self.stats()["calls"]
        return made


def use(access: Access, work: Callable[[SdkClient], Coroutine[Any, Any, T]], replicate: int = 0) -> T:
    async def main() -> T:
        chat = access.chat("stub", "rollout")
        async with access, chat.sdk_client(seed=40, replicate=replicate) as sdk:
            return await work(sdk)

    return asyncio.run(main())


async def ask(sdk: SdkClient, **more: Any) -> ChatCompletion:
    answer: ChatCompletion = await sdk.client.chat.completions.create(**{**ASKED, **more})
    return answer


async def converse(sdk: SdkClient) -> tuple[str, Usage]:
    """Two turns with a tool."""
    first = await ask(sdk, tools=TOOLS)
    message = first.choices[0].message
    assert message.tool_calls
    said = [
        *ASKED["messages"],
        {**message.model_dump(exclude_none=True), "content": ""},
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "42"},
    ]
    second = await ask(sdk, tools=TOOLS, messages=said)
    return str(second.choices[0].message.content), sdk.usage


def test_an_agent_is_given_the_whole_answer_with_its_tool_calls() -> None:
    with ToolStub(lambda asked: "It is 42.") as stub:
        text, usage = use(access_to(endpoint(stub)), converse)
    assert text == "It is 42."
    assert usage.calls == 2
    assert usage.prompt_tokens + usage.completion_tokens == stub.stats()["tokens"]


def test_a_killed_rollout_that_says_the_same_again_pays_nothing_twice() -> None:
    ledger = MemoryLedger()
    with ToolStub(lambda asked: "It is 42.") as stub:
        first = use(access_to(endpoint(stub, price_in=3.0), ledger=ledger), converse)
        again = use(
            access_to(endpoint(stub, price_in=3.0), ledger=ledger, budget=Budget(max_calls=0)), converse
        )
        assert stub.stats()["calls"] == 2
    assert again == first
    assert first[1].cost_usd > 0
    assert ledger.total.model_dump() == pytest.approx(first[1].model_dump())


def test_each_replicate_has_its_own_seed_and_its_own_replies() -> None:
    ledger = MemoryLedger()
    with ToolStub(lambda asked: str(asked.seed)) as stub:
        for replicate in (0, 3):
            target = access_to(endpoint(stub), ledger=ledger)
            answer = use(target, ask, replicate)
            assert answer.choices[0].message.content == str(40 + replicate)
        assert [r.body["seed"] for r in stub.requests] == [40, 43]


def test_equal_answers_are_kept_in_equal_bytes_whatever_the_server_calls_them() -> None:
    ledgers = [MemoryLedger(), MemoryLedger()]
    with ToolStub() as stub:  # it tells another time with each answer
        for ledger in ledgers:
            use(access_to(endpoint(stub), ledger=ledger), ask)
        assert stub.stats()["calls"] == 2
    assert len(ledgers[0].entries) == 1
    assert ledgers[0].entries == ledgers[1].entries


def test_a_whole_answer_and_a_text_are_never_taken_for_each_other() -> None:
    from core.ports import Sampling
    from core.rollout import Message

    async def main(access: Access) -> None:
        chat = access.chat("stub", "rollout")
        async with access, chat.sdk_client(seed=0, replicate=0) as sdk:
            await ask(sdk, temperature=0.7, top_p=0.95)
            question = Message(role="user", content="What is 17 + 25?")
            (reply,) = await chat.complete([question], Sampling(max_tokens=9))
            assert not isinstance(reply, str)
            assert not reply.cached

    with StubServer() as stub:
        asyncio.run(main(access_to(endpoint(stub), ledger=MemoryLedger())))
        first, second = (r.body for r in stub.requests)
    assert first == second


def test_what_is_sent_is_the_endpoints_own_model_and_fields_with_its_key_and_no_more(
    key_in_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Private: yes")
    with StubServer() as stub:
        target = endpoint(stub, key_env="WINNOW_KEY_STUB", extra={"top_k": 40})
        use(access_to(target), lambda sdk: ask(sdk, tools=TOOLS))
        (request,) = stub.requests
    assert (request.body["model"], request.body["top_k"], request.body["tools"]) == ("stub-model", 40, TOOLS)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert not {"x-private", "x-stainless-os"} & set(request.headers)


def test_a_key_in_an_answer_reaches_neither_the_agent_nor_the_store(key_in_environment: str) -> None:
    ledger = MemoryLedger()
    with StubServer(lambda asked: f"Your key is {KEY}.") as stub:
        answer = use(access_to(endpoint(stub, key_env="WINNOW_KEY_STUB"), ledger=ledger), ask_long)
    assert answer.choices[0].message.content == "Your key is [key]."
    assert KEY not in str(ledger.entries)


async def ask_long(sdk: SdkClient) -> ChatCompletion:
    return await ask(sdk, max_tokens=50)


def test_failures_are_made_good_by_the_lines_own_retries() -> None:
    faults = [Fault("status", 500), Fault("malformed"), Fault("dropped")]
    with StubServer(lambda asked: "42", faults=faults) as stub:
        answer = use(access_to(endpoint(stub)), ask)
        assert stub.stats()["calls"] == 4
    assert answer.choices[0].message.content == "42"


async def fail(sdk: SdkClient) -> tuple[BaseException, object]:
    with pytest.raises(Exception) as e:  # noqa: PT011  # whatever the SDK makes of it
        await ask(sdk)
    return e.value, sdk.error


def test_a_request_that_failed_for_good_is_one_sentence_and_not_asked_again_by_the_sdk() -> None:
    with StubServer(faults=[Fault("status", 422, message="Bad words.")]) as stub:
        _, error = use(access_to(endpoint(stub)), fail)
        assert stub.stats()["calls"] == 1
    assert type(error) is ModelError
    assert str(error) == "Endpoint stub refused the request (422): Bad words."


@pytest.mark.parametrize(
    ("terms", "faults", "kind"),
    [
        ({"budget": Budget(max_calls=0)}, [], BudgetError),
        ({"wishes": lambda: "pause"}, [], StoppedError),
        ({}, [Fault("status", 401)], ModelUnavailableError),
    ],
    ids=["cap", "pause", "bad key"],
)
def test_what_stops_every_call_is_told_as_such(
    terms: dict[str, Any], faults: list[Fault], kind: type[Exception]
) -> None:
    with StubServer(faults=faults) as stub:
        _, error = use(access_to(endpoint(stub), **terms), fail)
    assert type(error) is kind


@pytest.mark.parametrize("more", [{"n": 2}, {"stream": True}], ids=["several", "stream"])
def test_what_an_agent_does_not_need_is_refused_before_anything_is_sent(more: dict[str, Any]) -> None:
    async def refuse(sdk: SdkClient) -> object:
        with pytest.raises(Exception):  # noqa: B017, PT011
            await ask(sdk, **more)
        return sdk.error

    with StubServer() as stub:
        assert isinstance(use(access_to(endpoint(stub)), refuse), InputError)
        assert stub.stats()["calls"] == 0


def test_nothing_but_chat_completions_is_let_through() -> None:
    async def refuse(sdk: SdkClient) -> object:
        with pytest.raises(Exception):  # noqa: B017, PT011
            await sdk.client.models.list()
        return sdk.error

    with StubServer() as stub:
        assert isinstance(use(access_to(endpoint(stub)), refuse), InputError)
        assert stub.stats()["connections"] == 0


def test_halves_of_a_pair_in_an_answer_can_be_stored() -> None:
    with StubServer(lambda asked: "half \ud83d pair") as stub:
        ledger = MemoryLedger()
        use(access_to(endpoint(stub), ledger=ledger), ask)
    (kept,) = ledger.entries.values()
    kept.encode()
    assert "half" in json.loads(kept)["choices"][0]["message"]["content"]
