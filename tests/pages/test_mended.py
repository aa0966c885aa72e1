"""What reviewers of the pages found: each is drawn as a person would have met it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import InputError
from core.experience import Delete
from core.rollout import Task
from core.settings import VerifierSpec
from core.worker import seat
from core.workspace import Workspace
from core.workspace.shipping import Shipping
from pages.parts import tables
from tests.browser import PATIENCE_S, browsing, drawn, serve, visit
from tests.pages.workspaces import add_run, publish, tasks

if TYPE_CHECKING:
    from playwright.sync_api import Position

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def open_page(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def html(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def red(page: AppTest) -> str:
    lines = [part.split("</div>")[0] for part in html(page).split('<div class="w-error" role="alert">')[1:]]
    assert len(lines) == 1, lines
    return lines[0]


# --- a page behind the last one ---


@pytest.mark.parametrize(
    ("name", "shown", "query"),
    [
        ("review/library", "4 lessons in version 2", {"library_page": "5", "library_search": "the"}),
        ("admin/activity", 'class="w-log"', {"activity_page": "99"}),
    ],
)
def test_a_page_that_a_filter_took_away_shows_what_there_is(
    name: str, shown: str, query: dict[str, str], ws: Workspace
) -> None:
    drawn = html(open_page(name, **query))
    assert shown in drawn
    assert "Nothing matches" not in drawn


# --- what is refused is said ---


def test_a_backup_that_is_refused_says_why(ws: Workspace) -> None:
    (ws.folder / "backups").write_text("in the way")
    page = open_page("admin/settings", settings_part="Data")
    assert red(page.button("backup").click().run(timeout=120))


def test_a_sample_project_that_is_not_there_is_one_red_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("core.workspace.sample.SAMPLE", tmp_path / "nowhere")
    page = open_page("learn/home")
    assert "The sample project is not in" in red(page.button("load_sample").click().run())


def test_a_task_that_cannot_be_tried_is_one_red_line(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise InputError("Not now.")

    monkeypatch.setattr("pages.parts.dry_run.begin", refused)
    page = open_page("learn/new_run")
    assert "Not now." in red(page.button("dry_run").click().run())


# --- what is written when a button is pressed is what counts, and for one form alone ---


def by_person(ws: Workspace) -> str:
    [made] = [p for p in ws.store.proposals.page(limit=1000)[0] if p.extractor in ("person", "correction")]
    return made.rationale


def test_a_reason_that_was_written_last_goes_out_with_the_lesson_and_is_gone_after_it(ws: Workspace) -> None:
    page = open_page("learn/group", id="R1-0001")
    page.button("group_lesson").click().run()
    page.text_area("lesson_text_R1-0001").set_value("Say nothing after the digits of a sum.").run()
    page.text_input("lesson_why_R1-0001").set_value("All that won did so.")
    page.selectbox("lesson_kind_R1-0001").set_value("convention")
    html(page.button("lesson_propose").click().run())
    assert by_person(ws).startswith("All that won did so.")
    page.button("group_lesson").click().run()
    assert page.text_area("lesson_text_R1-0001").value == ""
    assert page.text_input("lesson_why_R1-0001").value == ""
    assert page.selectbox("lesson_kind_R1-0001").value == "strategy"


def test_a_reason_belongs_to_the_lesson_that_it_was_written_for(ws: Workspace) -> None:
    page = open_page("review/experience", id="E-0004")
    page.button("lesson_out").click().run()
    page.text_input("hand_why_out_E-0004").set_value("nobody follows it").run()
    page.query_params["id"] = "E-0003"
    page.run().button("lesson_out").click().run()
    assert page.text_input("hand_why_out_E-0003").value == ""


@pytest.mark.parametrize(
    ("name", "open_form", "box"),
    [
        ("review/library", "library_new", "hand_text_new"),
        ("learn/group", "group_lesson", "lesson_text_R1-0001"),
        ("learn/rollout", "rollout_correct", "correct_text_R1-0001-0"),
    ],
)
def test_a_form_of_a_lesson_says_how_long_it_may_be(
    name: str, open_form: str, box: str, ws: Workspace
) -> None:
    page = open_page(
        name,
        **({"id": box.removeprefix("lesson_text_").removeprefix("correct_text_")} if "R1" in box else {}),
    )
    page.button(open_form).click().run()
    found = page.text_area(box)
    assert (found.label.replace("\\", ""), found.proto.max_chars) == (
        "Lesson, at most 1,000 characters",
        1_000,
    )


# --- what is empty or alone is said calmly ---


def test_an_empty_newest_version_offers_those_that_have_lessons(ws: Workspace) -> None:
    while live := [e.id for e in ws.store.versions.library()]:  # what waits staged goes out with the first
        publish(ws, *(Delete(experience_id=i) for i in live))
    page = open_page("ship/packs")
    drawn = html(page)
    assert "The newest version is empty" in drawn
    assert 'class="w-error"' not in drawn
    number = max(v.number for v in ws.store.versions.newest(10) if v.size)
    page.button(f"packs_version_{number}").click().run()
    assert f"<b>v{number}</b>" in html(page)
    assert "Version 0 is empty" in html(open_page("ship/packs", pack_version="0"))


def test_comparing_begins_with_two_runs_that_share_tasks(ws: Workspace) -> None:
    add_run(ws, [t for t in tasks() if t.split == "final"], seed=9)
    page = open_page("prove/compare")
    assert [page.selectbox(key).value for key in ("compare_a", "compare_b")] == ["R2", "R3"]
    other = html(page.selectbox("compare_b").set_value("R4").run())
    assert "No task in common" in other
    assert "R2 and R3 share tasks." in other


# --- once, and in one place ---


def test_a_pack_is_verified_once_however_often_the_page_is_drawn(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ws.shipping.export("pack", 1, name="winnow")
    verified: list[int] = []
    verify: Callable[..., object] = Shipping.verify

    def counted(self: Shipping, data: bytes) -> object:
        verified.append(len(data))
        return verify(self, data)

    monkeypatch.setattr(Shipping, "verify", counted)
    page = open_page("ship/packs", packs_view="Import")
    page.file_uploader("import_file_0").set_value((made.name, made.data, "application/zip")).run()
    assert "This pack is sound" in html(page)
    page.text_input("import_domain").set_value("sums").run()
    page.text_input("import_domain").set_value("words").run()
    assert "This pack is sound" in html(page)
    assert len(verified) == 1


def test_what_is_at_work_stands_once_on_home_and_is_looked_at_by_one_fragment(ws: Workspace) -> None:
    with seat(ws.folder):
        ws.jobs.enqueue("R3", "ann")
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
        assert html(app).count('class="w-job"') == 1


def test_a_cell_that_a_spreadsheet_would_compute_is_text_in_the_report_of_rejected_rows(
    ws: Workspace,
) -> None:
    class Refused:
        line, reason, raw = 1, "no question", " =HYPERLINK(A1)"

    assert tables.csv_of([Refused()]).decode().splitlines()[1] == "1,no question,' =HYPERLINK(A1)"


# --- in a browser ---


@pytest.mark.browser
def test_another_page_of_tasks_keeps_the_task_that_is_open_and_a_click_there_opens_its_own(
    folder: Path,
) -> None:
    ws = Workspace(folder)
    many = [
        Task(
            id=f"q-{i:03d}",
            question=f"Question number {i:03d}?",
            answer="1",
            verifier=VerifierSpec(kind="text"),
        )
        for i in range(120)
    ]
    ws.store.tasks.add(many, range(len(many)), "many.jsonl", "ann")
    second_row: Position = {"x": 120, "y": 88}
    with browsing() as browser, serve(folder) as base:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        visit(page, f"{base}/tasks", "1–50 of 120")
        table = page.locator('[data-testid="stDataFrame"] .dvn-scroller').first
        table.click(position=second_row)
        page.locator(".w-id", has_text="q-001").wait_for(timeout=PATIENCE_S * 1000)
        page.locator('[data-testid="stPagination"] button').last.click()
        drawn(page, "51–100 of 120")
        assert page.locator(".w-id").inner_text() == "q-001"
        table.click(position=second_row)
        page.locator(".w-id", has_text="q-051").wait_for(timeout=PATIENCE_S * 1000)
        page.wait_for_url("**/tasks?*id=q-051*", timeout=PATIENCE_S * 1000)
        page.locator('[data-testid="stPagination"] button').first.click()
        drawn(page, "1–50 of 120")
        assert page.locator(".w-id").inner_text() == "q-051"
        page.close()
