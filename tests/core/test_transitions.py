"""Every state of the life of a proposal x every command: where it leads, or the one sentence that refuses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ApplyError, InputError, WinnowError
from core.experience import Delete, Modify
from core.review import standing
from core.store.replay import compare
from core.workspace import Workspace
from tests.make import make_proposal, propose, publish

NOW = "2026-01-01T00:10:00Z"
IT = "P-0003"
"""The proposal that is looked at: it changes E-0001."""


def change(workspace: Workspace) -> None:
    """Somebody else changes E-0001."""
    publish(workspace, Modify(experience_id="E-0001", text="Changed by somebody."))


def set_aside(workspace: Workspace) -> None:
    """What discarding its run does."""
    now = workspace.store.proposals.get(IT)
    gone = now.model_copy(update={"status": "quarantined", "reason": "R1 was discarded"})
    workspace.store.proposals.decide(gone, now.revision, "cem", "proposal.set_aside")


STATES: dict[str, list[Callable[[Workspace], object]]] = {
    "proposed": [],
    "edited": [lambda ws: ws.review.edit(IT, "Mine.", "bob")],
    "deferred": [lambda ws: ws.review.defer(IT, "later", "bob")],
    "superseded": [],
    "approved": [lambda ws: ws.review.approve(IT, "bob")],
    "edited and approved": [lambda ws: ws.review.approve(IT, "bob", text="Mine.")],
    "rejected": [lambda ws: ws.review.reject(IT, "no", "bob")],
    "published": [lambda ws: ws.review.approve(IT, "bob"), lambda ws: ws.review.publish("it", "bob")],
    "quarantined": [set_aside],
    "stale": [change],
    "stale and approved": [lambda ws: ws.review.approve(IT, "bob"), lambda ws: ws.review.rollback(0, "cem")],
    "its target gone": [lambda ws: publish(ws, Delete(experience_id="E-0001"))],
    "held by bob": [lambda ws: ws.review.claim(IT, "bob")],
}

COMMANDS: dict[str, Callable[[Workspace], object]] = {
    "approve": lambda ws: ws.review.approve(IT, "ann"),
    "approve with a text": lambda ws: ws.review.approve(IT, "ann", text="Ann's."),
    "edit": lambda ws: ws.review.edit(IT, "Ann's.", "ann"),
    "reject": lambda ws: ws.review.reject(IT, "no", "ann"),
    "defer": lambda ws: ws.review.defer(IT, "later", "ann"),
    "undo": lambda ws: ws.review.undo(IT, "ann"),
    "rebase": lambda ws: ws.review.rebase(IT, "ann"),
    "claim": lambda ws: ws.review.claim(IT, "ann"),
    "revert": lambda ws: ws.review.revert(IT, "ann"),
    "publish": lambda ws: ws.review.publish("it", "ann", only=[IT]),
}


def made(workspace: Workspace, state: str) -> Workspace:
    publish(workspace, "First lesson.", "Second lesson.")
    if state == "superseded":
        lost = make_proposal(
            Modify(experience_id="E-0001", text="Its text."),
            status="superseded",
            reason="lost to P-0009",
            base_texts={"E-0001": "First lesson."},
            base_version=1,
        )
        workspace.store.proposals.add([lost], "test")
    else:
        propose(workspace, Modify(experience_id="E-0001", text="Its text."))
    for step in STATES[state]:
        step(workspace)
    return workspace


def became(workspace: Workspace, command: str) -> str:
    """Where the command leads, or why it does not."""
    before = workspace.store.dump()
    try:
        COMMANDS[command](workspace)
    except WinnowError as e:
        assert workspace.store.dump() == before, "what is refused changes nothing"
        return f"! {e}"
    found = workspace.store.proposals.get(IT)
    return standing(found, workspace.store.versions.library()) + ("" if found.edited_text is None else " *")


UNDO_FIRST = "! Cannot {verb} P-0003: it was {status} by bob. Undo that first: `winnow review undo P-0003`."
REVERT = "`winnow review revert P-0003` proposes what takes it back."
PUBLISHED = "! Cannot {verb} P-0003: it was published by bob. " + REVERT
SET_ASIDE = (
    "! Cannot {verb} P-0003: it was quarantined (R1 was discarded). `winnow review undo P-0003` brings it back "
    "as it was, `winnow review edit P-0003` with a text of your own."
)
FRESH = "! P-0003 is not stale: it fits version 1 as it is."
NOTHING = "! P-0003 is {status}; there is no decision to undo."
NO_REVERT = "! P-0003 is {status}, not published."
REVERT_UNDO = "! P-0003 is {status}, not published; `winnow review undo P-0003` takes the decision back."
NOT_APPROVED = "! P-0003 is not approved: it is {status}. Nothing was published."
STALE = (
    "! P-0003 is stale: the text of E-0001 changed since version 1. Reject it, or rebase it on the new text: "
    "winnow review rebase P-0003."
)
GONE = "! P-0003 is stale: E-0001 is not live in version 2. Reject it, or propose what you mean anew."
HELD = (
    "! bob holds P-0003 until 2026-01-01T00:25:00Z and is looking at it. Take another one (winnow review next), "
    "wait, or insist with --force."
)


def undecided(status: str, **other: str) -> dict[str, str]:
    """What leads where before anybody decided; `*` = with a text of the reviewer's own."""
    return {
        "approve": "approved",
        "approve with a text": "edited and approved *",
        "edit": f"{status} *",
        "reject": "rejected",
        "defer": "deferred",
        "undo": NOTHING.format(status=status),
        "rebase": FRESH,
        "claim": status,
        "revert": NO_REVERT.format(status=status),
        "publish": NOT_APPROVED.format(status=status),
        **other,
    }


