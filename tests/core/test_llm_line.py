"""What all requests of a run to one endpoint share, against the stub; the clock is the test's own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BudgetError, ModelUnavailableError, StoppedError
from core.llm import Access, Budget, Entry, Kept
from core.llm.breaker import FAILURES
from core.llm.pace import WINDOW_S, CoolDown, Pace
from core.llm.retry import FIRST_DELAY_S, LONGEST_DELAY_S
from core.ports import Completion, Sampling, Wish
from core.rollout import Usage
from tests.core.test_llm import QUESTION, FakeTime, MemoryLedger, access_to, endpoint, texts
from tests.loop_time import loop_time
from tests.stub_server import Asked, Fault, Received, StubServer

SHORT = Sampling(max_tokens=8)


async def one(access: Access, seed: int = 0, stage: str = "rollout") -> Completion | str:
    (reply,) = await access.chat("stub", stage).complete(QUESTION, Sampling(max_tokens=8, seed=seed))
    return reply


async def many(access: Access, count: int) -> list[Completion | str]:
    return list(await asyncio.gather(*(one(access, seed) for seed in range(count))))


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What is loaded with the first request takes its time, which counts against that of a reply."""

    async def main(access: Access) -> None:
        async with access:
            await one(access)

    with StubServer() as stub:
        asyncio.run(main(access_to(endpoint(stub))))


@dataclass
class Person:
    """Somebody who may wish something of the work."""

    wish: Wish = "go"

    def __call__(self) -> Wish:
        return self.wish


# -- one line for each endpoint ----------------------------------------------------------------------


def test_all_stages_share_the_connections_of_an_endpoint() -> None:
    async def main(access: Access) -> None:
        async with access:
            await asyncio.gather(*(one(access, i, ("rollout", "judge")[i % 2]) for i in range(20)))

    with StubServer(latency_s=0.005) as stub:
        asyncio.run(main(access_to(endpoint(stub, concurrency=3))))
        deadline = time.monotonic() + 10
        while stub.stats()["open_connections"] and time.monotonic() < deadline:
            time.sleep(0.01)  # the server hears a little later that they are closed
        stats = stub.stats()
    assert (stats["in_flight_max"], stats["connections"], stats["open_connections"]) == (3, 3, 0)


# -- limits of a minute ------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(0, 50), st.integers(0, 900), st.integers(0, 900)), max_size=20),
    st.integers(1, 6),
    st.integers(300, 2000),
)
def test_no_sixty_seconds_hold_more_than_the_limits(
    asked: list[tuple[float, int, int]], requests: int, tokens: int
) -> None:
    time = FakeTime()
    pace = Pace(endpoint(requests_per_minute=requests, tokens_per_minute=tokens), time.clock)
    sent: list[tuple[float, int]] = []
    for pause, guess, real in asked:
        time.now += pause
        while (wait := pace.wait_s(guess)) > 0:
            time.now += max(wait, 0.001)
        pace.correct(pace.enter(guess), min(guess, real))
        sent.append((time.now, min(guess, real)))
        window = [n for at, n in sent if at + WINDOW_S > time.now]
        assert len(window) <= requests
        assert sum(window) <= tokens or len(window) == 1


def test_requests_wait_for_their_minute_and_all_of_them_arrive() -> None:
    time = FakeTime()
    arrived: list[float] = []

    def noted(asked: Asked) -> str:
        arrived.append(time.now)
        return "42"

    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return await many(access, 12)

    with StubServer(noted) as stub:
        replies = asyncio.run(
            main(access_to(endpoint(stub, concurrency=1, requests_per_minute=5), time=time))
        )
    assert texts(replies) == ["42"] * 12
    arrived.sort()
    assert all(
        later - earlier >= WINDOW_S - 1e-6 for earlier, later in zip(arrived, arrived[5:], strict=False)
    )


def test_tokens_that_were_reserved_and_not_used_are_free_again() -> None:
    async def main(access: Access) -> None:
        async with access:
            for seed in range(10):
                asking = Sampling(max_tokens=400, seed=seed)
                await access.chat("stub", "rollout").complete(QUESTION, asking)

    time = FakeTime()
    with StubServer() as stub:
        asyncio.run(main(access_to(endpoint(stub, tokens_per_minute=1000), time=time)))
    assert time.slept == []  # 10 x 400 are far more than a minute's, but a reply took some ten


def test_a_request_that_is_larger_than_a_minute_goes_alone() -> None:
    pace = Pace(endpoint(tokens_per_minute=100), FakeTime().clock)
    assert pace.wait_s(5000) == 0
    pace.enter(5000)
    assert pace.wait_s(1) == WINDOW_S


