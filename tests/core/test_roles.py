"""Roles: a reader looks, a reviewer decides, a publisher makes versions; whoever may not changes nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from core.errors import TrustError
from core.experience import Add, Modify, Quarantined
from core.review import Review, Seen
from core.roles import LOCAL, ROLES, Role, may
from core.workspace import Workspace
from tests.make import propose, publish

Command = Callable[[Review], object]

LOOKING: dict[str, Command] = {
    "staged": lambda r: r.staged(),
    "preview": lambda r: r.preview(),
    "preview_rollback": lambda r: r.preview_rollback(1),
    "holder": lambda r: r.holder("P-0002"),
    "claims": lambda r: r.claims(),
    "origin": lambda r: r.origin("E-0001"),
    "weigh": lambda r: r.weigh("approve", [Seen("P-0002")], "eve"),
    "as_": lambda r: r.as_(r.role),
}
DECIDING: dict[str, Command] = {
    "next": lambda r: r.next("eve"),
    "claim": lambda r: r.claim("P-0002", "eve"),
    "renew": lambda r: r.renew("P-0002", "eve"),
    "release": lambda r: r.release("P-0002", "eve"),
    "approve": lambda r: r.approve("P-0002", "eve"),
    "approve_all": lambda r: r.approve_all(["P-0002"], "eve"),
    "decide_all": lambda r: r.decide_all("defer", [Seen("P-0002")], "eve"),
    "edit": lambda r: r.edit("P-0002", "Mine.", "eve"),
    "rebase": lambda r: r.rebase("P-0003", "eve"),
    "reject": lambda r: r.reject("P-0002", "no", "eve"),
    "defer": lambda r: r.defer("P-0002", "later", "eve"),
    "undo": lambda r: r.undo("P-0005", "eve"),
    "adopt": lambda r: r.adopt("Q-0001", Add(text="Meant."), "eve"),
    "revert": lambda r: r.revert("P-0004", "eve"),
}
PUBLISHING: dict[str, Command] = {
    "publish": lambda r: r.publish("mine", "eve"),
    "rollback": lambda r: r.rollback(0, "eve"),
    "set_label": lambda r: r.set_label("trial", 1, "eve"),
    "remove_label": lambda r: r.remove_label("stable", "eve"),
}
COMMANDS: dict[str, tuple[Role, Command]] = {
    **{name: ("reader", command) for name, command in LOOKING.items()},
    **{name: ("reviewer", command) for name, command in DECIDING.items()},
    **{name: ("publisher", command) for name, command in PUBLISHING.items()},
}


@pytest.fixture
def busy(workspace: Workspace) -> Workspace:
    """A workspace in which every command has something to do."""
    publish(workspace, "First lesson.")
    propose(workspace, "Second lesson.", Modify(experience_id="E-0001", text="Stale."))
    publish(workspace, Modify(experience_id="E-0001", text="Changed."))
    for proposal_id in propose(workspace, "Third lesson.", "Fourth lesson."):
        workspace.review.approve(proposal_id, "ann")
    workspace.store.proposals.quarantine([Quarantined(reason="why", raw="raw")])
    workspace.store.labels.set("stable", 1, "ann")
    return workspace


def test_every_command_of_the_review_has_a_role() -> None:
    public = {name for name, _ in inspect.getmembers(Review, inspect.isfunction) if name[0] != "_"}
    assert public == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_what_is_its_own_and_is_refused_the_rest_before_anything_is_looked_at(
    busy: Workspace, role: Role, name: str
) -> None:
    needed, command = COMMANDS[name]
    dump = busy.store.dump()
    if may(role, needed):
        command(busy.review.as_(role))
        return
    with pytest.raises(
        TrustError, match=f"A {role} may not do this .*; it takes a {needed}. Nothing was changed"
    ):
        command(busy.review.as_(role))
    assert busy.store.dump() == dump


def test_on_a_machine_of_ones_own_everybody_is_a_publisher(busy: Workspace) -> None:
    assert busy.review.role == LOCAL == "publisher"
    assert busy.review.publish("mine", "ann").author == "ann"
