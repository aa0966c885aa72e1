"""What is looked up of one lesson is what a look at the whole library and at all proposals would find."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.credit import Credit
from core.experience import Add, Merge, targets_of
from core.workspace import Workspace
from core.workspace.crediting import by_lesson
from tests.pages.workspaces import fill, publish

OPEN = ("proposed", "deferred", "approved")


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Three lessons are merged into one, in two steps, and all of them earned something."""
    ws = fill(Path(tmp_path_factory.mktemp("lessons")) / "ws")
    publish(ws, Add(text="A lesson that nothing is merged with.", domain="sums"))
    publish(ws, Merge(experience_ids=("E-0002", "E-0004"), text="Name the seat, in a word."))
    publish(ws, Merge(experience_ids=("E-0001", "E-0002"), text="Answer with what was asked for alone."))
    ws.store.credits.record(
        Credit(experience_id=f"E-000{n}", source=f"R1-000{m}", followers=3, others=3, better=True)
        for n in range(1, 6)
        for m in range(1, n + 2)
    )
    return ws


def test_what_a_lesson_earned_counts_what_is_merged_into_it_and_no_more(ws: Workspace) -> None:
    library, store = ws.store.versions.library(), ws.store
    found = by_lesson(library, store.credits.pending())
    assert {c.experience_id for c in found["E-0001"]} == {"E-0001", "E-0002", "E-0004"}
    for lesson in library:
        assert store.credits.pending(of=lesson.id) == found[lesson.id]


def test_proposals_about_a_lesson_are_those_that_name_it_as_what_they_change(ws: Workspace) -> None:
    waiting, total = ws.store.proposals.page(OPEN, limit=1000)
    assert total == len(waiting) > 3
    for lesson_id in ws.store.versions.library().experiences:
        named = [p for p in waiting if lesson_id in targets_of(p.operation)]
        assert ws.store.proposals.about(lesson_id, OPEN) == named
    assert len(ws.store.proposals.about("E-0002", OPEN)) == 1
    assert ws.store.proposals.about("E-000", OPEN) == []