# -- backing off together ----------------------------------------------------------------------------


def test_when_one_is_told_to_come_back_later_nobody_else_asks_before() -> None:
    time = FakeTime()
    told_at = 0.0
    arrived: list[float] = []

    def noted(asked: Asked) -> str:
        arrived.append(time.now)
        return "42"

    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return await many(access, 9)

    faults = [Fault("status", 429, {"Retry-After": "30"}), *[Fault("slow", factor=8)] * 3]
    with StubServer(noted, latency_s=0.02, faults=faults) as stub:
        told_at = time.now
        replies = asyncio.run(main(access_to(endpoint(stub, concurrency=4), time=time)))
        assert stub.stats()["calls"] == 10
    assert texts(replies) == ["42"] * 9
    later = sorted(arrived)[3:]  # the three that were under way were answered
    assert min(later) >= told_at + 30


def test_those_who_were_turned_away_together_come_back_one_by_one() -> None:
    def slept(seed: int) -> float:
        time = FakeTime()

        async def main(access: Access) -> None:
            async with access:
                await one(access)

        with StubServer(faults=[Fault("status", 503, {"Retry-After": "5"})]) as stub:
            asyncio.run(main(access_to(endpoint(stub), time=time, rng=random.Random(seed))))
        return sum(time.slept)

    waits = [slept(seed) for seed in range(4)]
    assert len({round(wait, 6) for wait in waits}) == 4
    assert all(5 <= wait <= 5 + FIRST_DELAY_S for wait in waits)


def test_without_a_named_time_one_that_is_turned_away_waits_alone_and_a_second_wave_makes_all_wait() -> None:
    time = FakeTime()
    rest = CoolDown(time.clock)
    rest.crowded(sent_at=time.now - 1)
    assert rest.left_s() <= 0
    time.now += 1
    rest.crowded(sent_at=time.now - 1.5)  # had been sent before the first was turned away
    assert rest.left_s() <= 0
    lasted = []
    for _ in range(9):
        rest.crowded(sent_at=time.now)
        lasted.append(rest.left_s())
        time.now += lasted[-1]
    assert lasted[:3] == pytest.approx([FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S])
    assert lasted[-1] == pytest.approx(LONGEST_DELAY_S)
    rest.answered()
    rest.crowded(sent_at=time.now)
    assert rest.left_s() <= 0


# -- time-outs ---------------------------------------------------------------------------------------


def test_replies_that_take_too_long_are_a_sentence_and_their_siblings_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = loop_time(monkeypatch)

    async def main(access: Access, stub: StubServer) -> list[Completion | str]:
        # of two places the first one is held by a slow reply: who asks as the fourth comes after two were given
        stub.requests = _Telling(_once(stub, 4, lambda: time.set_forward(90)))
        async with access:
            chat = access.chat("stub", "rollout")
            return await chat.complete(QUESTION, SHORT, range(4), timeout_s=90)

    ledger, slow = MemoryLedger(), Fault("slow", factor=10_000)
    with StubServer(latency_s=0.02, faults=[slow, None, None, slow]) as stub:
        access = access_to(endpoint(stub, concurrency=2, timeout_s=500), ledger=ledger)
        replies = asyncio.run(main(access, stub))
    late = [r for r in replies if isinstance(r, str)]
    assert late == ["Endpoint stub gave no reply within 90 seconds, retries and waits included."] * 2
    assert len(ledger.entries) == 2
    assert ledger.total.calls == 4  # they were sent, and may have to be paid


def test_retries_and_waits_count_against_the_time_of_a_reply() -> None:
    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return await access.chat("stub", "rollout").complete(QUESTION, SHORT, timeout_s=0.2)

    with StubServer(faults=[Fault("status", 429, {"Retry-After": "60"})]) as stub:
        terms = {"sleep": asyncio.sleep, "clock": asyncio.new_event_loop().time}
        (reply,) = asyncio.run(main(access_to(endpoint(stub), **terms)))
        assert stub.stats()["calls"] == 1
    assert isinstance(reply, str)
    assert "0.2 seconds" in reply


