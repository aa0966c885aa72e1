"""Roles of people, checked in the core: whatever a page offers, the command refuses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from core.errors import InputError, TrustError
from core.experience import Add, Proposal
from core.roles import Role, may
from core.settings import Endpoint, RunConfig
from core.workspace import Workspace
from core.workspace.by_hand import propose_by_hand
from core.workspace.people import NEEDS, Needs, People
from core.workspace.preferences import REASONS, Caps
from tests.make import publish


def test_who_does_not_sign_in_works_on_their_own_machine(workspace: Workspace) -> None:
    assert People(workspace.store, {}).role_of("ann", signed_in=False) == "publisher"
    assert People(workspace.store, {"WINNOW_ROLE": "reader"}).role_of("ann", signed_in=False) == "reader"


def test_a_role_that_is_none_is_refused(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="reader, reviewer, publisher"):
        _ = People(workspace.store, {"WINNOW_ROLE": "king"}).unsigned


def test_who_signed_in_is_a_reader_until_a_publisher_says_otherwise(workspace: Workspace) -> None:
    people = People(workspace.store, {"WINNOW_PUBLISHERS": "Owner@example.org, "})
    assert people.role_of("bob@example.org", signed_in=True) == "reader"
    people.give("Bob@example.org", "reviewer", "owner@example.org")
    assert people.role_of("bob@example.org", signed_in=True) == "reviewer"
    assert people.role_of("owner@example.org", signed_in=True) == "publisher"
    people.give("bob@example.org", None, "owner@example.org")
    assert people.role_of("bob@example.org", signed_in=True) == "reader"
    newest = workspace.store.events.newest(1)[0]
    assert (newest.kind, newest.data["who"]) == ("setting.changed", "bob@example.org")


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "two\nlines"])
def test_a_role_needs_a_name(name: str, workspace: Workspace) -> None:
    with pytest.raises(InputError):
        workspace.people.give(name, "reviewer", "ann")


READER: dict[str, Callable[[Workspace], object]] = {
    "run": lambda ws: ws.learning.start(RunConfig(), "bob"),
    "job": lambda ws: ws.jobs.enqueue("R1", "bob"),
    "approve": lambda ws: ws.review.approve("P-0001", "bob"),
    "publish": lambda ws: ws.review.publish("", "bob"),
    "sample": lambda ws: ws.load_sample("bob"),
}
REVIEWER: dict[str, Callable[[Workspace], object]] = {
    "publish": lambda ws: ws.review.publish("", "bob"),
    "rollback": lambda ws: ws.review.rollback(0, "bob"),
    "endpoint": lambda ws: ws.models.save(Endpoint(name="x", base_url="http://h/v1", model="m"), "bob"),
    "people": lambda ws: ws.people.give("bob", "publisher", "bob"),
    "capacity": lambda ws: ws.auditing.set_n_max(3, "bob"),
    "reasons": lambda ws: ws.preferences.set_reject_reasons(["no"], "bob"),
}


@pytest.mark.parametrize("what", READER)
def test_a_reader_changes_nothing(what: str, workspace: Workspace) -> None:
    workspace.store.proposals.add([Proposal(id="", operation=Add(text="Read."))], "ann")
    before = workspace.store.dump()
    with pytest.raises(TrustError, match="reader"):
        READER[what](workspace.as_("reader"))
    assert workspace.store.dump() == before


@pytest.mark.parametrize("what", REVIEWER)
def test_a_reviewer_publishes_and_sets_nothing(what: str, workspace: Workspace) -> None:
    before = workspace.store.dump()
    with pytest.raises(TrustError, match="publisher"):
        REVIEWER[what](workspace.as_("reviewer"))
    assert workspace.store.dump() == before


def test_a_reviewer_decides(workspace: Workspace) -> None:
    [of] = workspace.store.proposals.add([Proposal(id="", operation=Add(text="Read."))], "ann")
    assert workspace.as_("reviewer").review.approve(of, "bob").decided_by == "bob"


def test_a_reader_reads(workspace: Workspace) -> None:
    reader = workspace.as_("reader")
    assert reader.jobs.due() == []
    assert reader.models.all()
    assert reader.auditing.n_max == workspace.auditing.n_max


def named(of: object, needs: Needs = NEEDS, above: str = "") -> dict[str, Role]:
    """The commands that need a role, by their dotted names, each looked up."""
    found: dict[str, Role] = {}
    for name, needed in needs.items():
        meant = getattr(of, name)
        if isinstance(needed, Mapping):
            found |= named(meant, needed, f"{above}{name}.")
        else:
            assert callable(meant), f"{above}{name}"
            found[f"{above}{name}"] = needed
    return found


READING = {
    "auditing": "n_max",
    "comparing": "alike",
    "correcting": "author of",
    "crediting": "in_sample waiting",
    "evaluating": "html plan report spread",
    "intake": "as_here columns formats look mend read_tasks weigh_tasks",
    "jobs": "due ended find newest of_run subject",
    "learning": "asking busy holding plan plan_drawing untaught",
    "measuring": "alarms measured of of_lessons of_proposals",
    "models": "access all embedder find get injection_budget key_present roles",
    "people": "given owners role_of unsigned",
    "policies": "why_not",
    "preferences": "caps reject_reasons",
    "prior_gate": "last of_prior tasks",
    "priors": "all bias get",
    "rescoring": "",
    "shipping": "content export forms prior_file readable record record_prior replaces verify",
    "shipping.arriving": "",
}
"""What takes no role. A command that is neither here nor in NEEDS has been forgotten."""


def test_every_public_command_of_a_workspace_takes_a_role_or_reads(workspace: Workspace) -> None:
    nouns = {name: getattr(workspace, name) for name in vars(workspace)} | {
        "shipping.arriving": workspace.shipping.arriving
    }
    needed = set(named(workspace))
    for noun in nouns.keys() - {
        "folder",
        "store",
        "review",
    }:  # a role of their own: see below, and test_roles
        public = {name for name in dir(nouns[noun]) if name[0] != "_"} - {"arriving", "work"}
        told = {full.removeprefix(f"{noun}.") for full in needed if full.startswith(f"{noun}.")}
        told = {name for name in told if "." not in name} - {"work"}
        assert public - told == set(READING[noun].split()), noun


@pytest.mark.parametrize("role", ["reader", "reviewer"])
def test_every_command_that_needs_more_is_refused_before_anything_is_looked_at(
    workspace: Workspace, role: Role
) -> None:
    publish(workspace, "Read first.")
    before, view = workspace.store.dump(), workspace.as_(role)
    for name, needed in named(workspace).items():
        command: Any = operator.attrgetter(name)(view)
        if not may(role, needed):
            with pytest.raises(TrustError, match=f"A {role} may not do this .* it takes a {needed}"):
                command()
    assert workspace.store.dump() == before


def test_no_noun_of_a_readers_store_writes(workspace: Workspace) -> None:
    store = workspace.as_("reader").store
    publish(workspace, "Read first.")
    before = workspace.store.dump()
    nouns = {name: noun for name, noun in vars(store).items() if name != "_views"}
    for name, noun in nouns.items():
        database = noun if name == "_database" else noun._database
        with (
            pytest.raises(TrustError, match="A reader may not do this; it takes a reviewer"),
            database.writing(),
        ):
            pass
    assert store.versions.head() == 1
    assert workspace.as_("reviewer").store is workspace.store
    assert workspace.store.dump() == before


def test_a_reader_proposes_nothing_by_hand(workspace: Workspace) -> None:
    reader = workspace.as_("reader")
    with pytest.raises(TrustError, match="reader"):
        propose_by_hand(reader.store, Add(text="Mine."), "bob", reader.comparing)
    assert workspace.store.proposals.counts() == {}


def test_a_reader_looks_at_what_an_import_would_do_and_takes_a_pack_out(workspace: Workspace) -> None:
    publish(workspace, "Read first.")
    shipping = workspace.as_("reader").shipping
    assert shipping.arriving.library(b'{"a": "Ask once."}', "x.json", "bob", dry_run=True).new
    with pytest.raises(TrustError, match="library"):
        shipping.arriving.library(b'{"a": "Ask once."}', "x.json", "bob")
    shipping.record(shipping.export(), "bob", "x.zip")
    assert workspace.store.events.newest(1)[0].actor == "bob"


def test_the_reasons_to_reject_are_kept_in_the_log(workspace: Workspace) -> None:
    assert workspace.preferences.reject_reasons == REASONS
    workspace.preferences.set_reject_reasons([" not  ours ", "", "harmful", "harmful"], "ann")
    assert workspace.preferences.reject_reasons == ("not ours", "harmful")
    lines = len(workspace.store.events.newest(10))
    workspace.preferences.set_reject_reasons(["not ours", "harmful"], "bob")
    assert len(workspace.store.events.newest(10)) == lines, "the same again changes nothing"


@pytest.mark.parametrize("reasons", [[], ["  "], ["x" * 81], [f"reason {i}" for i in range(21)]])
def test_bad_reasons_change_nothing(reasons: list[str], workspace: Workspace) -> None:
    with pytest.raises(InputError):
        workspace.preferences.set_reject_reasons(reasons, "ann")
    assert workspace.preferences.reject_reasons == REASONS


def test_the_caps_of_new_runs_are_kept(workspace: Workspace) -> None:
    assert workspace.preferences.caps == Caps()
    workspace.preferences.set_caps(Caps(max_calls=900, max_cost_usd=1.5), "ann")
    assert workspace.preferences.caps == Caps(max_calls=900, max_cost_usd=1.5)
