"""The shell: which workspace, who acts, how far the loop is, the log, the settings, and what goes with each answer."""

from __future__ import annotations

import ast
import asyncio
import csv
import io
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamlit.testing.v1 import AppTest

from core.experience import Add
from core.rollout import Event
from core.settings import Endpoint, Role
from core.worker import seat
from core.workspace import Workspace
from pages.parts import events, headers, log_file
from tests.browser import PATIENCE_S, drawn, serve, visit
from tests.listener import Listener
from tests.pages.test_pages import fine, html, open_page, red
from tests.pages.workspaces import propose

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
PAGE_FILES = sorted(
    p for p in (ROOT / "pages").rglob("*.py") if "parts" not in p.parts and p.name != "__init__.py"
)
LINES = 4_000
"""Lines of the log of a large workspace."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace that the app is pointed at, alone in its folder."""
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "here" / "workspace"))
    monkeypatch.setenv("WINNOW_USER", "ann")
    return tmp_path / "here" / "workspace"


@pytest.fixture
def ws(folder: Path, filled: Path) -> Workspace:
    shutil.copytree(filled, folder)
    return Workspace(folder)


@pytest.fixture
def large(ws: Workspace) -> Workspace:
    """The filled workspace with a log of `LINES` more lines."""
    database = ws.store._database
    with database.writing():
        database.executemany(
            "INSERT INTO events (at, actor, kind, subject, data) VALUES (?, ?, ?, ?, '{}')",
            [
                ("2026-11-29T18:30:00Z", "bob" if i % 4 else "zoe", "proposal.deferred", f"P-{i:04d}")
                for i in range(LINES)
            ],
        )
    return ws


def app(page: str = "", **query: str) -> AppTest:
    """The app with its sidebar, on one of its pages."""
    opened = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in query.items():
        opened.query_params[key] = value
    opened.run()
    return opened.switch_page(f"pages/{page}.py").run() if page else opened


def links(page: AppTest) -> list[str]:
    return [str(link.proto.label) for link in page.get("page_link")]


# --- what every page does ---


@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_page_asks_the_session_for_its_workspace_and_opens_with_a_title(path: Path) -> None:
    calls = {
        f"{node.func.value.id}.{node.func.attr}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
    }
    assert "session.workspace" in calls
    assert "frame.page" in calls


def test_every_page_is_in_the_navigation() -> None:
    registered = (ROOT / "app.py").read_text(encoding="utf-8")
    for path in PAGE_FILES:
        assert f'"{path.relative_to(ROOT).as_posix()}"' in registered


