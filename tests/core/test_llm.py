"""Model access, against the real stub over loopback. `sleep` is injected: nothing waits."""

from __future__ import annotations

import asyncio
import io
import logging
import random
import subprocess
import sys
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BudgetError, InputError, ModelUnavailableError, TrustError, WinnowError
from core.llm import Access, Address, Budget, Connect, Entry, Kept, OpenAIChat, Terms, fixed_address, probe
from core.llm.cache_key import cache_key
from core.llm.reply import Choice, UnreadableReplyError, count_tokens, read_reply
from core.llm.retry import FIRST_DELAY_S, LONGEST_DELAY_S, LONGEST_RETRY_AFTER_S, delay_s, retry_after_s
from core.ports import ChatModel, Completion, Sampling
from core.record import canonical_json, content_hash
from core.rollout import Message, Usage
from core.settings import EMBEDDED, Endpoint
from tests.loop_time import loop_time
from tests.stub_server import Asked, Fault, StubServer, solver

KEY = "sk-test-Q7wZ0pLm42xTnB9cRKeyW"
QUESTION = (Message(role="user", content="What is 17 + 25?"),)
T = TypeVar("T")


class MemoryLedger:
    """A `Ledger` that also remembers its transactions."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.transactions: list[tuple[int, int]] = []
        """Replies and requests of each."""
        self.sent: list[Entry] = []

    def get(self, key: str) -> str | None:
        return self.entries.get(key)

    def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
        self.transactions.append((len(replies), len(sent)))
        self.entries.update(replies)
        self.sent += sent

    @property
    def total(self) -> Usage:
        return sum((e.usage for e in self.sent), Usage())


class FakeTime:
    """A clock that only a `sleep` moves, and what was slept."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def endpoint(stub: StubServer | None = None, **changes: Any) -> Endpoint:
    url = stub.base_url if stub else "http://127.0.0.1:9/v1"
    return Endpoint(**{"name": "stub", "base_url": url, "model": "stub-model", "timeout_s": 20.0} | changes)


def run(use: Callable[[OpenAIChat], Coroutine[Any, Any, T]], chat: OpenAIChat) -> T:
    """Run a test's own coroutine with the chat model, and close it."""

    async def main() -> T:
        try:
            return await use(chat)
        finally:
            await chat.line.aclose()

    return asyncio.run(main())


def access_to(
    *targets: Endpoint, time: FakeTime | None = None, connect: Connect | None = None, **terms: Any
) -> Access:
    """An access to these endpoints, on a clock of its own, so that nothing waits."""
    time = time or FakeTime()
    known = {t.name: t for t in targets}
    told = Terms(**{"rng": random.Random(1), "sleep": time.sleep, "clock": time.clock} | terms)
    return Access(known.__getitem__, told, fixed_address if connect is None else lambda _: connect)


def chat_with(target: Endpoint, **parts: Any) -> OpenAIChat:
    return access_to(target, **parts).chat(target.name, "test")


def ask(
    chat: OpenAIChat,
    replicates: Sequence[int] = (0,),
    messages: Sequence[Message] = QUESTION,
    **sampling: Any,
) -> list[Completion | str]:
    return run(lambda c: c.complete(messages, Sampling(**{"max_tokens": 32} | sampling), replicates), chat)


def texts(replies: Sequence[Completion | str]) -> list[str]:
    assert all(isinstance(r, Completion) for r in replies), replies
    return [r.text for r in replies if isinstance(r, Completion)]


def only(replies: Sequence[Completion | str]) -> Completion:
    (reply,) = replies
    assert isinstance(reply, Completion), reply
    return reply


@pytest.fixture
def key_in_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    monkeypatch.setenv("WINNOW_KEY_STUB", KEY)
    return KEY


# -- one request for several replicates ------------------------------------------------------------


def test_it_is_a_chat_model() -> None:
    model: ChatModel = chat_with(endpoint())
    assert (model.name, model.context_length) == ("stub-model", 8192)


def test_replicates_asked_together_are_the_same_as_asked_alone() -> None:
    with StubServer() as stub:
        together = texts(ask(chat_with(endpoint(stub, sends_n=True)), range(6), seed=40))
        assert [r.body["n"] for r in stub.requests] == [6]
        alone = texts(ask(chat_with(endpoint(stub)), range(6), seed=40))
        assert sorted(r.body["seed"] for r in stub.requests[1:]) == [40, 41, 42, 43, 44, 45]
    assert together == alone
    assert len(set(together)) > 1


def test_replies_come_in_the_order_of_the_replicates_asked_for() -> None:
    with StubServer(lambda asked: str(asked.seed)) as stub:
        assert texts(ask(chat_with(endpoint(stub, sends_n=True)), [7, 2, 3, 0], seed=10)) == [
            "17",
            "12",
            "13",
            "10",
        ]
        # 2 and 3 share a request; the others do not follow each other.
        assert sorted(r.body.get("n", 1) for r in stub.requests) == [1, 1, 2]


