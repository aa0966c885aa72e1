from __future__ import annotations

import threading

import pytest

from core.errors import ApplyError, InputError, StaleVersionError, WinnowError
from core.experience import Delete, Merge, Modify
from core.packs import read_pack
from core.workspace import Workspace
from tests.make import propose, publish


def test_an_approved_proposal_waits_for_publishing_and_then_becomes_an_experience(
    workspace: Workspace,
) -> None:
    [first] = propose(workspace, "Answer with one word.")
    workspace.review.approve(first, "ann")
    assert len(workspace.store.versions.library()) == 0
    version = workspace.review.publish("First lessons", "ann")
    [experience] = workspace.store.versions.library()
    assert (version.number, version.author, version.message) == (1, "ann", "First lessons")
    assert (experience.id, experience.text, experience.proposal_id) == (
        "E-0001",
        "Answer with one word.",
        first,
    )
    assert workspace.store.proposals.get(first).experience_id == "E-0001"


def test_the_text_that_is_stored_is_the_text_that_was_reviewed_character_for_character(
    workspace: Workspace,
) -> None:
    text = "  Use `a->b` and ${x}, $5 and $x^2$ {} \t— “quoted”\n字 👍🏽 \u202eright to left\u202c <b>not bold</b> "
    publish(workspace, text)
    [experience] = workspace.store.versions.library()
    assert experience.text == text


def test_the_reviewers_own_text_is_what_is_published_and_the_proposed_one_is_kept(
    workspace: Workspace,
) -> None:
    [first] = propose(workspace, "Answer with one word.")
    workspace.review.approve(first, "ann", text="Answer with the number alone.")
    workspace.review.publish("Edited", "ann")
    [experience] = workspace.store.versions.library()
    assert experience.text == "Answer with the number alone."
    assert workspace.store.proposals.get(first).operation.text == "Answer with one word."  # type: ignore[union-attr]


def test_a_text_of_more_than_32_words_has_to_be_shortened_before_it_is_approved(workspace: Workspace) -> None:
    [first] = propose(workspace, "word " * 40)
    with pytest.raises(ApplyError, match="40 words"):
        workspace.review.approve(first, "ann")
    workspace.review.edit(first, "Shorter now.", "ann")
    assert workspace.review.approve(first, "ann").status == "approved"