def test_no_page_leaves_with_a_bare_switch() -> None:
    """`st.switch_page` without a query raises where the address holds a filter."""
    for path in (*PAGE_FILES, *sorted((ROOT / "pages" / "parts").glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.switch_page":
                named = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert named.get("query_params", "None") != "None", (
                    f"{path.relative_to(ROOT)}:{node.lineno}: use frame.go"
                )


# --- the sidebar ---


@pytest.mark.slow
def test_the_sidebar_leads_to_what_waits(ws: Workspace) -> None:
    page = fine(app())
    assert "**5** waiting for review" in links(page)
    assert "**1** staged, not published" in links(page)
    assert any(label.startswith("Version 2") for label in links(page))
    assert "not verified" in html(page)


@pytest.mark.slow
def test_work_that_goes_on_has_a_line_that_leads_to_its_run(ws: Workspace) -> None:
    with seat(ws.folder):
        ws.jobs.enqueue("R3", "ann")
        ws.jobs.claim("somebody 1 1")
        ws.jobs.beat("J1", "somebody 1 1", ("groups", 12, 30))
        page = fine(app())
    assert "groups 12 of 30" in html(page)
    assert 'aria-valuenow="40"' in html(page)
    assert "Open R3" in links(page)


@pytest.mark.slow
def test_another_workspace_is_chosen_by_its_name(ws: Workspace) -> None:
    other = Workspace(ws.folder.parent / "other")
    propose(other, Add(text="Only here."))
    page = fine(app(workspace="other"))
    assert page.selectbox("workspace").value == "other"
    assert "**1** waiting for review" in links(page)
    page.selectbox("workspace").set_value("workspace").run()
    assert "**5** waiting for review" in links(fine(page))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../other", "/etc", "nowhere", "<b>x"])
def test_an_address_can_name_no_path(name: str, ws: Workspace) -> None:
    Workspace(ws.folder.parent.parent / "other")
    page = app(workspace=name)
    assert "There is no workspace" in red(page)
    assert page.selectbox("workspace").value == "workspace"


@pytest.mark.slow
def test_a_new_workspace_is_made_by_name_and_opened(ws: Workspace) -> None:
    page = app()
    page.text_input("new_workspace_name").set_value("agents").run()
    fine(page.button("new_workspace").click().run())
    assert page.selectbox("workspace").value == "agents"
    assert "agents is made" in html(page)
    assert page.button("load_sample")
    assert (ws.folder.parent / "agents" / "winnow.db").is_file()


@pytest.mark.slow
def test_a_bad_name_for_a_workspace_is_one_red_line(ws: Workspace) -> None:
    page = app()
    page.text_input("new_workspace_name").set_value("../up").run()
    assert "letters, digits" in red(page.button("new_workspace").click().run())
    assert [p.name for p in ws.folder.parent.iterdir()] == ["workspace"]


# --- home ---


@pytest.mark.slow
def test_an_empty_home_is_one_hero_with_three_ways(folder: Path) -> None:
    page = fine(app())
    assert "This workspace is empty" in html(page)
    ways = ["Load the sample project", "Import your tasks", "Import recorded rollouts"]
    assert [b.label for b in page.main.button] == ways


@pytest.mark.slow
def test_home_draws_a_large_workspace(large: Workspace) -> None:
    page = fine(app())
    assert "and " in html(page)
    assert html(page).count("put off") <= 8, "what was done to many things in a row is one line"


# --- the log ---


@pytest.mark.slow
def test_the_log_is_read_a_page_at_a_time(large: Workspace) -> None:
    page = fine(open_page("admin/activity"))
    assert html(page).count('class="w-log"') == 50
    assert f"{LINES + large.store.events.page(actor='ann', limit=1)[1]:,} lines" in html(page)
    last = fine(open_page("admin/activity", activity_page="2"))
    assert "P-3949" in html(last)
    assert "P-3950" not in html(last)


@pytest.mark.slow
def test_the_log_is_filtered_by_the_address(large: Workspace) -> None:
    page = fine(open_page("admin/activity", activity_who="zoe"))
    assert f"{LINES // 4:,} lines" in html(page)
    page = fine(open_page("admin/activity", activity_subject="E-none"))
    assert "Nothing fits these filters" in html(page)
    assert page.button("empty_go").label == "Show everything"


@pytest.mark.slow
def test_the_log_says_why(ws: Workspace) -> None:
    page = open_page("admin/activity")
    page.selectbox("activity_kind").set_value("proposal.rejected").run()
    assert '<div class="why">says the obvious</div>' in html(fine(page))


def test_the_file_of_the_log_holds_no_formula(workspace: Workspace) -> None:
    hostile = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "|x", "%x", '"=1"', "plain")
    for i, name in enumerate(hostile):
        workspace.people.give(f"={i}", "reviewer", name)
    rows = list(
        csv.reader(io.StringIO(log_file.csv_of(workspace, kind="", actor="", subject="").decode("utf-8")))
    )
    assert tuple(rows[0]) == log_file.COLUMNS
    assert len(rows) == len(hostile) + 1
    for row in rows[1:]:
        for cell in row[1:]:
            assert not cell.lstrip(" ").startswith(log_file.FORMULA), cell
    assert {row[2].removeprefix("'") for row in rows[1:]} == set(hostile)


@pytest.mark.parametrize(
    ("kind", "subject", "data", "page"),
    [
        ("run.created", "R12", {}, "learn/run?id=R12"),
        ("job.paused", "J3", {"run": "R2"}, "learn/run?id=R2"),
        ("run.accepted", "R1-0004-2", {}, "learn/rollout?id=R1-0004-2"),
        ("run.reopened", "R1-0004+1", {}, "learn/group?id=R1-0004+1"),
        ("proposal.approved", "P-0003", {}, "review/review?id=P-0003"),
        ("version.published", "7", {}, "review/versions?id=7"),
        ("setting.changed", "setting n_max", {}, "admin/settings"),
        ("tasks.imported", "R1<script>", {}, "learn/tasks"),
        ("workspace.restored", "a.zip", {}, ""),
    ],
)
def test_a_line_leads_to_what_it_is_about(kind: str, subject: str, data: dict[str, Any], page: str) -> None:
    found = events.way(Event(id=1, at="", actor="ann", kind=kind, subject=subject, data=data))
    query = "&".join(f"{k}={v}" for k, v in found.query.items()) if found else ""
    there = (
        f"{found.page.removeprefix('pages/').removesuffix('.py')}{'?' if query else ''}{query}"
        if found
        else ""
    )
    assert there == page


# --- settings ---


@pytest.mark.slow
@pytest.mark.parametrize("part", ["Models", "Library", "People", "Data"])
@pytest.mark.parametrize("which", ["folder", "large"])
def test_each_part_of_the_settings_is_drawn(part: str, which: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(which)
    fine(open_page("admin/settings", settings_part=part))


@pytest.mark.slow
def test_an_endpoint_is_changed_with_its_limits_and_removed(folder: Path) -> None:
    ws = Workspace(folder)
    ws.models.save(
        Endpoint(name="mine", base_url="http://127.0.0.1:9/v1", model="m", extra={"top_k": 40}), "ann"
    )
    page = open_page("admin/settings")
    fine(page.button("change_mine").click().run())
    assert page.text_input("endpoint_name").value == "mine"
    page.number_input("endpoint_requests_per_minute").set_value(60)
    page.number_input("endpoint_tokens_per_minute").set_value(9000)
    page.number_input("endpoint_price_in").set_value(0.5)
    fine(page.button("endpoint_save").click().run())
    saved = ws.models.get("mine")
    assert (saved.requests_per_minute, saved.tokens_per_minute, saved.price_in) == (60, 9000, 0.5)
    assert saved.extra == {"top_k": 40}, "what the form does not show stays"
    fine(page.button("remove_mine").click().run())
    assert [e.name for e in ws.models.all()] == ["embedded"]


@pytest.mark.slow
def test_a_bad_endpoint_is_one_red_line_and_nothing_typed_is_lost(folder: Path) -> None:
    page = open_page("admin/settings")
    page.text_input("endpoint_name").set_value("mine")
    page.text_input("endpoint_url").set_value("ftp://nowhere")
    assert "http" in red(page.button("endpoint_save").click().run())
    assert page.text_input("endpoint_name").value == "mine"
    assert page.text_input("endpoint_url").value == "ftp://nowhere"


@pytest.mark.slow
def test_capacity_budget_and_reasons_are_saved(ws: Workspace) -> None:
    page = open_page("admin/settings", settings_part="Library")
    page.number_input("settings_n_max").set_value(40)
    fine(page.button("settings_n_max_save").click().run())
    page.number_input("settings_calls").set_value(900)
    fine(page.button("settings_caps_save").click().run())
    page.text_area("settings_reasons").set_value("wrong tone\nnot ours")
    fine(page.button("settings_reasons_save").click().run())
    assert ws.auditing.n_max == 40
    assert ws.preferences.caps.max_calls == 900
    assert ws.preferences.reject_reasons == ("wrong tone", "not ours")


@pytest.mark.slow
def test_bad_reasons_are_one_red_line_and_stay_in_the_box(ws: Workspace) -> None:
    page = open_page("admin/settings", settings_part="Library")
    page.text_area("settings_reasons").set_value("x" * 100)
    assert "80 characters" in red(page.button("settings_reasons_save").click().run())
    assert page.text_area("settings_reasons").value == "x" * 100


@pytest.mark.slow
def test_a_name_is_taken_for_this_session(ws: Workspace) -> None:
    page = open_page("admin/settings", settings_part="People")
    page.text_input("settings_name").set_value("  Bea\u202e  B. ")
    fine(page.button("settings_name_save").click().run())
    assert "You act as Bea B. in this session." in html(page)
    page.text_input("settings_name").set_value(" \u200b ")
    assert "at least one letter" in red(page.button("settings_name_save").click().run())


@pytest.mark.slow
def test_a_role_is_given_and_taken_away(ws: Workspace) -> None:
    page = open_page("admin/settings", settings_part="People")
    page.text_input("settings_who").set_value("bob@example.org")
    fine(page.button("settings_role_save").click().run())
    assert ws.people.given() == {"bob@example.org": "reviewer"}
    page.text_input("settings_who").set_value("bob@example.org")
    page.selectbox("settings_role").set_value("reader")
    fine(page.button("settings_role_save").click().run())
    assert ws.people.given() == {}
    assert "name that they sign in with" in red(page.button("settings_role_save").click().run())


@pytest.mark.slow
@pytest.mark.parametrize("role", ["reader", "reviewer"])
def test_who_may_not_change_settings_sees_why(
    role: Role, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ROLE", role)
    page = fine(open_page("admin/settings"))
    assert page.button("endpoint_save").disabled
    assert f"You are a {role} here" in page.button("endpoint_save").help.replace("\\", "")
    assert page.selectbox("role_judge").disabled


@pytest.mark.slow
def test_who_became_a_reader_meanwhile_changes_nothing(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page("admin/settings", settings_part="Library")
    monkeypatch.setenv("WINNOW_ROLE", "reader")
    page.number_input("settings_n_max").set_value(40)
    page = fine(page.button("settings_n_max_save").click().run())
    assert page.button("settings_n_max_save").disabled
    assert ws.auditing.n_max == 500


# --- what goes out with every answer ---


def answered(kind: str, host: bytes, sent: list[tuple[bytes, bytes]] | None = None) -> dict[bytes, bytes]:
    """The headers of an answer that passed through the middleware."""
    got: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": kind, "headers": sent or []})

    async def receive() -> Any:
        return {}

    async def send(message: Any) -> None:
        got.append(message)

    scope = {"type": kind.partition(".")[0], "headers": [(b"host", host)]}
    asyncio.run(headers.SecurityHeaders(inner)(scope, receive, send))
    return dict(got[0]["headers"])


@pytest.mark.parametrize("kind", ["http.response.start", "websocket.accept", "websocket.http.response.start"])
def test_every_kind_of_answer_has_the_headers(kind: str) -> None:
    found = answered(kind, b"127.0.0.1:8501", [(b"X-Content-Type-Options", b"sniff")])
    assert found[b"x-content-type-options"] == b"nosniff"
    policy = found[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    assert "connect-src 'self' ws://127.0.0.1:8501 wss://127.0.0.1:8501;" in policy
    assert b"X-Content-Type-Options" not in found


@pytest.mark.parametrize("host", [b"", b"evil; script-src *", b"a b", b"x\r\ny", "ü".encode(), b"*"])
def test_a_strange_host_does_not_get_into_the_policy(host: bytes) -> None:
    policy = answered("http.response.start", host)[b"content-security-policy"].decode()
    assert "connect-src 'self';" in policy


def test_the_configuration_is_a_safe_one() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert set(config["server"]["allowedHosts"]) == {"127.0.0.1", "localhost", "::1"}
    assert config["browser"]["gatherUsageStats"] is False
    assert (config["client"]["showErrorDetails"], config["client"]["showErrorLinks"]) == ("none", False)


# --- in a real browser ---


def hostile(url: str) -> str:
    return (
        f'<img src="{url}/img"><script>fetch("{url}/script")</script>![x]({url}/md) [a]({url}/a) $x^2$ -> :red[y]'
        f"<style>@import '{url}/css';</style><form action='{url}/form'><iframe src='{url}/f'></iframe>\x1b[31m\u202e"
    )


@pytest.fixture(scope="module")
def place(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two workspaces, the served one with an empty queue of jobs."""
    parent = tmp_path_factory.mktemp("place")
    shutil.copytree(filled, parent / "first")
    Workspace(parent / "second")
    return parent


@pytest.fixture(scope="module")
def base(place: Path) -> Iterator[str]:
    with serve(place / "first") as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.browser
def test_hostile_names_reach_nobody_and_every_answer_has_the_headers(
    base: str, place: Path, page: Page
) -> None:
    ws = Workspace(place / "first")
    listener = Listener()
    text = hostile(listener.url)
    ws.store.proposals.add([], text)
    ws.people.give("bob", "reviewer", text[:400])
    ws.preferences.set_reject_reasons([f"![x]({listener.url}/r) <img src=x>"], "ann")
    ws.store.tasks.add([], [], text, text)
    ws.models.save(Endpoint(name="own", base_url=listener.url, model=text), text)
    with ws.store.writing():
        ws.store.events.append(text, text, text, reason=text)
    bare: list[str] = []
    asked: set[str] = set()  # whatever was tried, answered or not
    page.on("request", lambda request: asked.add(request.url))

    def look(response: Any) -> None:
        found = response.headers
        if (
            "content-security-policy" not in found or found.get("x-content-type-options") != "nosniff"
        ) and not response.url.startswith(("data:", "blob:")):
            bare.append(response.url)

    page.on("response", look)
    try:
        visit(page, f"{base}/", "Lately")
        visit(page, f"{base}/activity", "Download as CSV")
        visit(page, f"{base}/settings", "Endpoints")
        visit(page, f"{base}/settings?settings_part=Library", "Reasons to reject")
        visit(page, f"{base}/settings?settings_part=People", "Name for this session")
    finally:
        listener.close()
    assert listener.heard == []
    assert bare == []
    assert {url for url in asked if not url.startswith((base, "data:", "blob:"))} == set()
    assert page.locator("img[src^='http']").count() == 0


@pytest.mark.browser
def test_a_workspace_filters_and_ids_survive_links_back_and_reload(base: str, page: Page) -> None:
    visit(page, f"{base}/run?id=R1", "R1")
    page.locator(".st-key-w_back a").click()
    drawn(page, "New run")
    page.go_back()
    page.wait_for_url("**/run?id=R1", wait_until="commit", timeout=PATIENCE_S * 1000)
    drawn(page, "R1")
    page.reload()
    drawn(page, "R1")
    visit(page, f"{base}/activity?activity_who=ann", "Everything that happened")
    page.get_by_role("link", name="Home").first.click()
    drawn(page, "Lately")
    assert page.url == f"{base}/", "the filter belongs to the page that was left"
    page.go_back()
    page.wait_for_url("**/activity?activity_who=ann", wait_until="commit", timeout=PATIENCE_S * 1000)
    drawn(page, "Everything that happened")
    assert page.url == f"{base}/activity?activity_who=ann"
    visit(page, f"{base}/tasks?workspace=second", "Tasks")
    page.get_by_role("link", name="Home").first.click()
    drawn(page, "This workspace is empty")
    assert page.url == f"{base}/?workspace=second"


@pytest.mark.browser
def test_home_is_found_under_its_name_too(base: str, page: Page) -> None:
    visit(page, f"{base}/home?workspace=second", "This workspace is empty")
    assert page.url == f"{base}/?workspace=second"


@pytest.mark.browser
def test_the_code_of_tables_and_charts_is_loaded_before_a_page_needs_it(base: str, page: Page) -> None:
    visit(page, f"{base}/settings", "Endpoints")
    for name in ("DataFrame", "PlotlyChart"):
        page.wait_for_function(
            "(name) => performance.getEntriesByType('resource').some((e) => e.name.includes(`/${name}.`))",
            arg=name,
            timeout=PATIENCE_S * 1000,
        )
    assert page.locator('[data-testid="stPlotlyChart"], [data-testid="stDataFrame"]').count() == 0


@pytest.mark.browser
def test_work_is_followed_to_its_end_while_somebody_types(base: str, place: Path, page: Page) -> None:
    ws = Workspace(place / "first")
    with seat(ws.folder):
        job = ws.jobs.enqueue("R3", "ann")
        ws.jobs.claim("somebody 1 1")
        ws.jobs.beat(job.id, "somebody 1 1", ("groups", 12, 30))
        visit(page, f"{base}/activity", "groups 12 of 30")
        box = page.get_by_label("About")
        box.press_sequentially("P-00")
        ws.jobs.beat(job.id, "somebody 1 1", ("groups", 24, 30))
        drawn(page, "groups 24 of 30")
        ws.jobs.end(job.id, "somebody 1 1", "done", "")
        page.get_by_text("groups 24 of 30").wait_for(state="detached")
        box.press_sequentially("03")
        assert box.input_value() == "P-0003", "what is being typed stays"


@pytest.mark.browser
@pytest.mark.parametrize(
    "path", ["/", "/activity", "/settings", "/settings?settings_part=People", "/run?id=R99"]
)
def test_nothing_is_wider_than_a_phone(path: str, base: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        page.goto(f"{base}{path}", wait_until="commit")
        page.locator("h1, .w-gone").first.wait_for(timeout=60_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator('[data-testid="stSidebar"][aria-expanded="true"]').count() == 0
    finally:
        context.close()


@pytest.mark.browser
def test_a_card_is_reached_and_opened_by_keyboard(base: str, page: Page) -> None:
    visit(page, f"{base}/", "Lately")
    card = page.locator(".st-key-way_step_4 a")
    card.focus()
    outline = page.locator(".st-key-way_step_4 .w-way").evaluate("(e) => getComputedStyle(e).outlineStyle")
    assert outline == "solid"
    card.press("Enter")
    page.wait_for_url("**/library*", wait_until="commit", timeout=PATIENCE_S * 1000)
    page.locator("h1").wait_for()