def test_of_a_partial_reply_only_what_is_missing_is_asked_for_again() -> None:
    with StubServer(lambda asked: str(asked.seed), faults=[Fault("partial", keep=(0, 3))]) as stub:
        ledger = MemoryLedger()
        replies = ask(chat_with(endpoint(stub, sends_n=True), ledger=ledger), range(5))
        assert texts(replies) == ["0", "1", "2", "3", "4"]
        assert stub.stats()["answered_again"] == 0
        assert stub.requests[0].body["n"] == 5
        assert sorted((r.body["seed"], r.body.get("n", 1)) for r in stub.requests[1:]) == [(1, 2), (4, 1)]
        assert len(ledger.entries) == sum(replies for replies, _ in ledger.transactions) == 5


def test_a_server_that_ignores_n_still_gives_every_reply_and_none_is_paid_twice() -> None:
    with StubServer(lambda asked: str(asked.seed), ignores_n=True) as stub:
        assert texts(ask(chat_with(endpoint(stub, sends_n=True)), range(4))) == ["0", "1", "2", "3"]
        assert stub.stats()["answered_again"] == 0


def test_a_server_with_fewer_slots_is_asked_in_parts_and_remembered() -> None:
    with StubServer(lambda asked: str(asked.seed), largest_n=4) as stub:
        chat = chat_with(endpoint(stub, sends_n=True))

        async def twice(chat: OpenAIChat) -> list[Completion | str]:
            await chat.complete(QUESTION, Sampling(), range(8))
            return await chat.complete(QUESTION, Sampling(seed=100), range(8))

        assert texts(run(twice, chat)) == [str(100 + i) for i in range(8)]
        assert [r.body["n"] for r in stub.requests] == [8, 4, 4, 4, 4]


def test_one_failed_reply_does_not_take_its_siblings_along() -> None:
    with StubServer(
        lambda asked: str(asked.seed), faults=[Fault("status", 422, message="Bad words.")]
    ) as stub:
        replies = ask(chat_with(endpoint(stub, concurrency=1)), range(3))
    assert replies[0] == "Endpoint stub refused the request (422): Bad words."
    assert texts(replies[1:]) == ["1", "2"]


def test_no_seed_is_sent_to_an_endpoint_that_takes_none() -> None:
    with StubServer() as stub:
        ask(chat_with(endpoint(stub, sends_seed=False, sends_n=True)), [0, 2, 5])
        assert "seed" not in stub.requests[0].body
        assert stub.requests[0].body["n"] == 3


# -- what is sent ---------------------------------------------------------------------------------


def test_sampling_schema_and_extra_fields_arrive() -> None:
    with StubServer() as stub:
        target = endpoint(stub, json_schema=True, extra={"top_k": 40, "top_p": None})
        schema = '{"type": "object", "properties": {"x": {"type": "integer"}}}'
        reply = only(
            ask(chat_with(target), temperature=0.3, max_tokens=9, stop=("\n",), seed=5, json_schema=schema)
        )
        body = stub.requests[0].body
    assert reply.text == '{"x": 1}'
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {"x": {"type": "integer"}}
    assert {k: body[k] for k in ("model", "temperature", "max_tokens", "stop", "seed", "top_k")} == {
        "model": "stub-model",
        "temperature": 0.3,
        "max_tokens": 9,
        "stop": ["\n"],
        "seed": 5,
        "top_k": 40,
    }
    assert not {"top_p", "n"} & set(body)
    assert body["messages"] == [{"role": "user", "content": "What is 17 + 25?"}]


def test_a_schema_is_not_sent_to_an_endpoint_that_cannot_enforce_it() -> None:
    with StubServer() as stub:
        ask(chat_with(endpoint(stub)), json_schema="{}")
        assert "response_format" not in stub.requests[0].body


def test_extra_may_not_set_what_tells_replies_apart() -> None:
    with pytest.raises(InputError, match="extra may not set n, seed"):
        chat_with(endpoint(extra={"seed": 1, "n": 2, "top_k": 3}))


