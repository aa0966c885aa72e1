"""What the pages of the library list."""

from __future__ import annotations

import pytest

from core.credit import Credit
from core.errors import InputError, NotFoundError
from core.experience import Add, Delete, Modify
from core.store import library_pages
from core.store.library_pages import LibraryPages, Shelf
from core.workspace import Workspace
from tests.pages.workspaces import LESSON, fill, publish


@pytest.fixture
def ws(workspace: Workspace) -> Workspace:
    publish(workspace, Add(text=LESSON, domain="sums"), Add(text="Read the file first.", kind="convention"))
    publish(
        workspace, Modify(experience_id="E-0002", text="List the files first."), Add(text="Cite the path.")
    )
    return workspace


def ids(ws: Workspace, **shelf: object) -> list[str]:
    found, total = LibraryPages(ws.store).page(Shelf.read(shelf))
    assert total == len(found)
    return [hit.experience.id for hit in found]


def test_the_newest_lessons_come_first_and_a_page_says_how_many_there_are(ws: Workspace) -> None:
    found, total = LibraryPages(ws.store).page(Shelf(), limit=1, offset=1)
    assert ([hit.experience.id for hit in found], total) == (["E-0002"], 3)


def test_each_filter_takes_what_it_names(ws: Workspace) -> None:
    assert ids(ws, domain="sums") == ["E-0001"]
    assert ids(ws, kind="convention") == ["E-0002"]
    assert ids(ws, learned_on="another-model") == []
    assert ids(ws, used="used") == []
    assert ids(ws, confidence_from=0.9) == []


def test_words_are_found_and_marked_in_the_newest_version_and_in_an_older_one(ws: Workspace) -> None:
    [hit], _ = LibraryPages(ws.store).page(Shelf(text="files first"))
    assert hit.marked() == "List the «files» «first»."
    [old], _ = LibraryPages(ws.store).page(Shelf(text="FILE first", version=1))
    assert old.marked() == "Read the «file» «first»."


def test_an_id_finds_its_lesson(ws: Workspace) -> None:
    assert ids(ws, text=" e-0003 ") == ["E-0003"]
    assert ids(ws, text="E-0003", version=1) == []


def test_a_version_that_is_not_there_and_a_range_that_holds_nothing_are_refused(ws: Workspace) -> None:
    with pytest.raises(NotFoundError):
        ids(ws, version=9)
    with pytest.raises(InputError):
        ids(ws, confidence_from=0.8, confidence_to=0.2)


def test_what_was_followed_only_where_it_was_learned_is_told_apart(ws: Workspace) -> None:
    def credit(of: str, source: str, better: bool, in_sample: bool) -> Credit:
        return Credit(
            experience_id=of, source=source, followers=2, others=3, better=better, in_sample=in_sample
        )

    ws.store.credits.record(
        [
            credit("E-0001", "g1", True, True),
            credit("E-0002", "g2", False, True),
            credit("E-0002", "g3", True, False),
        ]
    )
    assert ids(ws, proof="in-sample") == ["E-0001"]
    assert ids(ws, proof="elsewhere") == ["E-0002"]
    record = LibraryPages(ws.store).records(["E-0002"])["E-0002"]
    assert (record.worse, record.pending) == (1, 2)


def test_proposals_about_a_lesson_are_counted_with_merges(workspace: Workspace) -> None:
    fill(workspace.folder)
    counted = {
        i: r.waiting for i, r in LibraryPages(workspace.store).records(["E-0001", "E-0002", "E-0004"]).items()
    }
    assert counted == {"E-0001": 1, "E-0002": 1, "E-0004": 1}


def test_facets_count_the_live_lessons_of_a_version(ws: Workspace) -> None:
    pages = LibraryPages(ws.store)
    assert pages.facets().domain == {"general": 2, "sums": 1}
    assert pages.facets(1).domain == {"general": 1, "sums": 1}


def test_the_changes_of_a_version_are_told_by_what_they_do(ws: Workspace) -> None:
    publish(ws, Delete(experience_id="E-0003"))
    told = LibraryPages(ws.store).changes([1, 2, 3])
    assert [(c.added, c.changed, c.gone, c.earned) for _, c in sorted(told.items())] == [
        (2, 0, 0, 0),
        (1, 1, 0, 0),
        (0, 0, 1, 0),
    ]


def test_a_sample_of_a_version_is_spread_over_it(ws: Workspace) -> None:
    pages = LibraryPages(ws.store)
    assert [e.id for e in pages.sample(2, 10)] == ["E-0001", "E-0002", "E-0003"]
    assert [e.id for e in pages.sample(2, 2)] == ["E-0002"]


def test_rollouts_that_were_given_a_lesson_are_found_a_bounded_look_at_a_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace.folder)
    pages = LibraryPages(workspace.store)
    whole = pages.given("E-0001", limit=10_000)
    assert whole.before is None
    assert len(whole.rollouts) == workspace.store.groups.count_rollouts()
    assert whole.rollouts[0].label == "G0"
    assert pages.given("E-0002").rollouts == ()
    monkeypatch.setattr(library_pages, "WINDOW", 7)
    found: list[str] = []
    page = pages.given("E-0001", limit=5)
    while True:
        found += [r.id for r in page.rollouts]
        if page.before is None:
            break
        page = pages.given("E-0001", before=page.before, limit=5)
    assert found == [r.id for r in whole.rollouts]