def closed(status: str, sentence: str, **other: str) -> dict[str, str]:
    """What is decided: everything but a few commands is refused by one sentence."""
    verbs = {"approve with a text": "edit"}
    refused = {c: sentence.format(verb=verbs.get(c, c), status=status) for c in COMMANDS}
    return refused | {"publish": NOT_APPROVED.format(status=status)} | other


LEADS: dict[str, dict[str, str]] = {
    "proposed": undecided("proposed"),
    "edited": undecided("proposed")
    | {
        "approve": "edited and approved *",
        "reject": "rejected *",
        "defer": "deferred *",
        "undo": "proposed",
        "claim": "proposed *",
    },
    "deferred": undecided("deferred", undo="proposed"),
    "superseded": undecided("superseded"),
    "approved": closed(
        "approved",
        UNDO_FIRST,
        undo="proposed",
        publish="published",
        revert=REVERT_UNDO.format(status="approved"),
    ),
    "edited and approved": closed(
        "approved",
        UNDO_FIRST,
        undo="proposed *",
        publish="published *",
        revert=REVERT_UNDO.format(status="approved"),
    ),
    "rejected": closed("rejected", UNDO_FIRST, undo="proposed", revert=REVERT_UNDO.format(status="rejected")),
    "published": closed(
        "published",
        PUBLISHED,
        undo="! P-0003 is published in version 2 and stays there; `winnow review revert P-0003` proposes what takes it "
        "back, `winnow rollback 1` makes a new version without it.",
        revert="published",
    ),
    "quarantined": closed(
        "quarantined",
        SET_ASIDE,
        undo="proposed",
        edit="proposed *",
        revert=NO_REVERT.format(status="quarantined"),
    )
    | {"approve with a text": "edited and approved *"},
    "stale": undecided(
        "proposed", approve=STALE, edit="stale *", defer="stale", rebase="proposed", claim="stale"
    )
    | {"approve with a text": STALE},
    "stale and approved": closed(
        "approved",
        UNDO_FIRST,
        undo="stale",
        publish="! A staged proposal is stale, P-0003: E-0001 is not live in version 2. Undo it, then publish again.",
        revert=REVERT_UNDO.format(status="approved"),
    ),
    "its target gone": undecided(
        "proposed",
        approve=GONE,
        edit="stale *",
        defer="stale",
        claim="stale",
        rebase="! P-0003 cannot be rebased: Experience E-0001 was deleted and is not live in version 2. Reject it, or "
        "propose what you mean anew.",
    )
    | {"approve with a text": GONE},
    "held by bob": dict.fromkeys(COMMANDS, HELD)
    | {
        "undo": NOTHING.format(status="proposed"),
        "revert": NO_REVERT.format(status="proposed"),
        "publish": NOT_APPROVED.format(status="proposed"),
    },
}