def test_the_key_is_sent_as_bearer_and_nothing_of_this_machine_besides(
    key_in_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Private: yes\nAuthorization: Bearer sk-of-somebody-else")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with StubServer() as stub:
        ask(chat_with(endpoint(stub, key_env="WINNOW_KEY_STUB")))
        ask(chat_with(endpoint(stub)), seed=1)
        with_key, without = (r.headers for r in stub.requests)
    assert with_key["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in without
    assert set(with_key) - set(without) == {"authorization"}
    assert not {"openai-organization", "x-private", "x-stainless-os"} & set(with_key)
    assert "somebody-else" not in str(without)


def test_a_redirect_does_not_carry_the_prompt_elsewhere() -> None:
    with StubServer() as other, StubServer() as stub:
        stub.faults.append(Fault("status", 307, {"Location": f"{other.base_url}/chat/completions"}))
        with pytest.raises(ModelUnavailableError, match="set the base URL to the final address"):
            ask(chat_with(endpoint(stub)))
        assert other.stats()["connections"] == 0


def test_a_cookie_is_not_sent_back() -> None:
    with StubServer(faults=[Fault("status", 503, {"Set-Cookie": "who=you"})]) as stub:
        texts(ask(chat_with(endpoint(stub))))
        assert len(stub.requests) == 2
        assert "cookie" not in stub.requests[1].headers


def test_a_proxy_of_the_environment_is_used_and_a_password_of_netrc_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine models.invalid login me password of-netrc\n", encoding="utf-8")
    netrc.chmod(0o600)
    seen: list[str] = []

    async def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(turn_away, "127.0.0.1", 0)
        for name in ("no_proxy", "NO_PROXY", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        monkeypatch.setenv("NETRC", str(netrc))
        async with server, access_to(endpoint(base_url="http://models.invalid/v1")) as access:
            (reply,) = await access.chat("stub", "test").complete(QUESTION, Sampling())
        assert "refused the request (400)" in str(reply)

    asyncio.run(main())
    assert seen[0].startswith("POST http://models.invalid/v1/chat/completions HTTP/1.1")
    assert "authorization" not in seen[0].lower()


def test_connections_are_kept_and_never_more_than_the_concurrency() -> None:
    with StubServer(latency_s=0.005) as stub:
        ask(chat_with(endpoint(stub, concurrency=3)), range(20))
        stats = stub.stats()
    assert stats["in_flight_max"] == 3
    assert stats["connections"] == 3


def test_waiting_for_a_place_does_not_count_against_the_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    time = loop_time(monkeypatch)

    def takes_ten_seconds(asked: Asked) -> str:
        time.set_forward(10)
        return "42"

    with StubServer(takes_ten_seconds) as stub:
        texts(ask(chat_with(endpoint(stub, concurrency=1, timeout_s=60)), range(10)))
        assert stub.stats()["calls"] == 10


# -- retries --------------------------------------------------------------------------------------

TRANSIENT = [
    Fault("status", 408),
    Fault("status", 409),
    Fault("status", 429),
    Fault("status", 500),
    Fault("status", 503),
    Fault("malformed"),
    Fault("truncated"),
    Fault("dropped"),
    Fault("wrong_types"),
]


def fault_name(fault: Fault) -> str:
    return f"{fault.kind}-{fault.status}" if fault.kind == "status" else fault.kind


@pytest.mark.parametrize("fault", TRANSIENT, ids=fault_name)
def test_what_another_try_may_cure_is_tried_again(fault: Fault) -> None:
    with StubServer(faults=[fault, fault]) as stub:
        time = FakeTime()
        chat = chat_with(endpoint(stub, sends_n=True), time=time)
        assert texts(ask(chat, range(3))) == [
            solver(Asked(stub.requests[0].body["messages"], i, {})) for i in range(3)
        ]
        assert stub.stats()["calls"] == 3
        assert chat.line.terms.budget.spent.calls == 3
    assert 0 < sum(time.slept) <= FIRST_DELAY_S * (1 + 2)


@pytest.mark.parametrize("fault", TRANSIENT, ids=fault_name)
def test_when_every_try_fails_the_reply_is_one_sentence(fault: Fault) -> None:
    with StubServer(faults=[fault] * 3) as stub:
        (reply,) = ask(chat_with(endpoint(stub, retries=2)))
        assert stub.stats()["calls"] == 3
    assert isinstance(reply, str)
    assert reply.endswith(".")
    assert "\n" not in reply
    assert "stub" in reply


def test_a_slow_reply_is_given_up_after_the_time_out_and_tried_again() -> None:
    with StubServer(latency_s=0.02, faults=[Fault("slow", factor=100)]) as stub:
        chat = chat_with(endpoint(stub, timeout_s=0.5, retries=8))
        assert only(ask(chat)).text
        assert chat.line.terms.budget.spent.calls >= 2, "on a slow machine the second one may be late, too"


def test_a_time_out_bounds_the_whole_reply_not_each_byte_of_it() -> None:
    async def main() -> list[Completion | str]:
        gone = asyncio.Event()

        async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            end = asyncio.create_task(reader.read())
            while not end.done():
                writer.write(b" ")
                await asyncio.wait([end], timeout=0.02)
            end.exception()  # a reset is an end, too
            writer.transport.abort()
            gone.set()

        server = await asyncio.start_server(dribble, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        chat = chat_with(endpoint(base_url=url, timeout_s=0.3, retries=0))
        replies = await chat.complete(QUESTION, Sampling())
        await chat.line.aclose()
        await gone.wait()
        server.close()
        return replies

    assert asyncio.run(main()) == ["Endpoint stub did not answer within 0.3 seconds."]


def test_the_server_is_not_asked_again_before_the_time_it_named() -> None:
    fault = Fault("status", 429, {"Retry-After": "7"})
    with StubServer(faults=[fault]) as stub:
        time = FakeTime()
        ask(chat_with(endpoint(stub), time=time))
    assert 7 <= sum(time.slept) <= 7 + FIRST_DELAY_S


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, LONGEST_RETRY_AFTER_S),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        # The server's clock is an hour ahead: its own date counts.
        ({"retry-after": "Sun, 01 Mar 2026 13:00:05 GMT", "date": "Sun, 01 Mar 2026 13:00:00 GMT"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


@given(st.integers(1, 10), st.integers())
def test_delays_are_jittered_and_bounded(attempt: int, seed: int) -> None:
    assert (
        0 <= delay_s(attempt, random.Random(seed)) <= min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1))
    )


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (401, "invalid_api_key", "put a valid key into it"),
        (403, "", "choose another model or key"),
        (404, "model_not_found", "check the model's name"),
        (429, "insufficient_quota", "no credit left"),
        (402, "", "no credit left"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_not_asked_twice(
    key_in_environment: str, status: int, code: str, words: str
) -> None:
    fault = Fault("status", status, message="No.", code=code)
    with StubServer(faults=[fault]) as stub:
        with pytest.raises(ModelUnavailableError, match=words):
            ask(chat_with(endpoint(stub, key_env="WINNOW_KEY_STUB")))
        assert stub.stats()["calls"] == 1


def test_an_over_long_prompt_fails_alone_and_is_not_tried_again() -> None:
    message = "request (2031 tokens) exceeds the available context size (1024 tokens), try increasing it"
    fault = Fault("status", 400, message=message, code="exceed_context_size_error")
    with StubServer(faults=[fault]) as stub:
        replies = ask(chat_with(endpoint(stub, concurrency=1)), range(2))
        assert stub.stats()["calls"] == 2
    assert isinstance(replies[0], str)
    assert "does not fit the context" in replies[0]
    assert "2031 tokens" in replies[0]
    assert isinstance(replies[1], Completion)


def test_a_server_that_is_not_there_is_said_so_after_the_tries_and_costs_no_call() -> None:
    with StubServer() as gone:
        target = endpoint(gone, retries=2)
    time = FakeTime()
    chat = chat_with(target, time=time)
    with pytest.raises(
        ModelUnavailableError, match=r"cannot be reached at http://127\.0\.0\.1:\d+: check that"
    ):
        ask(chat)
    assert time.slept
    assert chat.line.terms.budget.spent == Usage()


def test_the_address_is_asked_for_anew_after_a_lost_connection() -> None:
    with StubServer() as new:
        with StubServer() as old:
            addresses = [
                Address(old.base_url, "key-of-the-old-server"),
                Address(new.base_url, "key-of-the-new-one"),
            ]
        asked: list[int] = []

        async def connect() -> Address:
            asked.append(1)
            return addresses[min(len(asked), 2) - 1]

        target = endpoint(name=EMBEDDED, base_url="", concurrency=4)
        assert len(texts(ask(chat_with(target, connect=connect), range(4)))) == 4
        assert {r.headers["authorization"] for r in new.requests} == {"Bearer key-of-the-new-one"}
        assert new.stats()["connections"] <= 4
    assert len(asked) == 2


def test_an_ordinary_endpoint_needs_a_base_url() -> None:
    with pytest.raises(InputError, match="no base URL"):
        chat_with(endpoint(base_url=""))


@pytest.mark.parametrize(
    ("variable", "error"), [("WINNOW_KEY_UNSET", InputError), ("AWS_SECRET_ACCESS_KEY", TrustError)]
)
def test_a_key_that_may_not_be_read_stops_before_anything_is_sent(
    key_in_environment: str, variable: str, error: type[WinnowError]
) -> None:
    with StubServer() as stub:
        with pytest.raises(error):
            ask(chat_with(endpoint(stub, key_env=variable)), range(3))
        assert stub.stats()["connections"] == 0


# -- reading replies ------------------------------------------------------------------------------


def test_an_empty_text_is_a_reply_like_any_other() -> None:
    with StubServer(faults=[Fault("empty")]) as stub:
        reply = only(ask(chat_with(endpoint(stub))))
        assert stub.stats()["calls"] == 1
    assert (reply.text, reply.finish_reason) == ("", "stop")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>",
        "[]",
        "null",
        "{}",
        '{"choices": {}}',
        '{"choices": []}',
        '{"choices": [null, 3, {}, {"message": "x"}]}',
        '{"choices": [{"message": {"content": 7}}]}',
        '{"choices": [{"message": {"content": "x"}, "index": 4}]}',
        '{"choices": [{"message": {"content": "x"}, "index": true}]}',
        '{"choices": [{"message": {"role": "assistant"}}]}',
        '{"error": {"message": "overloaded"}}',
        "[" * 100_000,
    ],
)
def test_a_body_without_a_usable_choice_is_unreadable(body: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_reply(body.encode(), 1, 10, 10)


def test_bytes_that_are_not_text_are_unreadable() -> None:
    with pytest.raises(UnreadableReplyError):
        read_reply(b'{"choices": [{"message": {"content": "\xff"}}]}', 1, 10, 10)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('{"content": null, "tool_calls": [{}]}', ""),
        ('{"content": null}', ""),
        ('{"content": null, "refusal": "I will not."}', "I will not."),
        ('{"content": "half \\ud83d pair"}', "half � pair"),
        ('{"content": "whole \\ud83d\\ude00 pair"}', "whole 😀 pair"),
    ],
)
def test_odd_messages_have_a_text_that_can_be_stored(message: str, text: str) -> None:
    body = f'{{"choices": [{{"message": {message}, "finish_reason": 3}}], "usage": {{"completion_tokens": "9"}}}}'
    choice = read_reply(body.encode(), 1, 10, 10).choices[0]
    assert (choice.text, choice.finish_reason) == (text, None)


def test_choices_are_told_apart_by_their_index_and_extra_ones_are_left_out() -> None:
    body = b'{"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}, {}]}'
    assert {i: c.text for i, c in read_reply(body, 2, 10, 10).choices.items()} == {0: "a", 1: "b"}


# -- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sends_n", [True, False])
def test_the_usage_of_all_replies_adds_up_to_what_the_server_counted(sends_n: bool) -> None:
    with StubServer() as stub:
        chat = chat_with(endpoint(stub, sends_n=sends_n, price_in=1.0, price_out=2.0))
        replies = ask(chat, range(5))
        total = sum((r.usage for r in replies if isinstance(r, Completion)), Usage())
        assert total.calls == stub.stats()["calls"]
        assert total.prompt_tokens + total.completion_tokens == stub.stats()["tokens"]
    assert total.cost_usd == pytest.approx((total.prompt_tokens + 2 * total.completion_tokens) / 1e6)
    assert chat.line.terms.budget.spent.model_dump() == pytest.approx(total.model_dump())


def test_the_prompt_of_a_request_is_counted_once() -> None:
    with StubServer() as stub:
        replies = ask(chat_with(endpoint(stub, sends_n=True)), range(3))
    usages = [(r.usage.calls, r.usage.prompt_tokens) for r in replies if isinstance(r, Completion)]
    assert usages == [(1, 5), (0, 0), (0, 0)]


def test_a_server_that_counts_only_the_first_choice_is_counted_after() -> None:
    words = {0: "one two three four", 1: "one two", 2: "one two three four five six seven eight nine"}
    with StubServer(lambda asked: words[asked.seed], usage="first") as stub:
        replies = ask(chat_with(endpoint(stub, sends_n=True)), range(3), max_tokens=8)
    counts = [r.usage.completion_tokens for r in replies if isinstance(r, Completion)]
    assert counts[0] == 4  # counted by the server
    assert counts[2] == 8  # cut by max_tokens
    assert 1 <= counts[1] <= 4  # estimated at the first one's rate


def test_a_server_that_counts_nothing_is_estimated() -> None:
    with StubServer(lambda asked: "abcdefghi", usage="none") as stub:
        reply = only(ask(chat_with(endpoint(stub))))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (6, 3)


@given(
    st.lists(
        st.builds(Choice, st.text(max_size=30), st.sampled_from(["stop", "length", None])),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 500) | st.none(),
    st.integers(1, 50),
    st.booleans(),
)
def test_token_counts_are_whole_and_keep_the_servers_sum(
    choices: list[Choice], reported: int | None, max_tokens: int, first_only: bool
) -> None:
    counts = count_tokens(choices, reported, max_tokens, first_only=first_only and len(choices) > 1)
    assert len(counts) == len(choices)
    assert all(type(c) is int and c >= 0 for c in counts)
    if reported is not None and not (first_only and len(choices) > 1):
        assert sum(counts) == reported
    elif reported is not None:
        assert counts[0] == reported


# -- cache ----------------------------------------------------------------------------------------


def test_a_cached_reply_makes_no_call_and_costs_nothing() -> None:
    ledger = MemoryLedger()
    with StubServer() as stub:
        first = ask(chat_with(endpoint(stub, sends_n=True), ledger=ledger), range(4))
        again_chat = chat_with(endpoint(stub, sends_n=True), ledger=ledger, budget=Budget(max_calls=0))
        again = ask(again_chat, range(4))
        assert stub.stats()["calls"] == 1
    assert again == [r.model_copy(update={"cached": True}) for r in first if isinstance(r, Completion)]
    assert again_chat.line.terms.budget.spent == Usage()
    assert ledger.transactions == [(4, 1)]
    assert not any(Completion.model_validate_json(text).cached for text in ledger.entries.values())


def test_only_the_replicates_that_are_not_cached_are_asked_for() -> None:
    ledger = MemoryLedger()
    with StubServer(lambda asked: str(asked.seed)) as stub:
        ask(chat_with(endpoint(stub, sends_n=True), ledger=ledger), [1, 2])
        replies = ask(chat_with(endpoint(stub, sends_n=True), ledger=ledger), range(5))
        assert stub.stats()["asked_again"] == 0
    assert texts(replies) == ["0", "1", "2", "3", "4"]
    assert [r.cached for r in replies if isinstance(r, Completion)] == [False, True, True, False, False]


def test_replies_asked_for_one_by_one_and_together_share_the_cache() -> None:
    ledger = MemoryLedger()
    with StubServer() as stub:
        ask(chat_with(endpoint(stub), ledger=ledger), range(3))
        ask(chat_with(endpoint(stub, sends_n=True), ledger=ledger), range(3))
        assert stub.stats()["calls"] == 3


def test_failures_are_not_cached() -> None:
    ledger = MemoryLedger()
    with StubServer(faults=[Fault("malformed")]) as stub:
        assert isinstance(ask(chat_with(endpoint(stub, retries=0), ledger=ledger))[0], str)
        assert ledger.entries == {}
        assert only(ask(chat_with(endpoint(stub), ledger=ledger))).text


def test_another_attempt_brings_fresh_replies() -> None:
    ledger = MemoryLedger()
    with StubServer(lambda asked: str(asked.seed)) as stub:

        async def use(chat: OpenAIChat) -> list[list[Completion | str]]:
            return [await chat.complete(QUESTION, Sampling(), [0, 1], attempt=a) for a in (0, 1, 0)]

        first, fresh, again = run(use, chat_with(endpoint(stub, sends_n=True), ledger=ledger))
        assert stub.stats()["calls"] == 2
    assert set(texts(first)).isdisjoint(texts(fresh))
    assert texts(again) == texts(first)


def test_what_came_back_is_stored_even_when_a_sibling_raises() -> None:
    ledger = MemoryLedger()
    faults = [Fault("slow"), Fault("status", 401), Fault("slow")]
    with StubServer(latency_s=0.02, faults=faults) as stub, pytest.raises(ModelUnavailableError):
        ask(chat_with(endpoint(stub, concurrency=3), ledger=ledger), range(3))
    assert len(ledger.entries) == 2


BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.7}


