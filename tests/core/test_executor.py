"""Work in this process: bounded, in the order of its ending, and what is under way comes home."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.executor import LocalExecutor


async def _all(executor: LocalExecutor, work, items, at_once: int) -> list[object]:
    return [result async for result in executor.stream(work, items, at_once=at_once)]


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_every_item_is_worked_on_once_and_never_more_than_so_many_at_once(
    waits: list[int], at_once: int
) -> None:
    now = most = 0

    async def work(item: tuple[int, int]) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(item[1]):
            await asyncio.sleep(0)
        now -= 1
        return item[0]

    found = asyncio.run(_all(LocalExecutor(), work, list(enumerate(waits)), at_once))
    assert sorted(found) == list(range(len(waits)))
    assert most <= at_once


def test_items_are_taken_only_as_room_becomes_free() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(100):
            taken.append(i)
            yield i

    async def work(item: int) -> int:
        await asyncio.sleep(0)
        return item

    async def first_of_many() -> int:
        stream = LocalExecutor().stream(work, items(), at_once=4)
        async for _ in stream:
            await stream.aclose()
            return len(taken)
        raise AssertionError

    assert asyncio.run(first_of_many()) <= 8


def test_after_an_error_nothing_new_starts_and_what_is_under_way_comes_home() -> None:
    ended: list[int] = []
    got: list[int] = []

    async def work(item: int) -> int:
        if item == 1:
            raise ValueError("no")
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(item)
        return item

    async def listen() -> None:
        async for result in LocalExecutor().stream(work, range(100), at_once=4):
            got.append(result)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(listen())
    assert sorted(ended) == sorted(got) == [0, 2, 3]


def test_whoever_is_cancelled_cancels_what_is_under_way() -> None:
    cancelled: list[int] = []

    async def work(item: int) -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    async def main() -> None:
        listening = asyncio.create_task(_all(LocalExecutor(), work, range(10), 3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening

    asyncio.run(main())
    assert sorted(cancelled) == [0, 1, 2]


def test_a_function_that_blocks_does_not_hold_up_the_loop() -> None:
    opened = threading.Event()

    async def main() -> str:
        executor = LocalExecutor()
        blocked = asyncio.create_task(executor.call(opened.wait, 10))
        await asyncio.sleep(0)
        opened.set()  # would never be reached if the loop waited
        try:
            return "free" if await blocked else "held up"
        finally:
            executor.close()

    assert asyncio.run(main()) == "free"
