"""The library, one lesson and the versions: each form once well and once badly, on little, nothing and much."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from core.credit import Credit
from core.experience import Add, Delete, Experience, Modify
from core.library import Library
from core.workspace import Workspace
from pages.parts import paging
from tests.pages.workspaces import publish

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MANY = 400
HOSTILE = "<script>x</script> ![a](http://h/) -> >= $x^2$ \u202eabc\u202c"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "workspace"
    grow(Workspace(folder))
    return folder


def grow(ws: Workspace) -> None:
    """A library of many lessons and versions."""
    with ws.store.writing():
        head = ws.store.versions.library()
        for number in range(1, 41):
            new = {f"E-{n:04d}": n for n in range(number * 10 - 9, number * 10 + 1)}
            states = {
                **head.experiences,
                **{i: Experience(id=i, text=f"Lesson {n} of many.") for i, n in new.items()},
            }
            ws.store.versions.save(
                head,
                Library.of(states.values(), number),
                parent=head.version,
                author="ann",
                message=f"Batch {number}",
                event="version.published",
            )
            head = Library.of(states.values(), number)


@pytest.fixture
def much(folder: Path, large: Path) -> Workspace:
    shutil.copytree(large, folder)
    return Workspace(folder)


def open_page(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "review" / f"{name}.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def fine(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    drawn = html(page)
    assert 'class="w-error"' not in drawn, drawn[drawn.index('class="w-error"') :][:400]
    return drawn


def red(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    lines = [part.split("</div>")[0] for part in html(page).split('<div class="w-error" role="alert">')[1:]]
    assert len(lines) == 1, lines
    return lines[0]


def ids(page: AppTest) -> list[str]:
    return [part.split("<")[0] for part in fine(page).split('<span class="which"><b>')[1:]]


# --- the library ---


def test_an_empty_library_offers_a_way_on_and_a_first_lesson(folder: Path) -> None:
    page = open_page("library")
    assert "No lessons yet" in fine(page)
    page.button("library_new").click().run()
    page.text_area("hand_text_new").set_value("Read the file first.")
    fine(page.button("hand_send").click().run())
    assert Workspace(folder).store.proposals.counts() == {"proposed": 1}


def test_a_large_library_is_a_page_at_a_time(much: Workspace) -> None:
    page = open_page("library")
    assert len(ids(page)) == paging.PAGE
    assert f"{MANY} lessons in version 40" in html(page)
    assert ids(open_page("library", library_page="2"))[0] == f"E-{MANY - paging.PAGE:04d}"


def test_a_search_marks_what_it_found_and_the_text_stays_what_it_is(ws: Workspace) -> None:
    publish(ws, Add(text=HOSTILE))
    drawn = fine(open_page("library", library_search="script"))
    assert (
        "&lt;<mark>script</mark>&gt;x&lt;/<mark>script</mark>&gt; ![a](http://h/) -&gt; &gt;= $x^2$" in drawn
    )
    assert "2 characters that cannot be seen" in drawn


def test_a_search_that_finds_nothing_can_be_cleared(ws: Workspace) -> None:
    page = open_page("library", library_search="zebra")
    assert "Nothing matches" in fine(page)
    assert len(ids(page.button("library_clear_all").click().run())) == 4


def test_filters_and_orders_narrow_the_list(ws: Workspace) -> None:
    page = open_page("library")
    assert ids(page.selectbox("library_domain").set_value("weekdays").run()) == ["E-0004"]
    page.selectbox("library_domain").set_value("")
    assert ids(page.selectbox("library_kind").set_value("tool_selection").run()) == ["E-0003"]
    page.selectbox("library_kind").set_value("")
    assert ids(page.slider("library_confidence").set_value((0.8, 1.0)).run()) == []


@pytest.mark.parametrize("named", ["1", "production"])
def test_an_older_version_is_read_by_number_or_label(named: str, ws: Workspace) -> None:
    ws.review.set_label("production", 1, "ann")
    page = open_page("library", library_version=named)
    assert "3 lessons in version 1" in fine(page)
    assert "not the largest city of the country." in html(page)


def test_a_version_that_is_not_there_is_said_kindly(ws: Workspace) -> None:
    page = open_page("library", library_version="99")
    assert not page.exception
    assert "There is no version 99" in html(page)


def test_a_new_lesson_goes_to_review_with_what_is_near_shown_first(ws: Workspace) -> None:
    page = open_page("library")
    page.button("library_new").click().run()
    text = "When only a number is asked for, answer with the number alone: no sentence, no unit."
    page.text_area("hand_text_new").set_value(text).run()
    assert "may say the same already" in html(page)
    assert "16 of at most 32 words" in html(page)
    page.selectbox("hand_domain").set_value("sums")
    fine(page.button("hand_send").click().run())
    [made] = [p for p in ws.store.proposals.page(("proposed",))[0] if p.extractor == "person"]
    assert made.operation == Add(text=text, domain="sums")
    assert len(ws.store.versions.library()) == 4


def test_a_new_lesson_without_a_text_is_one_red_line_and_nothing_is_lost(ws: Workspace) -> None:
    page = open_page("library")
    page.button("library_new").click().run()
    page.text_input("hand_why_new").set_value("seen twice")
    assert "Write the lesson first" in red(page.button("hand_send").click().run())
    assert page.text_input("hand_why_new").value == "seen twice"


def test_what_the_library_says_already_is_refused_in_one_red_line_and_kept_to_be_mended(
    ws: Workspace,
) -> None:
    said = ws.store.versions.library().experiences["E-0003"].text
    page = open_page("library")
    page.button("library_new").click().run()
    page.text_area("hand_text_new").set_value(said)
    assert "says the same already" in red(page.button("hand_send").click().run())
    assert page.text_area("hand_text_new").value == said


def test_tidying_up_shows_what_it_would_propose_before_it_does(ws: Workspace) -> None:
    before = ws.store.proposals.counts()["proposed"]
    page = open_page("library")
    page.button("library_tidy").click().run()
    for audit in ("unused", "confidence", "redundant"):
        page.checkbox(f"tidy_{audit}").uncheck()
    page.selectbox("tidy_strategy").set_value("importance")
    page.number_input("tidy_to").set_value(1).run()
    drawn = fine(page.button("tidy_look").click().run())
    assert "Would propose" in drawn
    assert ws.store.proposals.counts()["proposed"] == before
    fine(page.button("tidy_send").click().run())
    assert ws.store.proposals.counts()["proposed"] > before


def test_a_reader_may_look_and_not_propose(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_ROLE", "reader")
    assert open_page("library").button("library_new").disabled
    assert open_page("experience", id="E-0001").button("lesson_edit").disabled
    assert open_page("versions").button("back_1").disabled


# --- one lesson ---


def test_a_lesson_tells_what_it_said_what_it_earned_and_who_was_given_it(ws: Workspace) -> None:
    ws.store.credits.record(
        [
            Credit(
                experience_id="E-0001",
                source=f"R1-000{n}",
                followers=2,
                others=4,
                better=better,
                in_sample=n == 1,
            )
            for n, better in ((1, True), (2, False), (3, True))
        ]
    )
    drawn = fine(open_page("experience", id="E-0001"))
    assert "6 rollouts followed it, 12 of their siblings did not, in 3 contrasts." in drawn
    assert "small sample" in drawn
    assert "1 on tasks that it was learned from: no proof" in drawn
    assert "R3-0002-5" in drawn
    assert "Look further back" in [b.label for b in open_page("experience", id="E-0001").button]


def test_a_changed_lesson_shows_the_change_word_by_word(ws: Workspace) -> None:
    drawn = fine(open_page("experience", id="E-0002"))
    assert "<del>capital</del><ins>seat</ins>" in drawn
    assert "Version 2 until now" in drawn


def test_a_lesson_that_is_gone_keeps_its_page(ws: Workspace) -> None:
    publish(ws, Delete(experience_id="E-0003"))
    page = open_page("experience", id="E-0003")
    assert "It was taken out of the library." in fine(page)
    assert "lesson_edit" not in [b.key for b in page.button]


def test_a_lesson_that_never_was_is_said_kindly(ws: Workspace) -> None:
    page = open_page("experience", id="E-9999")
    assert not page.exception
    assert "There is no experience" in html(page)


class Hand(NamedTuple):
    """What a person does on the page of a lesson."""

    button: str
    write: Callable[[AppTest], object]
    op: str


HANDS = [
    Hand(
        "lesson_edit",
        lambda p: p.text_area("hand_text_E-0004").set_value("List the files, then read one."),
        "modify",
    ),
    Hand("lesson_out", lambda p: p.text_input("hand_why_out_E-0004").set_value("never used"), "delete"),
    Hand("lesson_merge", lambda p: p.multiselect("hand_others_E-0004").set_value(["E-0001"]), "merge"),
]


@pytest.mark.parametrize("hand", HANDS, ids=lambda h: h.op)
def test_what_a_person_changes_goes_to_review(hand: Hand, ws: Workspace) -> None:
    page = open_page("experience", id="E-0004")
    page.button(hand.button).click().run()
    hand.write(page)
    page.run()
    fine(page.button("hand_send").click().run())
    [made] = [p for p in ws.store.proposals.page(("proposed",))[0] if p.extractor == "person"]
    assert made.operation.op == hand.op
    assert "E-0004" in made.base_texts


def test_a_merge_with_nothing_is_one_red_line(ws: Workspace) -> None:
    page = open_page("experience", id="E-0003")
    page.button("lesson_merge").click().run()
    assert red(page.button("hand_send").click().run())
    assert not [p for p in ws.store.proposals.page(("proposed",))[0] if p.extractor == "person"]


# --- versions ---


def test_the_timeline_is_a_page_at_a_time(much: Workspace) -> None:
    drawn = fine(open_page("versions"))
    assert "41 versions, the newest first" in drawn
    assert drawn.count('<div class="w-version ') == 15
    assert "Batch 10<" not in drawn.replace(" <", "<")
    assert "Batch 10" in fine(open_page("versions", versions_page="3"))


def test_any_two_versions_can_be_compared_from_an_address(ws: Workspace) -> None:
    ws.review.set_label("production", 2, "ann")
    drawn = fine(open_page("versions", versions_a="1", versions_b="production"))
    assert "2 lessons: 1 new, 1 changed, 0 taken out" in drawn
    assert "<del>capital</del><ins>seat</ins>" in drawn


def test_comparing_with_a_version_that_is_not_there_is_one_red_line(ws: Workspace) -> None:
    assert "neither the number of a version nor a label" in red(
        open_page("versions", versions_a="1", versions_b="nowhere")
    )


def test_a_version_of_an_address_is_shown(ws: Workspace) -> None:
    assert "<h2>Version 1</h2>" in fine(open_page("versions", id="1"))


def test_going_back_shows_exactly_what_it_would_do_first(ws: Workspace) -> None:
    page = open_page("versions")
    drawn = fine(page.button("back_1").click().run())
    assert "2 lessons: 0 new, 1 changed, 1 taken out" in drawn
    assert ws.store.versions.head() == 2
    page.text_input("versions_message").set_value("the capitals were better")
    fine(page.button("versions_roll_back").click().run())
    assert ws.store.versions.get(3).message == "the capitals were better"
    assert [e.text for e in ws.store.versions.library()] == [e.text for e in ws.store.versions.library(1)]


def test_a_protected_label_moves_only_with_a_tick(ws: Workspace) -> None:
    ws.review.set_label("production", 1, "ann")
    page = open_page("versions")
    assert page.button("label_production_move").disabled
    page.checkbox("label_production_sure").check().run()
    fine(page.button("label_production_move").click().run())
    assert ws.store.labels.find("production").version == 2  # type: ignore[union-attr]


def test_a_label_that_somebody_else_moved_stays_where_they_put_it(ws: Workspace) -> None:
    ws.review.set_label("canary", 1, "ann")
    page = open_page("versions")
    ws.review.set_label("canary", 0, "bob")
    assert "bob" in red(page.button("label_canary_move").click().run())
    assert ws.store.labels.find("canary").version == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "good"), [("stable", True), ("no label", False)])
def test_a_label_is_made(name: str, good: bool, ws: Workspace) -> None:
    page = open_page("versions")
    page.text_input("label_new").set_value(name)
    drawn = (fine if good else red)(page.button("label_new_make").click().run())
    assert ("points at version 2" if good else "cannot be a label") in drawn


def test_a_rollback_of_what_reads_the_same_has_nothing_to_do(ws: Workspace) -> None:
    ws.review.rollback(1, "ann")
    page = open_page("versions")
    assert "there is nothing to roll back" in fine(page.button("back_1").click().run())
    assert "versions_roll_back" not in [b.key for b in page.button]


def test_a_change_of_a_domain_is_told(ws: Workspace) -> None:
    text = ws.store.versions.library().experiences["E-0003"].text
    publish(ws, Modify(experience_id="E-0003", text=text, domain="sums"))
    assert "domain: general becomes sums" in fine(open_page("versions", versions_a="2", versions_b="3"))