def key_of(target: Endpoint, body: dict[str, Any], seed: int, replicate: int, attempt: int) -> str:
    return cache_key(target, canonical_json(body), seed, replicate, attempt)


def test_a_key_is_the_hash_of_all_that_was_asked_in_canonical_form() -> None:
    facts = {"endpoint": "http://127.0.0.1:9/v1", "request": BODY, "seed": 5, "replicate": 2, "attempt": 1}
    assert key_of(endpoint(), BODY, 5, 2, 1) == content_hash(facts)


def test_every_part_of_a_call_is_in_its_key() -> None:
    keys = [
        key_of(endpoint(), BODY, 0, 0, 0),
        key_of(endpoint(base_url="http://other/v1"), BODY, 0, 0, 0),
        key_of(endpoint(), BODY | {"model": "n"}, 0, 0, 0),
        key_of(endpoint(), BODY | {"temperature": 0.8}, 0, 0, 0),
        key_of(endpoint(), BODY | {"messages": []}, 0, 0, 0),
        key_of(endpoint(), BODY | {"top_k": 4}, 0, 0, 0),
        key_of(endpoint(), BODY, 1, 0, 0),
        key_of(endpoint(), BODY, 0, 1, 0),
        key_of(endpoint(), BODY, 0, 0, 1),
    ]
    assert len(set(keys)) == len(keys)


