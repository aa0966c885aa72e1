"""Lessons of recorded runs on the pages: drawn with a model, and told where their rewards changed since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.importers import gathering
from core.importers.formats import FORMATS
from core.worker import Worker
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.fake_format import FakeFormat, attempt, write
from tests.make import add_stub
from tests.pages.test_pages import fine, html, open_page
from tests.stub_server import StubServer, teacher

pytestmark = pytest.mark.slow
CHANGED = "The rewards of 10 of its 10 groups changed after it was drawn; what is counted here was before."


def bring(ws: Workspace, *, lower: bool = False) -> None:
    rows: list[dict[str, Any]] = [
        attempt(
            f"t{task}",
            answer=f"{task} {i}",
            steps=[{"tool": "look"}] * (i % 2),
            scores={"accuracy": {"value": float(i % 2)}},
        )
        for task in range(10)
        for i in range(6)
    ]
    path = write(ws.folder.parent / "a.jsonl", *rows)
    ws.intake.add_rollouts([path], ImportOptions(score="accuracy", lower_is_better=lower), "ann")


@pytest.fixture
def ws(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))
    found = Workspace(folder)
    bring(found)
    return found


@pytest.fixture
def extractor(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setattr(Workspace, "ensure_worker", lambda self: None)  # the test is the worker
    with StubServer(teacher) as stub:
        add_stub(ws, stub.base_url, "extractor", context_length=16_000, price_in=1.0, price_out=2.0)
        yield stub


def opened() -> AppTest:
    return fine(open_page("learn/run", "R1"))


def test_by_default_no_model_is_asked_and_who_is_asked_is_a_choice(
    ws: Workspace, extractor: StubServer
) -> None:
    page = opened()
    choice = page.selectbox("run_draw_by")
    assert (choice.value, "extractor" in "".join(choice.options)) == ("", True)
    assert page.button("run_draw").label == "Draw lessons from it"


def test_what_a_model_takes_is_shown_before_it_starts_and_it_runs_as_a_job(
    ws: Workspace, extractor: StubServer
) -> None:
    page = opened()
    page.selectbox("run_draw_by").set_value("extractor").run()
    shown = html(fine(page))
    assert "71: 60 summaries, 10 contrasts, 1 consolidation" in shown
    assert page.button("run_draw").label.replace("\\", "") == "Draw lessons from it: at most 71 calls"
    assert extractor.stats()["calls"] == 0
    page.button("run_draw").click().run()
    shown = html(fine(page))
    assert "lessons are drawn" in shown
    assert not [b for b in page.button if b.key == "run_draw"]
    assert [(j.subject, j.state) for j in ws.jobs.newest()] == [("R1", "waiting")]
    Worker(ws).serve(once=True)
    assert ws.jobs.newest()[0].state == "done"
    shown = html(opened())
    assert "Sent to draw lessons:" in shown
    assert "= " in shown
    assert "the sum is wrong" not in shown


def test_a_cap_that_was_reached_is_told_and_the_job_goes_on_under_other_caps(
    ws: Workspace, extractor: StubServer
) -> None:
    page = opened()
    page.selectbox("run_draw_by").set_value("extractor").run()
    page.number_input("run_draw_calls").set_value(5).run()
    page.button("run_draw").click().run()
    Worker(ws).serve(once=True)
    page = open_page("learn/run", "R1")
    assert not page.exception
    assert "The cap of 5 calls is reached" in html(page)
    assert page.button("run_resume").label == "Resume"
    assert page.button("caps_resume")


def test_groups_that_could_not_be_contrasted_are_asked_about_anew(
    ws: Workspace, extractor: StubServer
) -> None:
    run = ws.store.runs.get("R1")
    failed = {"not_contrasted": {"R1-0001": "unreadable"}, "suggested": 1, "quarantined": 1}
    ws.store.runs.save_extraction("R1", run.extraction.model_copy(update=failed))
    page = opened()
    page.selectbox("run_draw_by").set_value("extractor").run()
    page.button("run_draw").click().run()
    assert (ws.store.groups.contrast_attempt("R1-0001"), ws.store.groups.contrast_attempt("R1-0002")) == (
        1,
        0,
    )


def test_a_run_whose_rewards_changed_says_so_and_offers_to_draw_again(ws: Workspace) -> None:
    ws.learning.propose("R1", "ann")
    assert "changed after" not in html(opened())
    bring(ws, lower=True)
    page = opened()
    assert "The rewards behind 1 proposal (P-0001) changed after it was drawn" in html(page)
    assert page.button("run_draw").label == "Draw lessons again"


def test_the_review_and_the_lesson_say_that_what_was_counted_is_of_other_rewards(ws: Workspace) -> None:
    ws.learning.propose("R1", "ann")
    assert CHANGED not in html(fine(open_page("review/review", "P-0001")))
    bring(ws, lower=True)
    shown = html(fine(open_page("review/review", "P-0001")))
    assert "rewards changed</span>" in shown
    assert f"{CHANGED} Lessons can be drawn again on the page of R1; or reject it." in shown
    ws.review.approve("P-0001", "ann")
    ws.review.publish("It stays possible", "ann")
    assert CHANGED in html(fine(open_page("review/experience", "E-0001")))
