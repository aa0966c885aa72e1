"""One rollout in Chromium: keys, deep links, what a 20 MB output costs, and hostile text that reaches nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.rollout import Group, Message, Step, Trajectory
from core.settings import RewardConfig, RunConfig
from core.settling import settle
from core.workspace import Workspace
from tests.browser import acting, browsing, drawn, press, serve, shown, visit
from tests.listener import Listener
from tests.pages.test_rollout import traced
from tests.pages.workspaces import rollout, tasks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

MEGABYTE = 1_000_000


def hostile(base: str) -> str:
    """Every way of acting that we know, and what hides or turns around what is read."""
    return "\n".join(
        (
            f"<script>fetch('{base}/script')</script><script src={base}/src></script>",
            f'<img src="{base}/img" onerror="fetch(`{base}/onerror`)"><svg onload="fetch(`{base}/svg`)">',
            f'<form action="{base}/form"><button autofocus>go</button></form><input autofocus onfocus=alert(1)>',
            f"<style>@import url({base}/css); body {{ background: url({base}/bg) }} .stApp {{ display: none }}</style>",
            f'<iframe src="{base}/frame"></iframe><link rel=stylesheet href="{base}/link"><base href="{base}/">',
            f"![alt]({base}/markdown) [link]({base}/a) {base}/bare **bold** `code` :red[x] -> >= -- $x^2$ $$y$$",
            "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link \u202etxt.exe\u202c zero\u200bwidth \ttab",
            "</div></div><div class='w-error'>a fake error</div> &lt;b&gt; &amp;amp; {text} %s \\u0041 é 👍🏽 ﷽",
        )
    )


def add_hostile(ws: Workspace, text: str) -> str:
    """R5: one rollout whose every text is hostile."""
    [task] = [t for t in tasks() if t.split == "train"][:1]
    run_id = ws.store.runs.create(
        RunConfig(group_size=2),
        [task],
        [0],
        request="hostile",
        kind="recorded",
        library_version=1,
        model=text[:80],
        note=text,
        actor="ann",
    )
    [place] = ws.store.groups.waiting(run_id)
    steps = (
        Step(tool=text[:200], parameters={text[:100]: text}, output=text, success=True),
        Step(tool="fail", parameters={"x": [text]}, success=False, error=text),
        Step(tool="line", output=text.replace("\n", " ") + "x" * MEGABYTE, success=None),
    )
    trajectory = Trajectory(
        steps=steps, messages=(Message(role="user", content=text),), answer=text, finish_reason="stop"
    )
    made = rollout(
        place.id, task, 0, 0.5, trajectory=trajectory, summary=text, semantic=text, model=text[:80]
    )
    group = Group(id=place.id, run_id=run_id, task_id=task.id, library_version=1, rollouts=(made,))
    ws.store.groups.save(settle(group, RewardConfig()))
    return made.id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str, Workspace, Listener]]:
    folder = tmp_path_factory.mktemp("traced_site") / "workspace"
    ws, listener = traced(folder), Listener()
    add_hostile(ws, hostile(listener.url))
    with browsing() as browser, serve(folder) as base:
        yield browser, base, ws, listener
    listener.close()


def fresh(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True).new_page()


def at(page: Page, number: int) -> None:
    """Wait until a step is the one that is looked at."""
    page.locator(".w-at .n", has_text=f"{number}").first.wait_for(timeout=30_000)
    page.wait_for_function(f"document.querySelector('.w-at .n').textContent === '{number}'", timeout=30_000)
    drawn(page, "Call")


def test_keys_go_through_steps_and_errors_and_not_while_one_types(
    site: tuple[Browser, str, Workspace, Listener],
) -> None:
    browser, base, _, _ = site
    page = fresh(browser)
    visit(page, f"{base}/rollout?id=R4-0001-0", "8 · 4 failed")
    for key, number in (("j", 2), ("e", 3), ("e", 5), ("k", 4), ("j", 5)):
        page.keyboard.press(key)
        at(page, number)
    assert "step=5" in page.url
    page.locator(".st-key-trace_find input").click()
    page.keyboard.type("jek")
    page.keyboard.press("Enter")
    drawn(page, "No match.")
    at(page, 5)
    page.reload()
    drawn(page, "No match.")
    at(page, 5)


def test_the_address_leads_to_the_step_and_n_to_the_next_rollout(
    site: tuple[Browser, str, Workspace, Listener],
) -> None:
    browser, base, _, _ = site
    page = fresh(browser)
    visit(page, f"{base}/rollout?id=R4-0001-0&step=6&trace_which=recovered", "8 · 4 failed")
    at(page, 6)
    assert page.locator(".w-line").count() == 3  # two retries are folded
    press(page, "open_step_5")
    at(page, 5)
    page.keyboard.press("n")
    drawn(page, "R4-0001 #1")
    assert "id=R4-0001-1" in page.url
    assert "trace_which=recovered" in page.url
    page.go_back()
    drawn(page, "R4-0001 #0")
    at(page, 5)


def test_a_correction_is_written_by_keyboard_alone(site: tuple[Browser, str, Workspace, Listener]) -> None:
    browser, base, ws, _ = site
    page = fresh(browser)
    visit(page, f"{base}/rollout?id=R4-0001-0&step=5", "8 · 4 failed")
    page.keyboard.press("x")
    drawn(page, "Rejected.")
    page.keyboard.press("w")
    page.locator(".st-key-trace_correction textarea").wait_for()
    page.locator(".st-key-trace_correction textarea").focus()
    page.keyboard.type("Ask for the exchange rate once, and search for it when the service is down.")
    page.keyboard.press("Control+Enter")
    drawn(page, "waits for review.")
    [made] = ws.correcting.of("R4-0001-0")
    assert made.evidence.steps == {"R4-0001-0": 5}
    assert ws.store.trajectories.head("R4-0001-0").accepted is False


def test_twenty_megabytes_stay_on_the_server_until_the_file_is_asked_for(
    site: tuple[Browser, str, Workspace, Listener],
) -> None:
    browser, base, ws, _ = site
    stored = ws.store.trajectories.get("R4-0001-2").steps[0].output
    page, received = fresh(browser), [0]

    def count(payload: str | bytes) -> None:
        received[0] += len(payload)

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    visit(page, f"{base}/rollout?id=R4-0001-2", "characters are not shown here")
    assert received[0] < MEGABYTE
    press(page, "more_R4-0001-2_1")
    drawn(page, "20,476,000 of 20,500,000")
    assert [stored[:20_000], stored[-4_000:]] == [text for text in shown(page) if len(text) > 1_000]
    assert received[0] < MEGABYTE
    with page.expect_download() as waiting:
        press(page, "file_R4-0001-2_1")
    assert Path(waiting.value.path()).read_text("utf-8") == stored
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_reaches_nobody_and_reads_as_it_is_stored(
    site: tuple[Browser, str, Workspace, Listener],
) -> None:
    browser, base, ws, listener = site
    stored = ws.store.trajectories.get("R5-0001-0")
    page, strangers = fresh(browser), list[str]()
    page.on(
        "request", lambda r: None if r.url.startswith((base, "data:", "blob:")) else strangers.append(r.url)
    )
    page.on("dialog", lambda d: strangers.append(d.message))
    line = stored.steps[2].output
    places = (
        (f"{base}/rollout?id=R5-0001-0&trace_find=%3Cscript%3E", [stored.steps[0].output, stored.answer]),
        ("open_step_2", [stored.steps[1].error, stored.answer]),
        ("open_step_3", [line[:4_000], line[-4_000:]]),
        (f"{base}/rollout?id=R5-0001-0&trace_view=Messages", [stored.messages[0].content]),
    )
    for number, (place, texts) in enumerate(places, 1):
        if place.startswith("open"):
            press(page, place)
            at(page, number)
        else:
            visit(page, place, "How it ran")
            page.locator(".w-exact").nth(1).wait_for()
        found = shown(page)
        assert [t for t in texts if t not in found] == []
        assert page.get_by_text("RIGHT-TO-LEFT OVERRIDE").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator(".w-error").count() == 0
        assert acting(page, "[data-testid=stMain] :is(script, iframe, form, img)") == []
    assert (listener.heard, strangers) == ([], [])