def test_settings_that_do_not_change_a_reply_are_not_in_its_key() -> None:
    changed = endpoint(
        name="renamed", sends_n=True, retries=9, concurrency=3, timeout_s=1, price_in=5, key_env="K"
    )
    assert key_of(changed, BODY, 0, 0, 0) == key_of(endpoint(), BODY, 0, 0, 0)


def test_the_embedded_model_goes_by_its_name_wherever_it_listens() -> None:
    first = endpoint(name=EMBEDDED, base_url="")
    second = endpoint(name=EMBEDDED, base_url="http://127.0.0.1:4000/v1")
    assert key_of(first, BODY, 0, 0, 0) == key_of(second, BODY, 0, 0, 0)


# -- budget ---------------------------------------------------------------------------------------


def spend_all(stub: StubServer, budget: Budget, **changes: Any) -> tuple[int, list[str]]:
    """Ask many at once; how many got a reply, and the sentences of the refusals."""
    target = endpoint(stub, concurrency=16, price_in=10.0, price_out=20.0, **changes)

    async def use(chat: OpenAIChat) -> list[list[Completion | str] | BaseException]:
        calls = (chat.complete(QUESTION, Sampling(max_tokens=8, seed=100 * i), [0, 1]) for i in range(30))
        return await asyncio.gather(*calls, return_exceptions=True)

    results = run(use, chat_with(target, budget=budget))
    errors = [r for r in results if isinstance(r, BaseException)]
    assert all(isinstance(e, BudgetError) for e in errors), errors
    return len(results) - len(errors), [str(e) for e in errors]