def test_what_had_come_of_a_group_before_its_time_was_up_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    time = loop_time(monkeypatch)

    async def main(access: Access, stub: StubServer) -> list[Completion | str]:
        # the second one is for what was missing in the reply to the first one
        stub.requests = _Telling(_once(stub, 2, lambda: time.set_forward(90)))
        async with access:
            chat = access.chat("stub", "rollout")
            return await chat.complete(QUESTION, SHORT, range(3), timeout_s=90)

    faults = [Fault("partial", keep=(1,)), *[Fault("slow", factor=10_000)] * 2]
    with StubServer(lambda asked: str(asked.seed), latency_s=0.02, faults=faults) as stub:
        access = access_to(endpoint(stub, sends_n=True, timeout_s=500))
        replies = asyncio.run(main(access, stub))
    assert texts(replies[1:2]) == ["1"]
    assert [type(r) for r in replies] == [str, Completion, str]


# -- wishes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", ["pause", "now"])
def test_nothing_is_sent_once_somebody_wants_the_work_to_stop(wish: Wish) -> None:
    person = Person()

    async def main(access: Access) -> Completion | str:
        async with access:
            await one(access)
            person.wish = wish
            with pytest.raises(StoppedError, match="paused"):
                await one(access, seed=9)
            return await one(access)

    with StubServer() as stub:
        again = asyncio.run(main(access_to(endpoint(stub), ledger=MemoryLedger(), wishes=person)))
        assert stub.stats()["calls"] == 1
    assert isinstance(again, Completion)
    assert again.cached  # what was paid for is still given


def test_a_failed_request_is_not_made_again_once_the_work_pauses() -> None:
    person = Person()

    class PausingTime(FakeTime):
        async def sleep(self, seconds: float) -> None:
            person.wish = "pause"
            await super().sleep(seconds)

    async def main(access: Access) -> None:
        async with access:
            await one(access)

    with StubServer(faults=[Fault("status", 429, {"Retry-After": "100"})]) as stub:
        time = PausingTime()
        with pytest.raises(StoppedError):
            asyncio.run(main(access_to(endpoint(stub), time=time, wishes=person)))
        assert stub.stats()["calls"] == 1
    assert sum(time.slept) < 1  # nobody who pauses waits for the server's 100 seconds


class _Telling(list[Received]):
    """Tells of each request that arrives."""

    def __init__(self, tell: Callable[[], object]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, received: Received) -> None:
        super().append(received)
        self._tell()


def _once(stub: StubServer, count: int, do: Callable[[], object]) -> Callable[[], object]:
    """What does something in the loop that runs now, when so many requests have arrived."""
    loop = asyncio.get_running_loop()
    return lambda: loop.call_soon_threadsafe(do) if len(stub.requests) == count else None


def drop(person: Person, wish: Wish, ledger: MemoryLedger) -> StubServer:
    """Cancel whoever waits for a reply that is under way, after this wish."""

    async def main(access: Access, stub: StubServer) -> None:
        arrived, loop = asyncio.Event(), asyncio.get_running_loop()
        stub.requests = _Telling(lambda: loop.call_soon_threadsafe(arrived.set))
        async with access:
            asking = asyncio.create_task(one(access))
            await arrived.wait()
            person.wish = wish
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    with StubServer(latency_s=0.2) as stub:
        asyncio.run(main(access_to(endpoint(stub), ledger=ledger, wishes=person), stub))
    return stub


def test_what_is_under_way_when_the_work_pauses_comes_home_and_is_stored() -> None:
    ledger = MemoryLedger()
    stub = drop(Person(), "pause", ledger)
    assert stub.stats()["answered"] == len(ledger.entries) == ledger.total.calls == 1
    assert ledger.total.prompt_tokens == 5  # as the server counted, not the most that was possible


def test_what_is_dropped_at_once_is_booked_at_its_worst() -> None:
    ledger = MemoryLedger()
    drop(Person(), "now", ledger)
    assert ledger.entries == {}
    assert (ledger.total.calls, ledger.total.completion_tokens) == (1, 8)
    assert ledger.total.prompt_tokens > 5


# -- the circuit breaker -----------------------------------------------------------------------------


def test_an_endpoint_that_fails_and_fails_is_not_asked_any_more() -> None:
    async def main(access: Access) -> list[Completion | str]:
        async with access:
            failed = [await one(access, seed) for seed in range(FAILURES)]
            with pytest.raises(
                ModelUnavailableError,
                match=r"Endpoint stub failed 8 times in a row.*The last time: .*\(503\)",
            ) as e:
                await one(access, FAILURES)
            assert "\n" not in str(e.value)
            return failed

    with StubServer(faults=[Fault("status", 503)] * 30) as stub:
        failed = asyncio.run(main(access_to(endpoint(stub, retries=1))))
        assert stub.stats()["calls"] == 2 * FAILURES
    assert all(isinstance(reply, str) for reply in failed)


