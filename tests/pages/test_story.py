"""The app in a real browser: one story from a task file to a pack, and foreign text that tries to act."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.experience import Add
from core.rollout import Task, Trajectory
from core.settings import Endpoint, RewardConfig
from core.settling import settle
from core.workspace import Workspace
from tests.browser import browsing, drawn, press, serve, shown, visit
from tests.pages.workspaces import add_run, propose, publish, rollout
from tests.stub_server import StubServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def test_from_a_task_file_to_a_pack_by_mouse(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    rows = [
        {"id": f"sum-{i}", "question": f"What is {i} + 1?", "answer": str(i + 1), "split": "train"}
        for i in range(3)
    ]
    file.write_text("\n".join(map(json.dumps, [*rows, {"answer": "no question"}])), encoding="utf-8")
    folder = tmp_path / "workspace"
    ws = Workspace(folder)
    with StubServer() as stub, serve(folder) as base:
        ws.models.save(Endpoint(name="stub", base_url=stub.base_url, model="stub-model"), "ann")
        ws.models.set_role("rollout", "stub", "ann")
        page = browser.new_context(accept_downloads=True).new_page()

        visit(page, f"{base}/import-tasks", "Nothing is imported before")
        page.locator('input[type="file"]').first.set_input_files(file)
        drawn(page, "valid tasks")
        press(page, "import_now")
        drawn(page, "3 tasks imported from tasks.jsonl")
        assert [t.id for t in ws.store.tasks.page()[0]] == ["sum-0", "sum-1", "sum-2"]

        visit(page, f"{base}/new-run", "calls at most")
        press(page, "run_start")
        drawn(page, "3 of 3 groups finished")
        assert ws.store.runs.get("R1").tally.total == 3

        visit(page, f"{base}/group?id=R1-0001", "exact answers, the best first")
        answers = {r.trajectory.answer for r in ws.store.groups.get("R1-0001").rollouts}
        assert answers <= set(shown(page))

        lesson = "Write `->` as it is: *no* arrow, $no$ maths, >= 1 digit."
        waiting = propose(ws, Add(text=lesson), "R1")
        visit(page, f"{base}/review?id={waiting}", "exactly as it would be stored")
        assert lesson in shown(page)
        press(page, "approve")
        drawn(page, f"{waiting} staged.")
        press(page, "to_publish")
        drawn(page, "All approved proposals become one new version")
        press(page, "publish")
        drawn(page, "Version 1 is published.")
        assert [e.text for e in ws.store.versions.library()] == [lesson]

        visit(page, f"{base}/packs", "SHA-256 of exactly these bytes")
        with page.expect_download() as download:
            press(page, "pack_download")
        data = Path(download.value.path()).read_bytes()
        assert hashlib.sha256(data).hexdigest() in shown(page)
        assert data == ws.shipping.export("pack").data


def test_keys_decide_and_wait_while_one_types(browser: Browser, tmp_path: Path) -> None:
    ws = Workspace(tmp_path / "workspace")
    first, second = (
        propose(ws, Add(text="Read the file first.")),
        propose(ws, Add(text="Answer in one word.")),
    )
    with serve(ws.folder) as base:
        page = browser.new_page()
        visit(page, f"{base}/review", "exactly as it would be stored")
        page.wait_for_timeout(
            1_500
        )  # a key pressed right after loading is lost (measured: STREAMLIT, finding 6)
        page.keyboard.press("e")
        box = page.get_by_label("Your text")
        box.wait_for()
        box.fill("")
        box.press_sequentially("a day ex ud")
        assert ws.store.proposals.counts() == {"proposed": 2}, (
            "keys of a decision must not fire while one types"
        )
        page.keyboard.press("Control+Enter")
        drawn(page, f"{first} staged.")
        assert ws.store.proposals.get(first).edited_text == "a day ex ud"
        page.wait_for_timeout(500)
        page.keyboard.press("d")
        drawn(page, f"{second} deferred.")
        page.wait_for_timeout(500)
        page.keyboard.press("u")
        drawn(page, f"{second} waits again.")
        assert ws.store.proposals.get(second).status == "proposed"


class Listener:
    """An outside server that nothing may ask."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        hits = self.hits

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hits.append(self.path)
                self.send_error(404)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