@pytest.mark.parametrize("sends_n", [True, False])
@pytest.mark.parametrize(
    "rates", [{}, {"429": 0.2, "malformed": 0.1, "dropped": 0.1}], ids=["calm", "faults"]
)
def test_the_cap_on_calls_is_never_passed_however_many_run_at_once(
    sends_n: bool, rates: dict[str, float]
) -> None:
    with StubServer(latency_s=0.002, rates=rates) as stub:
        budget = Budget(max_calls=11)
        done, errors = spend_all(stub, budget, sends_n=sends_n)
        assert stub.stats()["calls"] == budget.spent.calls == 11
    assert done <= 11
    assert "cap of 11 calls" in errors[0]


@pytest.mark.parametrize("sends_n", [True, False])
@pytest.mark.parametrize("rates", [{}, {"5xx": 0.2, "truncated": 0.1}], ids=["calm", "faults"])
def test_the_cap_on_tokens_is_never_passed_however_many_run_at_once(
    sends_n: bool, rates: dict[str, float]
) -> None:
    with StubServer(latency_s=0.002, rates=rates) as stub:
        budget = Budget(max_tokens=400)
        done, errors = spend_all(stub, budget, sends_n=sends_n)
        used = stub.stats()["tokens"]
    spent = budget.spent.prompt_tokens + budget.spent.completion_tokens
    assert used <= spent <= 400
    assert done > 0
    assert "cap of 400 tokens" in errors[0]


