"""A run steered in a real browser: paused, resumed, left alone, killed, and discarded at last. Nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.settings import Endpoint, RunConfig
from core.workspace import Workspace
from tests.browser import PATIENCE_S, drawn, press, serve, visit
from tests.make import add_tasks, make_tasks
from tests.stub_process import stats, stub_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TASKS, SIZE = 30, 4
CALLS = TASKS * SIZE
AT_ONCE = 4


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with stub_process(tmp_path_factory.mktemp("stub"), latency_ms=500) as address:
        yield address


@pytest.fixture
def ws(tmp_path: Path, stub: str) -> Iterator[Workspace]:
    ws = Workspace(tmp_path / "workspace")
    add_tasks(ws, make_tasks(TASKS))
    ws.models.save(Endpoint(name="stub", base_url=stub, model="stub-model", concurrency=AT_ONCE), "ann")
    ws.models.set_role("rollout", "stub", "ann")
    yield ws
    if pid := worker(ws):  # the worker outlives the app: that is what it is for
        os.kill(pid, signal.SIGKILL)


def worker(ws: Workspace) -> int:
    """Process id of who holds the newest job; 0 where nobody does."""
    job = next(iter(ws.jobs.newest(1)), None)
    return int(job.worker.split()[-2]) if job and job.worker else 0


def until(so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.05)


def state(page: Page, text: str) -> None:
    """Wait until the chip of the run says so."""
    page.locator(".w-chip", has_text=text).first.wait_for(timeout=PATIENCE_S * 1000)


def start(page: Page, base: str) -> None:
    visit(page, f"{base}/new-run", f"Start: at most {TASKS * 8} calls")
    box = page.get_by_role("spinbutton", name="Rollouts a task")
    box.fill(str(SIZE))
    box.press("Enter")
    drawn(page, f"Start: at most {CALLS} calls")
    press(page, "run_start")
    state(page, "running")


def test_a_run_is_paused_resumed_and_discarded_by_mouse(browser: Browser, ws: Workspace, stub: str) -> None:
    with serve(ws.folder) as base:
        page = browser.new_page()
        start(page, base)
        press(page, "run_pause")
        state(page, "paused")
        assert ws.jobs.find("R1").state == "paused"
        assert stats(stub)["in_flight"] == 0, "what was in flight came home first"
        press(page, "run_resume")
        state(page, "running")
        page.get_by_role("button", name="Cancel").click()
        page.locator(".st-key-run_discard_sure label").click(timeout=PATIENCE_S * 1000)
        page.locator(".st-key-run_cancel_discard button:not([disabled])").click(timeout=PATIENCE_S * 1000)
        state(page, "cancelled")
        drawn(page, "0 of 0 groups finished")
        page.close()
    assert ws.store.groups.count_rollouts() == 0
    assert [e.kind for e in ws.store.events.newest(2)] == ["run.discarded", "job.cancelled"]


def test_closing_the_tab_in_the_middle_of_a_run_stops_nothing(browser: Browser, ws: Workspace) -> None:
    with serve(ws.folder) as base:
        page = browser.new_page()
        start(page, base)
        address = page.url
        page.close()
        seen = ws.store.runs.brief("R1").tally.waiting
        until(lambda: ws.store.runs.brief("R1").tally.waiting < seen, "it went on without a tab")
        page = browser.new_page()
        visit(page, address, "groups finished")
        state(page, "done")
        drawn(page, f"{TASKS} of {TASKS} groups finished")
        page.close()
    run = ws.store.runs.get("R1")
    assert (run.status, run.tally.waiting, run.spent.calls) == ("done", 0, CALLS)


def test_a_run_that_stands_still_is_not_looked_at_again(browser: Browser, ws: Workspace) -> None:
    run = ws.learning.start(RunConfig(endpoint="stub"), "ann")
    ws.jobs.enqueue(run.id, "ann")
    ws.jobs.pause(run.id, "ann")
    with serve(ws.folder) as base:
        page = browser.new_page()
        frames: list[object] = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda f: frames.append(f)))
        visit(page, f"{base}/run?id={run.id}", "groups finished")
        state(page, "paused")
        page.wait_for_timeout(1_000)  # whatever the first drawing brings
        frames.clear()
        page.wait_for_timeout(5_000)  # two looks would fall into this
        assert frames == []
        page.close()


def test_a_killed_worker_and_a_restarted_app_lose_nothing_and_the_page_says_what_happened(
    browser: Browser, ws: Workspace
) -> None:
    with serve(ws.folder) as base:
        page = browser.new_page()
        start(page, base)
        until(lambda: ws.store.runs.brief("R1").tally.waiting < TASKS, "a group was finished")
        killed = worker(ws)
        page.close()
    os.kill(
        killed, signal.SIGKILL
    )  # the app is gone, too: nobody is left who knows of the run but the database
    finished = TASKS - ws.store.runs.brief("R1").tally.waiting
    assert 0 < finished < TASKS
    with serve(ws.folder) as base:
        page = browser.new_page()
        visit(page, f"{base}/run?id=R1", "groups finished")
        drawn(page, "The worker stopped.")
        drawn(page, "Another one took over; what was finished is kept.")
        assert worker(ws) != killed
        state(page, "done")
        drawn(page, f"{TASKS} of {TASKS} groups finished")
        page.close()
    run = ws.store.runs.get("R1")
    assert (run.status, run.tally.total, run.tally.waiting) == ("done", TASKS, 0)
    assert ws.store.groups.count_rollouts() == CALLS
    assert CALLS <= run.spent.calls <= CALLS + AT_ONCE, "at most what was in flight was asked again"