def hostile(url: str, where: str) -> str:
    """Text that acts wherever it is taken for more than text."""
    return "\n".join(
        (
            f'<script>fetch("{url}/script-{where}")</script><img src="{url}/img-{where}" onerror="fetch(`{url}/x`)">',
            f'<style>.stApp{{background:url("{url}/style-{where}")}}</style>'
            f'<iframe src="{url}/frame-{where}"></iframe>'
            f'</div></textarea><form action="{url}/form-{where}"><input name=key></form><svg onload=alert(1)>',
            f"![image]({url}/markdown-{where}) [link]({url}/link) <{url}/auto> :red[red] :material/delete: `code`",
            "$\\frac{a}{b}$ -> >= -- ... **bold** {braces} ${HOME} &lt;entity&gt; \\n",
            "  leading and trailing spaces  \ttab \u202eright to left\u202c \u200bzero width, 日本語, é, 👍🏽",
            "",
        )
    )


def test_foreign_text_is_shown_as_it_is_and_asks_nobody(
    browser: Browser, tmp_path: Path, listener: Listener
) -> None:
    text = {
        where: hostile(listener.url, where)
        for where in ("question", "answer", "lesson", "proposal", "rationale")
    }
    text["lesson"] = "\n".join(text["lesson"].splitlines()[:3])  # a lesson has at most 32 words
    long = "x" * 1_000_000
    ws = Workspace(tmp_path / "workspace")
    task = Task(
        id="<b>t</b>![a](b)", question=text["question"], answer="4", domain=f"![d]({listener.url}/domain)"
    )
    ws.store.tasks.add([task], [1], "tasks.jsonl", "ann")
    add_run(ws, [task])
    group = ws.store.groups.get("R1-0001")
    told = [text["answer"], long, "", "4", "5", "6"]
    rollouts = tuple(
        rollout(
            group.id,
            task,
            i,
            i / 5,
            trajectory=Trajectory(answer=answer),
            model=f"![m]({listener.url}/model)",
        )
        for i, answer in enumerate(told)
    )
    ws.store.groups.save(settle(group.model_copy(update={"rollouts": rollouts}), RewardConfig()))
    publish(
        ws,
        Add(text=text["lesson"], domain=task.domain),
        run_id="R1",
        message=hostile(listener.url, "message"),
    )
    waiting = propose(ws, Add(text=text["proposal"]), "R1", rationale=text["rationale"])

    places = {
        "/tasks": ("Train teaches", []),
        "/groups": ("A group is informative", []),
        "/group?id=R1-0001": ("exact answers", [text["question"]]),
        "/rollout?id=R1-0001-0": ("One attempt", [text["answer"]]),
        "/rollout?id=R1-0001-1": ("The first 4,000 of 1,000,000 characters.", [long[:4_000]]),
        f"/review?id={waiting}": ("exactly as it would be stored", [text["proposal"], text["rationale"]]),
        "/experience?id=E-0001": ("Where it came from", [text["lesson"]]),
        "/versions": ("Every published state", []),
        "/activity": ("Everything that happened", []),
    }
    page = browser.new_page()
    outside: list[str] = []
    with serve(ws.folder) as base:
        page.on(
            "request",
            lambda r: outside.append(r.url) if not r.url.startswith((base, "data:", "blob:")) else None,
        )
        for path, (mark, exact) in places.items():
            visit(page, base + path, mark)
            for each in exact:
                assert each in shown(page), f"{path} does not show the text as it is stored"
        acted = page.locator(
            ".stApp script, .stApp iframe, .stApp form[action], .stApp [onerror], .stApp [onload]"
        ).count()
    assert (outside, listener.hits, acted) == ([], [], 0)