def test_the_cap_on_money_is_never_passed_and_is_used_well() -> None:
    with StubServer(latency_s=0.002) as stub:
        budget = Budget(max_cost_usd=0.005)
        done, errors = spend_all(stub, budget, sends_n=True)
    # A request takes about 0.0002 here and 0.0016 at worst: waiting for others to settle lets more than 3 through.
    assert 10 <= done < 30
    assert budget.spent.cost_usd <= 0.005
    assert "$0.0050" in errors[0]
    assert budget.held == Usage()


def test_a_resumed_run_goes_on_with_what_it_had_spent() -> None:
    with StubServer() as stub:
        budget = Budget(max_calls=3, spent=Usage(calls=2))
        ask(chat_with(endpoint(stub), budget=budget))
        with pytest.raises(BudgetError):
            ask(chat_with(endpoint(stub), budget=budget), seed=9)
        assert stub.stats()["calls"] == 1


def test_a_call_that_was_broken_off_counts_in_full() -> None:
    async def main() -> Budget:
        budget = Budget()
        with pytest.raises(KeyError):
            async with budget.hold(Usage(calls=1, prompt_tokens=9)):
                raise KeyError
        return budget

    assert asyncio.run(main()).spent == Usage(calls=1, prompt_tokens=9)


def test_a_cancelled_call_leaves_its_slot_and_its_hold() -> None:
    with StubServer(latency_s=0.02, faults=[Fault("slow", factor=500)]) as stub:

        async def use(chat: OpenAIChat) -> list[Completion | str]:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await chat.complete(QUESTION, Sampling())
            return await chat.complete(QUESTION, Sampling())

        chat = chat_with(endpoint(stub, concurrency=1))
        assert only(run(use, chat)).text
        assert chat.line.terms.budget.held == Usage()
        assert chat.line.terms.budget.spent.calls == 2


# -- the key stays out of sight -------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        None,
        Fault("status", 401, message=f"Incorrect API key provided: {KEY}."),
        Fault("status", 403, message=f"Key {KEY[:14]} may not use it."),
        Fault("status", 404, message=f"{KEY} knows no such model"),
        Fault("status", 400, message=f"Bearer {KEY} is bad"),
        Fault("status", 500, message=f"Headers: {{'authorization': 'Bearer {KEY}'}}"),
        Fault("dropped"),
        Fault("malformed"),
    ],
    ids=lambda fault: "stub's own 401" if fault is None else f"{fault.kind}-{fault.status}",
)
def test_the_key_is_in_no_error_no_log_and_no_traceback(key_in_environment: str, fault: Fault | None) -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    seen = ""
    try:
        with StubServer(
            key=f"{KEY}-other" if fault is None else KEY, faults=[fault] if fault else []
        ) as stub:
            chat = chat_with(endpoint(stub, key_env="WINNOW_KEY_STUB", retries=0))
            try:
                seen = str(ask(chat))
            except WinnowError as e:
                seen = (
                    "".join(traceback.format_exception(e)) + repr(e) + repr(e.__context__) + repr(e.__cause__)
                )
            assert stub.requests[0].headers["authorization"].endswith(KEY)
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    shown = seen + log.getvalue() + repr(chat) + repr(vars(chat))
    assert seen
    assert log.getvalue()
    assert KEY not in shown
    assert KEY[:14] not in shown
    assert KEY[-8:] not in shown


