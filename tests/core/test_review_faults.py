"""Faults of other systems that destroyed entries while applying operations; each is named after its number.

P2, H5: the paper's code; K2 to K7: Kayba's skillbook; A3: ACE.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from core.errors import ApplyError, InputError, UnknownExperienceError
from core.experience import Add, Delete, Merge, Modify, Operation
from core.library import Change
from core.workspace import Workspace
from tests.make import propose, publish


def live(workspace: Workspace) -> dict[str, str]:
    return {e.id: e.text for e in workspace.store.versions.library()}


@pytest.fixture
def two(workspace: Workspace) -> Workspace:
    publish(workspace, "First lesson.", "Second lesson.")
    return workspace


def stage_behind_the_rules(workspace: Workspace, *operations: Operation) -> list[str]:
    """Approved proposals that no reviewer could have approved: as if the rules had a hole."""
    ids = propose(workspace, *operations)
    with workspace.store.writing():
        workspace.store.runs._database.execute(
            "UPDATE proposals SET status = 'approved' WHERE status = 'proposed'"
        )
    return ids


# -- P2: a merge without a text deleted its sources first, then failed -----------------------------


@pytest.mark.parametrize("text", ["", "  ", "\x00", None])
def test_p2_a_merge_without_a_text_is_none_and_its_sources_stay(two: Workspace, text: str | None) -> None:
    with pytest.raises(InputError, match="merge: text"):
        Merge.read({"experience_ids": ["E-0001", "E-0002"], "text": text}, where="merge")
    [merge] = propose(two, Merge(experience_ids=("E-0001", "E-0002"), text="Both."))
    with pytest.raises(InputError):
        two.review.approve(merge, "ann", text=text or "")
    assert live(two) == {"E-0001": "First lesson.", "E-0002": "Second lesson."}


# -- H5: a batch stopped in its middle, half applied; a merge of unknown ids added an entry --------


@pytest.mark.parametrize(
    "bad",
    [
        Modify(experience_id="E-0009", text="Of nobody."),
        Delete(experience_id="E-0009"),
        Merge(experience_ids=("E-0008", "E-0009"), text="Of nobody."),
        Merge(experience_ids=("E-0001", "E-0009"), text="Of half."),
        Add(text="word " * 500, domain="sums"),
        Add(text="first lesson", domain="sums"),
    ],
)
def test_h5_a_batch_with_one_bad_operation_is_not_applied_at_all(two: Workspace, bad: Operation) -> None:
    ids = stage_behind_the_rules(
        two, Add(text="Third lesson.", domain="sums"), Delete(experience_id="E-0002"), bad
    )
    dump = two.store.dump()
    with pytest.raises(ApplyError, match=ids[-1]):
        two.review.publish("half", "ann")
    assert two.store.dump() == dump


def test_h5_a_merge_of_unknown_ids_adds_nothing(two: Workspace) -> None:
    library = two.store.versions.library()
    with pytest.raises(UnknownExperienceError, match="E-0008"):
        library.apply([Change(Merge(experience_ids=("E-0008", "E-0009"), text="Both."))], 3)
    assert live(two) == {"E-0001": "First lesson.", "E-0002": "Second lesson."}


# -- K2: an operation with an empty part raised in the middle of a batch ---------------------------


@pytest.mark.parametrize("part", ["text", "experience_id"])
def test_k2_an_operation_that_lacks_a_part_is_refused_before_anything_is_applied(part: str) -> None:
    whole = {"op": "modify", "experience_id": "E-0001", "text": "New."}
    del whole[part]
    with pytest.raises(InputError, match=part):
        Modify.read(whole, where="operation")


# -- K3: the embedding of an entry was that of its old text ----------------------------------------


class Counting:
    name, dimension = "counting", 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(t), 1, 1] for t in texts], dtype=np.float32)


def test_k3_a_changed_lesson_is_embedded_anew_and_its_old_text_keeps_its_own(two: Workspace) -> None:
    embedder = Counting()
    before = two.store.embeddings.embed(list(live(two).values()), embedder)
    publish(two, Modify(experience_id="E-0001", text="Another first lesson."))
    after = two.store.embeddings.embed(list(live(two).values()), embedder)
    assert embedder.asked[-1] == "Another first lesson."
    assert after[0, 0] != before[0, 0]
    assert after[1, 0] == before[1, 0]


# -- K4: a merge into a deleted keeper lost both ---------------------------------------------------


@pytest.mark.parametrize("ids", [("E-0001", "E-0002"), ("E-0002", "E-0001")])
def test_k4_a_merge_with_a_deleted_lesson_is_refused_and_the_other_one_stays(
    two: Workspace, ids: tuple[str, str]
) -> None:
    publish(two, Delete(experience_id="E-0001"))
    [merge] = propose(two, Merge(experience_ids=ids, text="Both lessons."))
    with pytest.raises(ApplyError, match="E-0001"):
        two.review.approve(merge, "ann")
    assert live(two) == {"E-0002": "Second lesson."}


# -- K5: an empty update wiped the text ------------------------------------------------------------


def test_k5_an_empty_text_is_no_change_of_a_lesson(two: Workspace) -> None:
    with pytest.raises(ValidationError, match="the text is empty"):
        Modify(experience_id="E-0001", text="")
    [change] = propose(two, Modify(experience_id="E-0001", text="New."))
    with pytest.raises(InputError, match="the text is empty"):
        two.review.edit(change, " \n", "ann")
    assert live(two)["E-0001"] == "First lesson."


# -- K6: one unknown operation rejected the whole batch --------------------------------------------


def test_k6_one_proposal_that_does_not_fit_keeps_no_other_one_from_being_published(two: Workspace) -> None:
    good, bad = propose(two, "Third lesson.", Modify(experience_id="E-0009", text="Of nobody."))
    two.review.approve(good, "ann")
    with pytest.raises(ApplyError, match="E-0009"):
        two.review.approve(bad, "ann")
    two.review.publish("", "ann")
    assert live(two)["E-0003"] == "Third lesson."
    assert two.store.proposals.get(bad).status == "proposed", "it waits for somebody to edit or reject it"


# -- K7: an add with an id that was there overwrote it ---------------------------------------------


def test_k7_an_add_has_no_id_to_overwrite_anything_with(two: Workspace) -> None:
    with pytest.raises(InputError, match="experience_id"):
        Add.read({"text": "Third lesson.", "experience_id": "E-0001"}, where="add")
    publish(two, "Third lesson.")
    assert live(two) == {"E-0001": "First lesson.", "E-0002": "Second lesson.", "E-0003": "Third lesson."}


# -- A3: the next id began at 1 when a playbook was loaded -----------------------------------------


def test_a3_ids_go_on_where_they_were_after_a_restart_a_rollback_and_a_delete(
    two: Workspace, tmp_path: Path
) -> None:
    two.review.rollback(0, "ann")
    again = Workspace(two.folder)
    publish(again, "Third lesson.")
    publish(again, Delete(experience_id="E-0003"))
    publish(Workspace(two.folder), "Fourth lesson.")
    assert live(again) == {"E-0004": "Fourth lesson."}
    assert [p.id for p in again.store.proposals.every()] == [f"P-{n:04d}" for n in range(1, 6)]