def test_a_rejection_needs_a_reason_and_keeps_it(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    with pytest.raises(InputError, match="Say why"):
        workspace.review.reject(first, "  ", "ann")
    workspace.review.reject(first, "harms JSON tasks", "ann")
    assert workspace.store.proposals.get(first).reason == "harms JSON tasks"


@pytest.mark.parametrize("decision", ["approve", "reject", "defer"])
def test_every_decision_can_be_undone_until_it_is_published(workspace: Workspace, decision: str) -> None:
    [first] = propose(workspace, "Answer with one word.")
    if decision == "approve":
        workspace.review.approve(first, "ann")
    else:
        getattr(workspace.review, decision)(first, "a reason", "ann")
    assert workspace.review.undo(first, "ann").status == "proposed"


def test_what_is_published_is_undone_by_a_new_version_and_the_message_says_how(workspace: Workspace) -> None:
    publish(workspace, "Answer with one word.")
    with pytest.raises(InputError, match="winnow rollback 0"):
        workspace.review.undo("P-0001", "ann")
    version = workspace.review.rollback(0, "ann")
    assert (version.number, len(workspace.store.versions.library())) == (2, 0)
    assert len(workspace.store.versions.library(1)) == 1


def test_a_rollback_gives_back_every_text_byte_for_byte(workspace: Workspace) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    publish(
        workspace,
        Modify(experience_id="E-0001", text="Changed."),
        Delete(experience_id="E-0002"),
        "Third lesson.",
    )
    workspace.review.rollback(1, "ann")
    texts = {e.id: e.text for e in workspace.store.versions.library()}
    assert texts == {"E-0001": "First lesson.", "E-0002": "Second lesson."}
    publish(workspace, "Fourth lesson.")
    assert "E-0004" in workspace.store.versions.library().experiences, (
        "the id of the third lesson is never used again"
    )


def test_a_second_reviewer_is_told_who_decided_meanwhile(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    seen = workspace.store.proposals.get(first).revision
    workspace.review.edit(first, "Answer with the word alone.", "ann", revision=seen)
    with pytest.raises(ApplyError, match="ann"):
        workspace.review.approve(first, "bob", revision=seen)
    assert workspace.store.proposals.get(first).edited_text == "Answer with the word alone."


def test_publishing_on_a_version_that_moved_on_is_refused_and_says_what_moved(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [other] = propose(workspace, "Second lesson.")
    workspace.review.approve(other, "bob")
    with pytest.raises(StaleVersionError, match="ann published 'test'"):
        workspace.review.publish("mine", "bob", parent=0)
    assert workspace.store.versions.head() == 1


def test_a_proposal_whose_target_changed_since_is_stale_and_cannot_be_approved(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    with pytest.raises(ApplyError, match="the text of E-0001 changed"):
        workspace.review.approve(older, "ann")


def test_two_staged_changes_of_one_experience_are_refused_by_name(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    one, other = propose(
        workspace, Modify(experience_id="E-0001", text="One way."), Delete(experience_id="E-0001")
    )
    workspace.review.approve(one, "ann")
    with pytest.raises(ApplyError, match=f"{one} is approved already and changes E-0001"):
        workspace.review.approve(other, "bob")


def test_the_preview_is_exactly_what_publishing_does(workspace: Workspace) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    ids = propose(
        workspace,
        Merge(experience_ids=("E-0001", "E-0002"), text="Both lessons."),
        "A third lesson, which is longer than the others were.",
    )
    for proposal_id in ids:
        workspace.review.approve(proposal_id, "ann")
    preview = workspace.review.preview()
    workspace.review.publish("", "ann", parent=preview.parent)
    texts = {e.id: e.text for e in workspace.store.versions.library()}
    assert {d.experience_id: d.after for d in preview.differences if d.after is not None} == texts
    assert [d.before for d in preview.differences] == ["First lesson.", "Second lesson.", None]
    assert preview.tokens_after > preview.tokens_before > 0


def test_publishing_nothing_is_refused_and_makes_no_version(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="Nothing is approved"):
        workspace.review.publish("", "ann")
    assert workspace.store.versions.head() == 0


def test_an_experience_leads_back_to_its_proposal_groups_rollouts_and_reviewer(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    experience, [proposal] = workspace.review.origin("E-0001")
    assert experience.proposal_id == proposal.id
    assert proposal.evidence.group_ids == ("R1-0001",)
    assert proposal.evidence.rollout_ids == ("R1-0001-0",)
    assert proposal.decided_by == "ann"


def test_of_many_reviewers_who_approve_at_once_exactly_one_succeeds(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    barrier = threading.Barrier(6)
    outcomes: list[str] = []

    def decide(name: str) -> None:
        barrier.wait()
        try:
            workspace.review.approve(first, name, revision=0)
            outcomes.append("approved")
        except WinnowError as e:
            outcomes.append(type(e).__name__)

    threads = [threading.Thread(target=decide, args=(f"reviewer {i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("approved") == 1, outcomes
    assert len(outcomes) == 6


def test_the_log_tells_every_decision_and_cannot_be_changed(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    workspace.review.approve(first, "ann")
    workspace.review.undo(first, "bob")
    kinds = [(e.kind, e.actor) for e in workspace.store.events.newest(subject=first)]
    assert kinds == [("proposal.undone", "bob"), ("proposal.approved", "ann"), ("proposal.made", "test")]
    database = workspace.store.runs._database
    with pytest.raises(Exception, match="append-only"), database.writing():
        database.execute("DELETE FROM events")


def test_a_stale_proposal_can_be_edited_against_the_new_text_and_is_fresh_again(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    workspace.review.edit(older, "One way, or another.", "ann")
    assert workspace.review.approve(older, "ann").base_texts == {"E-0001": "Another way."}
    assert workspace.review.publish("", "ann").number == 3


def test_two_proposals_that_say_the_same_are_not_both_approved_and_publishing_stays_possible(
    workspace: Workspace,
) -> None:
    one, other = propose(workspace, "Answer with one word.", "answer with one word")
    workspace.review.approve(one, "ann")
    with pytest.raises(ApplyError, match=one):
        workspace.review.approve(other, "ann")
    assert workspace.review.publish("", "ann").size == 1


def test_a_pack_says_where_each_lesson_came_from_unless_it_is_told_not_to(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [packed] = read_pack(workspace.shipping.export("pack").data).experiences
    assert packed.provenance is not None
    told = packed.provenance.canonical()
    for part in ("P-0001", "ann", "R1-0001", "7 of 8 winners answered with one word"):
        assert part in told
    [redacted] = read_pack(workspace.shipping.export("pack", provenance=False).data).experiences
    assert redacted.provenance is None


def test_an_old_version_ships_the_same_bytes_whatever_came_after_it(workspace: Workspace) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    before = workspace.shipping.export("pack", 1).sha256
    publish(workspace, Merge(experience_ids=("E-0001", "E-0002"), text="Both lessons."))
    workspace.review.rollback(1, "ann")
    assert workspace.shipping.export("pack", 1).sha256 == before


def test_an_edit_can_be_undone_to_the_text_that_was_proposed(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    workspace.review.edit(first, "My own words.", "ann")
    assert workspace.review.undo(first, "ann").edited_text is None
    with pytest.raises(InputError, match="no decision to undo"):
        workspace.review.undo(first, "ann")
