"""One decision on many proposals: previewed exactly, bound to what was looked at, made on all of them or on none."""

from __future__ import annotations

import pytest

from core.errors import ApplyError, BusyError, InputError, NotFoundError
from core.experience import Delete, Modify
from core.review import Seen
from core.review.bulk import Decision
from core.workspace import Workspace
from tests.make import propose, publish


@pytest.fixture
def five(workspace: Workspace) -> Workspace:
    """P-0002 to P-0006: two that go together, two rivals, and one that is too long."""
    publish(workspace, "First lesson.")
    propose(
        workspace,
        "Second lesson.",
        "Third lesson.",
        Modify(experience_id="E-0001", text="One way."),
        Delete(experience_id="E-0001"),
        "word " * 33,
    )
    return workspace


ALL = [Seen(f"P-{n:04d}", 0) for n in range(2, 7)]


def test_a_preview_says_of_each_what_would_come_of_it_and_changes_nothing(five: Workspace) -> None:
    dump = five.store.dump()
    weighed = five.review.weigh("approve", ALL, "ann")
    assert five.store.dump() == dump
    assert [one.seen for one in weighed] == ALL
    told = [one.refused for one in weighed]
    assert told[:3] == ["", "", ""]
    assert told[3].startswith("P-0004 and P-0005 both change E-0001, and both are named")
    assert "33 words" in told[4]


def test_what_a_preview_lets_through_is_approved_together_and_what_it_refuses_is_refused(
    five: Workspace,
) -> None:
    weighed = five.review.weigh("approve", ALL, "ann")
    fits = [one.seen for one in weighed if not one.refused]
    done = five.review.decide_all("approve", fits, "ann", reason="all good")
    assert [(p.id, p.status, p.reason, p.decided_by) for p in done] == [
        (one.proposal_id, "approved", "all good", "ann") for one in fits
    ]
    for one in weighed:
        if one.refused:
            with pytest.raises(ApplyError):
                five.review.decide_all("approve", [one.seen], "ann")
    assert five.review.publish("all", "ann").number == 2


@pytest.mark.parametrize("decision", ["approve", "reject", "defer", "undo"])
def test_what_was_changed_since_it_was_looked_at_is_refused_by_name_and_nothing_is_decided(
    five: Workspace, decision: Decision
) -> None:
    seen = ALL[:3]
    if decision == "undo":
        seen = [Seen(p.id, p.revision) for p in five.review.decide_all("reject", seen, "ann", reason="no")]
        five.review.undo("P-0003", "bob")
    else:
        five.review.edit("P-0003", "Bob's.", "bob")
    dump = five.store.dump()
    told = [one.refused for one in five.review.weigh(decision, seen, "ann")]
    with pytest.raises(
        (ApplyError, InputError), match=r"P-0003 (was changed meanwhile: bob|is proposed)"
    ) as refused:
        five.review.decide_all(decision, seen, "ann", reason="why")
    assert told == ["", str(refused.value), ""]
    assert five.store.dump() == dump


def test_what_somebody_else_holds_is_refused_unless_they_insist(five: Workspace) -> None:
    five.review.claim("P-0003", "bob")
    assert [bool(one.refused) for one in five.review.weigh("reject", ALL[:3], "ann")] == [False, True, False]
    with pytest.raises(BusyError, match="bob holds P-0003"):
        five.review.decide_all("reject", ALL[:3], "ann", reason="no")
    assert not any(one.refused for one in five.review.weigh("reject", ALL[:3], "ann", force=True))
    done = five.review.decide_all("reject", ALL[:3], "ann", reason="no", force=True)
    assert {p.status for p in done} == {"rejected"}
    assert five.review.claims() == []


def test_a_decision_on_many_can_be_undone_on_many(five: Workspace) -> None:
    deferred = five.review.decide_all("defer", ALL, "ann")
    undone = five.review.decide_all("undo", [Seen(p.id, p.revision) for p in deferred], "bob")
    assert {(p.status, p.revision) for p in undone} == {("proposed", 2)}


def test_a_target_that_moved_since_is_found_although_the_proposal_is_as_it_was(five: Workspace) -> None:
    publish(five, Modify(experience_id="E-0001", text="Moved."))
    told = {one.proposal.id: one.refused for one in five.review.weigh("approve", ALL, "ann")}
    assert told["P-0004"].startswith("P-0004 is stale: the text of E-0001 changed since version 1")
    with pytest.raises(ApplyError, match="P-0004 is stale"):
        five.review.decide_all("approve", ALL[:3], "ann")
    assert five.review.staged() == []


def test_a_rejection_of_many_needs_a_reason_and_a_name_that_is_none_is_refused(five: Workspace) -> None:
    with pytest.raises(InputError, match="Say why"):
        five.review.decide_all("reject", ALL, "ann", reason=" ")
    for call in (five.review.weigh, five.review.decide_all):
        with pytest.raises(NotFoundError, match="P-0099"):
            call("defer", [*ALL, Seen("P-0099")], "ann")
    assert five.store.proposals.counts() == {"proposed": 5, "published": 1}
