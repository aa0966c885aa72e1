"""All that is known of an experience, on one screen and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.credit import Credit
from core.experience import Add, Delete, Merge, Modify
from core.workspace import Workspace
from core.workspace.dossier import dossier
from tests.core.test_library_reading import as_json, winnow, with_origin
from tests.make import propose, publish, ticking


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "ws", clock=ticking())


def earn(
    workspace: Workspace, experience_id: str, *better: bool | None, start: int = 1, **fields: bool
) -> None:
    workspace.store.credits.record(
        Credit(
            experience_id=experience_id, source=f"R9-{i:04d}", followers=2, others=3, better=outcome, **fields
        )
        for i, outcome in enumerate(better, start)
    )


def test_what_a_lesson_earned_is_shown_with_the_size_of_its_contrasts(workspace: Workspace) -> None:
    publish(workspace, "Answer in one word.")
    earn(workspace, "E-0001", True, False, None)
    publish(workspace, "Another lesson.")
    earn(workspace, "E-0001", True, start=4, in_sample=True)
    found = dossier(workspace.store, "E-0001")
    earned = found.earned
    assert (earned.uses, earned.wins, earned.losses, earned.undecided) == (4, 2, 1, 1)
    assert (earned.followers, earned.others, earned.in_sample, earned.pending) == (8, 12, 1, 1)
    assert [e.folded_in for e in found.earnings] == [2, 2, 2, None]
    assert (found.experience.uses, found.pending.uses) == (3, 4)
    assert found.pending.confidence > found.experience.confidence
    _, out = winnow(workspace, "library", "show", "E-0001")
    for part in (
        f"pending, with the next version: confidence {found.pending.confidence:.2f}, 4 uses, 2 wins",
        "4 uses: better in 2, worse in 1, undecided in 1; 8 rollouts followed it, 12 did not",
        "1 of them in-sample",
        "R9-0004  better",
    ):
        assert part in out, part


def test_a_lesson_that_nobody_followed_has_earned_nothing(workspace: Workspace) -> None:
    publish(workspace, "Answer in one word.")
    workspace.store.credits.record(
        [Credit(experience_id="E-0001", source="R9-0001", followers=0, others=4, in_sample=True)]
    )
    assert dossier(workspace.store, "E-0001").earned.uses == 0
    _, out = winnow(workspace, "library", "show", "E-0001")
    assert "--- earned" not in out
    assert "pending" not in out


def test_the_versions_that_hold_a_lesson_and_their_labels_are_named(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    publish(workspace, Modify(experience_id="E-0001", text="First."))
    publish(workspace, Delete(experience_id="E-0001"))
    workspace.review.rollback(2, "ann")
    workspace.store.labels.set("production", 2, "ann")
    workspace.store.labels.set("empty", 3, "ann")
    found = dossier(workspace.store, "E-0001")
    assert [(s.from_version, s.to_version, s.labels) for s in found.live_in] == [
        (1, 3, ("production (2)",)),
        (4, None, ()),
    ]
    _, out = winnow(workspace, "library", "show", "E-0001")
    assert "live in versions 1 to 2 [production (2)], version 4 and all since" in out


def test_the_tasks_that_a_lesson_was_learned_from_are_marked_through_merges_too(workspace: Workspace) -> None:
    with_origin(workspace)
    publish(workspace, "Another lesson.")
    publish(workspace, Merge(experience_ids=("E-0002", "E-0001"), text="Call read_json first, always."))
    whole = workspace.store.credits.tasks_behind(workspace.store.versions.head())
    for experience_id in ("E-0001", "E-0002"):
        found = dossier(workspace.store, experience_id).in_sample_tasks
        assert found == tuple(sorted(whole[experience_id]))
        assert len(found) == 2
    _, out = winnow(workspace, "library", "show", "E-0002")
    assert "in-sample on 2 tasks that it was learned from" in out


def test_what_waits_about_a_lesson_is_named_until_it_is_decided_and_published(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    propose(
        workspace,
        Modify(experience_id="E-0001", text="First."),
        Merge(experience_ids=("E-0002", "E-0001"), text="Both."),
        Delete(experience_id="E-0002"),
        "Three.",
    )
    assert [p.id for p in dossier(workspace.store, "E-0001").waiting] == ["P-0003", "P-0004"]
    _, out = winnow(workspace, "library", "show", "E-0001")
    assert "waiting: P-0003 modify (proposed): First." in out
    workspace.review.reject("P-0004", "no", "ann")
    workspace.review.approve("P-0003", "ann")
    assert [p.status for p in dossier(workspace.store, "E-0001").waiting] == ["approved"]
    workspace.review.publish("m", "ann")
    assert dossier(workspace.store, "E-0001").waiting == ()


def test_a_lesson_names_the_library_that_it_was_brought_from_and_what_was_claimed_there(
    workspace: Workspace,
) -> None:
    publish(workspace, Add(text="Read the file."))
    data = json.dumps({"X1": "Ask once.", "X2": "read the file"}).encode()
    workspace.shipping.arriving.library(data, "theirs.json", "bob")
    workspace.review.approve("P-0002", "ann")
    workspace.review.publish("m", "ann")
    [brought] = dossier(workspace.store, "E-0002").imported
    assert (brought.into, brought.joined, brought.their_id, brought.actor) == ("P-0002", False, "X1", "bob")
    assert (brought.source, brought.form) == ("theirs.json", "json")
    [same] = dossier(workspace.store, "E-0001").imported
    assert (same.into, same.joined, same.their_id) == ("E-0001", True, "X2")
    _, out = winnow(workspace, "library", "show", "E-0002")
    assert "imported from theirs.json (json, sha256 " in out
    _, out = winnow(workspace, "library", "show", "E-0001")
    assert "said by theirs.json" in out


def test_the_json_has_all_that_the_screen_has(workspace: Workspace) -> None:
    with_origin(workspace)
    earn(workspace, "E-0001", True)
    found = as_json(workspace, "library", "show", "E-0001")
    assert {"experience", "history", "origins", "pending", "earned", "earnings"} <= found.keys()
    assert {"in_sample_tasks", "live_in", "waiting", "imported"} <= found.keys()
    assert found["experience"]["learned_on"] == "stub-model"
    assert found["earnings"][0]["source"] == "R9-0001"