@pytest.mark.parametrize("kind", ["malformed", "dropped", "wrong_types"])
def test_every_fault_of_the_endpoint_counts(kind: str) -> None:
    async def main(access: Access) -> None:
        async with access:
            for seed in range(FAILURES + 1):
                await one(access, seed)

    with StubServer(faults=[Fault(kind)] * 30) as stub, pytest.raises(ModelUnavailableError):  # type: ignore[arg-type]
        asyncio.run(main(access_to(endpoint(stub, retries=0))))


def test_one_success_starts_the_count_anew_and_refused_prompts_do_not_count() -> None:
    down, refused = Fault("status", 500), Fault("status", 422)
    faults = [*[down] * (FAILURES - 1), None, *[down] * (FAILURES - 1), *[refused] * 20, None]

    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return [await one(access, seed) for seed in range(len(faults))]

    with StubServer(faults=faults) as stub:
        replies = asyncio.run(main(access_to(endpoint(stub, retries=0))))
    assert sum(isinstance(reply, Completion) for reply in replies) == 2


def test_random_faults_of_nearly_a_half_do_not_trip_it() -> None:
    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return await many(access, 200)

    with StubServer(rates={"5xx": 0.15, "malformed": 0.15, "dropped": 0.15}, seed=2) as stub:
        replies = asyncio.run(main(access_to(endpoint(stub, concurrency=16))))
    assert sum(isinstance(reply, Completion) for reply in replies) > 180


# -- the ledger --------------------------------------------------------------------------------------


def test_every_request_that_was_sent_is_booked_and_the_sums_agree() -> None:
    async def main(access: Access) -> None:
        async with access:
            await asyncio.gather(many(access, 40), one(access, 77, "judge"))

    ledger, budget = MemoryLedger(), Budget()
    with StubServer(rates={"429": 0.2, "5xx": 0.1, "malformed": 0.1, "dropped": 0.1}, seed=5) as stub:
        target = endpoint(stub, price_in=1.0, price_out=2.0)
        asyncio.run(main(access_to(target, ledger=ledger, budget=budget, run_id="R7")))
        assert ledger.total.calls == stub.stats()["calls"] > 45
        assert ledger.total.prompt_tokens + ledger.total.completion_tokens >= stub.stats()["tokens"]
    assert ledger.total.model_dump() == pytest.approx(budget.spent.model_dump())
    assert {(e.run_id, e.endpoint) for e in ledger.sent} == {("R7", "stub")}
    assert {e.stage for e in ledger.sent} == {"rollout", "judge"}


def test_what_never_left_this_machine_is_not_booked() -> None:
    async def main(access: Access) -> None:
        async with access:
            await one(access)

    ledger = MemoryLedger()
    with StubServer() as gone:
        target = endpoint(gone, retries=1)
    with pytest.raises(ModelUnavailableError):
        asyncio.run(main(access_to(target, ledger=ledger)))
    with StubServer() as stub, pytest.raises(BudgetError):
        asyncio.run(main(access_to(endpoint(stub), ledger=ledger, budget=Budget(max_calls=0))))
    assert ledger.sent == []


def test_replies_that_come_together_are_stored_in_one_transaction() -> None:
    async def main(access: Access) -> None:
        async with access:
            await many(access, 200)

    ledger = MemoryLedger()
    with StubServer(latency_s=0.05) as stub:
        asyncio.run(main(access_to(endpoint(stub, concurrency=100), ledger=ledger)))
    assert len(ledger.entries) == len(ledger.sent) == 200
    assert len(ledger.transactions) < 150


def test_a_reply_that_could_not_be_stored_is_not_given() -> None:
    class FullDisk(MemoryLedger):
        def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
            raise OSError("no space left")

    async def main(access: Access) -> None:
        async with access:
            await one(access)

    with StubServer() as stub, pytest.raises(OSError, match="no space left"):
        asyncio.run(main(access_to(endpoint(stub), ledger=FullDisk())))


def test_a_resumed_run_is_held_to_what_the_ledger_says_it_had_spent() -> None:
    async def main(access: Access) -> list[Completion | str]:
        async with access:
            return await many(access, 3)

    ledger = MemoryLedger()
    with StubServer() as stub:
        asyncio.run(main(access_to(endpoint(stub), ledger=ledger, budget=Budget(max_calls=3))))
        ledger.entries.clear()
        again = access_to(endpoint(stub), ledger=ledger, budget=Budget(max_calls=3, spent=ledger.total))
        with pytest.raises(BudgetError):
            asyncio.run(main(again))
        assert stub.stats()["calls"] == 3
    assert ledger.total == sum((e.usage for e in ledger.sent), Usage())