def test_a_server_that_repeats_the_key_does_not_bring_it_into_the_cache(key_in_environment: str) -> None:
    ledger = MemoryLedger()
    with StubServer(lambda asked: f"Your key is {KEY}.", key=KEY) as stub:
        reply = only(ask(chat_with(endpoint(stub, key_env="WINNOW_KEY_STUB"), ledger=ledger)))
    assert reply.text == "Your key is [key]."
    assert KEY not in str(ledger.entries)


# -- probe ----------------------------------------------------------------------------------------


def test_a_probe_tells_what_an_endpoint_can_do() -> None:
    with StubServer(lambda asked: f"Town number {asked.seed}", latency_s=0.001) as stub:
        found = asyncio.run(probe(endpoint(stub)))
    assert (found.reachable, found.answered, found.problem) == (True, True, "")
    assert (found.sends_n, found.sends_seed, found.json_schema) == (True, True, True)
    assert found.latency_s is not None
    assert found.latency_s >= 0.001


def test_a_probe_tells_what_an_endpoint_cannot_do() -> None:
    draws = random.Random(3)
    with StubServer(lambda asked: str({"town": draws.random()}), ignores_n=True) as stub:
        stub.reply = lambda asked: f'["{draws.random()}"]'
        found = asyncio.run(probe(endpoint(stub)))
    assert (found.sends_n, found.sends_seed, found.json_schema) == (False, False, False)


def test_a_probe_says_in_one_sentence_why_an_endpoint_cannot_be_used(key_in_environment: str) -> None:
    with StubServer(key="another-key", model="stub-model") as stub:
        refused = asyncio.run(probe(endpoint(stub, key_env="WINNOW_KEY_STUB")))
        unset = asyncio.run(probe(endpoint(stub, key_env="WINNOW_KEY_UNSET")))
        stub.key = None
        unknown = asyncio.run(probe(endpoint(stub, model="nobody")))
    gone = asyncio.run(probe(endpoint(stub, retries=0)))
    assert [p.reachable for p in (refused, unset, unknown, gone)] == [True, False, True, False]
    for found, words in [(refused, "401"), (unset, "not set"), (unknown, "404"), (gone, "cannot be reached")]:
        assert words in found.problem
        assert not found.answered
        assert found.problem.endswith(".")


# -- the stub and the import ----------------------------------------------------------------------


def test_under_seeded_faults_every_reply_arrives_and_is_the_undisturbed_one() -> None:
    rates = {
        "429": 0.2,
        "5xx": 0.1,
        "malformed": 0.05,
        "truncated": 0.05,
        "dropped": 0.05,
        "wrong_types": 0.05,
    }
    with StubServer() as calm, StubServer(rates=rates, seed=4) as rough:
        expected = texts(ask(chat_with(endpoint(calm)), range(40)))
        assert texts(ask(chat_with(endpoint(rough, retries=10)), range(40))) == expected
        assert sum(rough.stats()["faults"].values()) > 10
        assert rough.stats()["answered_again"] == 0


def test_the_stub_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    command = [sys.executable, "-m", "tests.stub_server", "--port-file", str(port_file), "--for-s", "60"]
    child = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        port = _wait_for(port_file, child)
        url = f"http://127.0.0.1:{port}/v1"
        assert only(ask(chat_with(endpoint(base_url=url)))).text
        assert _stats(port)["calls"] == 1
    finally:
        child.terminate()
        child.wait(10)


def _wait_for(port_file: Path, child: subprocess.Popen[bytes]) -> int:
    while not port_file.exists():
        assert child.poll() is None, "the stub ended early"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.02)
    return int(port_file.read_text())


def _stats(port: int) -> dict[str, Any]:
    import http.client
    import json

    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/stub/stats")
        result: dict[str, Any] = json.loads(connection.getresponse().read())
        return result


@pytest.fixture(scope="module")
def modules_after_import() -> set[str]:
    code = "import sys, core.llm, core.trust; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(output.stdout.split())


@pytest.mark.parametrize("heavy", ["openai", "aiohttp", "httpx", "httpx2", "numpy", "sqlite3"])
def test_importing_model_access_is_light(modules_after_import: set[str], heavy: str) -> None:
    assert "core.llm" in modules_after_import
    assert heavy not in modules_after_import
