from __future__ import annotations

import threading

import pytest

from core.errors import ApplyError, InputError, StaleVersionError, WinnowError
from core.experience import Add, Delete, Evidence, Merge, Modify, Proposal, Quarantined
from core.packs import read_pack
from core.review import stale
from core.workspace import Workspace
from tests.make import make_proposal, propose, publish


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


def test_a_stale_proposal_is_rebased_on_the_new_text_and_keeps_its_evidence_and_history(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    evidence = workspace.store.proposals.get(older).evidence
    done = workspace.review.rebase(older, "ann", text="One way, or another.")
    assert (done.base_texts, done.base_version, done.status) == ({"E-0001": "Another way."}, 2, "proposed")
    assert (done.evidence, done.edited_text) == (evidence, "One way, or another.")
    workspace.review.approve(older, "ann")
    assert workspace.review.publish("", "ann").number == 3
    kinds = [e.event.kind for e in workspace.store.events.of(older)]
    assert kinds == [f"proposal.{k}" for k in ("made", "rebased", "approved", "published")]


def test_an_edit_alone_does_not_make_a_stale_proposal_fresh(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    with pytest.raises(ApplyError, match=f"winnow review rebase {older}"):
        workspace.review.approve(older, "ann", text="One way, or another.")
    assert workspace.store.proposals.get(older).edited_text is None, "the edit went with the approval"


def test_what_is_not_stale_cannot_be_rebased_and_what_is_gone_neither(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    with pytest.raises(InputError, match="is not stale"):
        workspace.review.rebase(older, "ann")
    publish(workspace, Delete(experience_id="E-0001"))
    with pytest.raises(ApplyError, match="E-0001 was deleted"):
        workspace.review.rebase(older, "ann")


def test_a_rebase_can_be_undone_and_the_proposal_is_stale_again(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    before = workspace.store.proposals.get(older)
    workspace.review.rebase(older, "ann", text="Mine.")
    after = workspace.review.undo(older, "ann")
    assert (after.base_texts, after.base_version, after.edited_text) == (before.base_texts, 1, None)


def test_the_stale_are_listed_and_are_those_that_the_rule_calls_stale(workspace: Workspace) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    one, other, delete, _ = propose(
        workspace,
        Modify(experience_id="E-0001", text="One way."),
        Modify(experience_id="E-0002", text="Other way."),
        Delete(experience_id="E-0001"),
        "Third lesson.",
    )
    workspace.review.approve(one, "ann")
    workspace.review.publish("", "ann", only=[one])
    library = workspace.store.versions.library()
    found, total = workspace.store.proposals.page(["stale"])
    by_rule = [
        p.id for p in workspace.store.proposals.every() if p.status == "proposed" and stale(p, library)
    ]
    assert [p.id for p in found] == by_rule == [delete]
    assert total == 1
    workspace.review.rollback(1, "ann")
    assert workspace.store.proposals.page(["stale"])[1] == 0, "the old text is back, so it is fresh again"
    assert other


def test_every_decision_tells_who_when_why_and_on_which_version(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    first, second = propose(workspace, "Second lesson.", "Third lesson.")
    workspace.review.approve(first, "ann", reason="seen it work")
    workspace.review.reject(second, "too narrow", "bob")
    workspace.review.undo(first, "cem")
    approved, undone = [e.event for e in workspace.store.events.of(first)][1:]
    [rejected] = [e.event for e in workspace.store.events.of(second)][1:]
    assert (approved.actor, approved.data["reason"], approved.data["base"]) == ("ann", "seen it work", 1)
    assert (rejected.actor, rejected.data["reason"], rejected.data["base"]) == ("bob", "too narrow", 1)
    assert (undone.actor, undone.data["was"], undone.data["base"]) == ("cem", "approved", 1)
    assert approved.at < undone.at


def test_a_superseded_proposal_can_be_brought_back_and_undo_puts_it_where_it_was(
    workspace: Workspace,
) -> None:
    lost = make_proposal("Answer with one word.", status="superseded", reason="P-0009 has the better group")
    [proposal_id] = workspace.store.proposals.add([lost], "test")
    assert workspace.review.approve(proposal_id, "ann").status == "approved"
    back = workspace.review.undo(proposal_id, "ann")
    assert (back.status, back.reason) == ("superseded", "P-0009 has the better group")


def test_undo_goes_back_decision_by_decision(workspace: Workspace) -> None:
    [first] = propose(workspace, "Answer with one word.")
    workspace.review.edit(first, "Mine.", "ann")
    workspace.review.edit(first, "Mine, too.", "ann")
    workspace.review.defer(first, "later", "ann")
    workspace.review.approve(first, "ann", text="Mine at last.")
    seen = []
    for _ in range(5):
        now = workspace.review.undo(first, "ann")
        seen.append((now.status, now.reason, now.edited_text))
    assert seen == [
        ("deferred", "later", "Mine at last."),
        ("deferred", "later", "Mine, too."),
        ("proposed", "", "Mine, too."),
        ("proposed", "", "Mine."),
        ("proposed", "", None),
    ]


def test_what_is_quarantined_becomes_a_proposal_once_a_person_says_what_was_meant(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.")
    raw = '{"op": "update", "id": "[G9]", "text": "Check it."}'
    workspace.store.proposals.quarantine(
        [Quarantined(reason="G9 is not in the library", raw=raw, group_ids=("R1-0001",))]
    )
    [item], total = workspace.store.proposals.quarantine_page()
    assert (item.id, item.item.raw, item.proposal_id, total) == ("Q-0001", raw, None, 1)
    made = workspace.review.adopt("Q-0001", Modify(experience_id="E-0001", text="Check it."), "ann")
    assert (made.extractor, made.raw_reply, made.evidence.group_ids) == ("person", raw, ("R1-0001",))
    assert made.base_texts == {"E-0001": "First lesson."}
    assert workspace.store.proposals.quarantined_item("Q-0001").proposal_id == made.id
    with pytest.raises(InputError, match=f"became {made.id} already"):
        workspace.review.adopt("Q-0001", Modify(experience_id="E-0001", text="Again."), "ann")


def test_a_proposal_in_quarantine_is_proposed_again_once_a_person_edits_it(workspace: Workspace) -> None:
    [first] = workspace.store.proposals.add(
        [make_proposal("Answer with one word.", status="quarantined")], "test"
    )
    with pytest.raises(InputError, match="it was quarantined"):
        workspace.review.approve(first, "ann")
    assert workspace.review.edit(first, "Answer with the number alone.", "ann").status == "proposed"
    assert workspace.review.undo(first, "ann").status == "quarantined"


def test_an_add_that_only_fits_once_a_staged_delete_is_published_has_to_wait_for_it(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.")
    delete, add = propose(workspace, Delete(experience_id="E-0001"), "first lesson")
    workspace.review.approve(delete, "ann")
    with pytest.raises(ApplyError, match="E-0001 says the same already"):
        workspace.review.approve(add, "ann")


def test_many_are_approved_together_or_none_of_them(workspace: Workspace) -> None:
    ids = propose(workspace, "First lesson.", "Second lesson.", "first lesson")
    with pytest.raises(ApplyError, match=ids[2]):
        workspace.review.approve_all(ids, "ann")
    assert workspace.store.proposals.counts() == {"proposed": 3}
    assert [p.status for p in workspace.review.approve_all(ids[:2], "ann")] == ["approved"] * 2


def test_a_stale_one_among_the_approved_stands_in_no_other_ones_way(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    one, other = propose(workspace, Modify(experience_id="E-0001", text="One way."), "Second lesson.")
    workspace.review.approve(one, "ann")
    workspace.review.rollback(0, "bob")
    workspace.review.approve(other, "ann")
    with pytest.raises(ApplyError, match=f"stale, {one}: E-0001 is not live"):
        workspace.review.publish("", "ann")
    assert workspace.review.publish("", "ann", only=[other]).size == 1


def test_publishing_only_some_refuses_one_that_is_not_approved(workspace: Workspace) -> None:
    one, other = propose(workspace, "First lesson.", "Second lesson.")
    workspace.review.approve(one, "ann")
    with pytest.raises(InputError, match=f"{other} is not approved: it is proposed"):
        workspace.review.publish("", "ann", only=[one, other])
    assert workspace.store.versions.head() == 0


def test_a_conflict_names_the_experiences_that_moved(workspace: Workspace) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    publish(workspace, Modify(experience_id="E-0002", text="Changed."), "Third lesson.")
    with pytest.raises(StaleVersionError, match="E-0002, E-0003 changed since"):
        workspace.review.rollback(0, "bob", parent=1)
    with pytest.raises(InputError, match="no version 9 yet"):
        workspace.review.rollback(0, "bob", parent=9)


def test_the_preview_shows_a_change_of_the_domain_although_the_text_stays(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    [move] = propose(workspace, Modify(experience_id="E-0001", text="First lesson.", domain="general"))
    workspace.review.approve(move, "ann")
    [difference] = workspace.review.preview().differences
    assert difference.fields == {"domain": ("sums", "general")}
    assert difference.before == difference.after == "First lesson."


def test_a_published_proposal_is_taken_back_by_proposals_that_restore_what_was_there(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    merge, add = propose(
        workspace, Merge(experience_ids=("E-0001", "E-0002"), text="Both lessons."), "Third lesson."
    )
    workspace.review.approve_all([merge, add], "ann")
    workspace.review.publish("", "ann")
    reverted = [*workspace.review.revert(merge, "bob"), *workspace.review.revert(add, "bob")]
    assert [p.operation.op for p in reverted] == ["modify", "add", "delete"]
    assert all(p.status == "proposed" and p.extractor == "person" for p in reverted)
    workspace.review.approve_all([p.id for p in reverted], "bob")
    workspace.review.publish("Taken back", "bob")
    texts = {e.id: e.text for e in workspace.store.versions.library()}
    assert texts == {"E-0001": "First lesson.", "E-0004": "Second lesson."}
    with pytest.raises(InputError, match="Nothing of P-0003 is left"):
        workspace.review.revert(merge, "bob")


def test_a_lesson_that_comes_back_was_learned_from_the_same_tasks_as_ever(workspace: Workspace) -> None:
    evidence = Evidence(group_ids=("R1-0001",), rollout_ids=("R1-0001-0",), sentence="7 of 8.")
    operation = Add(text="Count twice.", kind="strategy", domain="sums")
    proposal = Proposal(
        id="",
        operation=operation,
        extractor="evidence",
        evidence=evidence,
        learned_on="qwen",
        confidence=0.7,
        epoch=3,
    )
    [made] = workspace.store.proposals.add([proposal], "test")
    workspace.review.approve(made, "ann")
    workspace.review.publish("", "ann")
    [gone] = propose(workspace, Delete(experience_id="E-0001"))
    workspace.review.approve(gone, "ann")
    workspace.review.publish("", "ann")
    [back] = workspace.review.revert(gone, "ann")
    assert back.evidence.group_ids == ("R1-0001",)
    assert back.evidence.rollout_ids == ("R1-0001-0",)
    workspace.review.approve(back.id, "ann")
    workspace.review.publish("", "ann")
    [lesson] = workspace.store.versions.library()
    assert (lesson.learned_on, lesson.confidence, lesson.epoch) == ("qwen", 0.7, 3)


def test_what_is_not_published_is_undone_and_not_reverted(workspace: Workspace) -> None:
    [first] = propose(workspace, "First lesson.")
    with pytest.raises(InputError, match=f"{first} is proposed, not published\\.$"):
        workspace.review.revert(first, "ann")
    workspace.review.approve(first, "ann")
    with pytest.raises(InputError, match=f"winnow review undo {first}"):
        workspace.review.revert(first, "ann")


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
