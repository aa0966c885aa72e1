"""What no lesson may hold is refused at every door, with the way on, and never repeated."""

from __future__ import annotations

import pytest

from core.errors import ApplyError, InputError
from core.experience import Modify
from core.packs.content import unfit
from core.workspace import Workspace
from tests.make import propose, publish

KEY = "sk-" + "a1B2" * 8
HELD = {
    "secret": f"Log in with {KEY}.",
    "home folder": "Read /home/ada/notes.txt first.",
    "redaction": "Log in with [redacted 2026-11-30 #1].",
}


@pytest.mark.parametrize("says", HELD)
def test_it_is_refused_when_it_is_approved_and_edited(workspace: Workspace, says: str) -> None:
    [bad, fine] = propose(workspace, HELD[says], "Ask once.")
    for refused in (
        lambda: workspace.review.approve(bad, "ann"),
        lambda: workspace.review.edit(fine, HELD[says], "ann"),
        lambda: workspace.review.approve(fine, "ann", text=HELD[says]),
    ):
        with pytest.raises((ApplyError, InputError), match=says) as caught:
            refused()
        assert KEY not in str(caught.value)
        assert "ada" not in str(caught.value)
    assert workspace.store.proposals.counts() == {"proposed": 2}
    workspace.review.approve(bad, "ann", text="Read the key from its variable.")


def test_what_was_approved_before_it_was_looked_for_is_not_published(workspace: Workspace) -> None:
    [bad] = propose(workspace, HELD["secret"])
    with workspace.store.writing():
        approved = workspace.store.proposals.get(bad).model_copy(update={"status": "approved"})
        workspace.store.proposals.decide(approved, 0, "ann", "proposal.approved")
    with pytest.raises(ApplyError, match=f"{bad} holds what looks like a secret"):
        workspace.review.publish("", "ann")
    assert workspace.store.versions.head() == 0


def test_taking_back_a_change_does_not_bring_a_tombstone_back(workspace: Workspace) -> None:
    from core.workspace.erasing import Erasing

    publish(workspace, "Log in with zanzibarkey first.")
    publish(workspace, Modify(experience_id="E-0001", text="Log in first."))
    Erasing(workspace).redact(["zanzibarkey"], "ann")
    [back] = workspace.review.revert("P-0002", "ann")
    with pytest.raises(ApplyError, match="mark of a redaction"):
        workspace.review.approve(back.id, "ann")


def test_ordinary_words_about_keys_and_folders_are_fine() -> None:
    for text in (
        "Read the key from OPENAI_API_KEY.",
        "Write to ~/out.txt.",
        "Look into /home/user/out.",
        "Use sk-learn.",
    ):
        assert unfit(text) is None, text