@pytest.mark.parametrize("state", STATES)
def test_from_each_state_each_command_leads_where_it_should_or_is_refused_in_a_sentence(
    state: str, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    made(Workspace(start, clock=lambda: NOW), state).store._database.close()
    found = {}
    for number, command in enumerate(COMMANDS):
        copy = shutil.copytree(start, tmp_path / f"{number}")
        workspace = Workspace(copy, clock=lambda: NOW)
        found[command] = became(workspace, command)
        assert compare(workspace.store) == []
    assert found == LEADS[state]


UNDONE: dict[str, list[Callable[[Workspace], object]]] = {
    "approve": [COMMANDS["approve"]],
    "approve with a text": [COMMANDS["approve with a text"]],
    "edit": [COMMANDS["edit"]],
    "reject": [COMMANDS["reject"]],
    "defer": [COMMANDS["defer"]],
    "rebase": [change, COMMANDS["rebase"]],
    "rebase with a text": [change, lambda ws: ws.review.rebase(IT, "ann", text="Ann's.")],
    "set aside": [set_aside],
    "edit of what was set aside": [set_aside, COMMANDS["edit"]],
}


@pytest.mark.parametrize("state", ["proposed", "edited", "deferred", "superseded"])
@pytest.mark.parametrize("decision", UNDONE)
def test_every_decision_is_undone_to_what_was_there_before_it(
    state: str, decision: str, workspace: Workspace
) -> None:
    made(workspace, state)
    *first, last = UNDONE[decision]
    for step in first:
        step(workspace)
    before = workspace.store.proposals.get(IT)
    last(workspace)
    assert workspace.store.proposals.get(IT) != before
    for _ in range(2 if decision == "approve with a text" else 1):  # an edit, and an approval
        workspace.review.undo(IT, "ann")
    kept = before.model_dump(exclude={"revision", "decided_by", "decided_at"})
    assert (
        workspace.store.proposals.get(IT).model_dump(exclude={"revision", "decided_by", "decided_at"}) == kept
    )
    assert compare(workspace.store) == []


def test_a_deletion_that_was_set_aside_has_no_text_to_edit_and_is_brought_back_as_it_was(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    propose(workspace, Delete(experience_id="E-0001"))
    set_aside(workspace)
    with pytest.raises(InputError, match="a delete has no text to edit"):
        workspace.review.edit(IT, "Mine.", "ann")
    with pytest.raises(InputError, match=r"`winnow review undo P-0003` brings it back as it was\.$"):
        workspace.review.reject(IT, "no", "ann")
    workspace.review.undo(IT, "ann")
    assert workspace.review.approve(IT, "ann").status == "approved"


def test_a_rebase_is_bound_to_the_version_whose_text_was_looked_at(workspace: Workspace) -> None:
    made(workspace, "stale")
    seen = workspace.store.versions.head()
    publish(workspace, "Something else.")
    publish(workspace, Modify(experience_id="E-0001", text="Changed once more."))
    with pytest.raises(ApplyError, match=f"E-0001 changed again since version {seen}, which you looked at"):
        workspace.review.rebase(IT, "ann", version=seen)
    publish(workspace, Modify(experience_id="E-0001", text="Changed by somebody."))
    assert workspace.review.rebase(IT, "ann", version=seen).base_texts == {"E-0001": "Changed by somebody."}
