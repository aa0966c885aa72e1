"""Reviewers beside each other: claims, interleavings, many processes, and death in the middle of a publish."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.errors import BusyError, InputError, StaleVersionError, WinnowError
from core.experience import Add, Delete, Modify, Operation
from core.store.replay import compare
from core.workspace import Workspace
from tests.make import make_evidence, make_proposal, propose, publish, ticking
from tests.soak_review import at_once, wrong


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.minutes = 0

    def __call__(self) -> str:
        return f"2026-01-01T{self.minutes // 60:02d}:{self.minutes % 60:02d}:00Z"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shared(tmp_path: Path, clock: Clock) -> Workspace:
    """A workspace with three proposals, the second of which has the strongest evidence."""
    workspace = Workspace(tmp_path / "workspace", clock=clock)
    strengths = {"First lesson.": 0.04, "Second lesson.": 0.001, "Third lesson.": 0.04}
    made = [
        make_proposal(text).model_copy(update={"evidence": make_evidence(p)}) for text, p in strengths.items()
    ]
    workspace.store.proposals.add(made, "test")
    return workspace


def taken(workspace: Workspace, name: str, **options: object) -> str | None:
    found = workspace.review.next(name, **options)  # type: ignore[arg-type]
    return found.id if found else None


# -- claims ---------------------------------------------------------------------------------------


def test_two_reviewers_never_get_the_same_proposal_and_the_strongest_goes_first(shared: Workspace) -> None:
    assert [taken(shared, name) for name in ("ann", "bob", "cem", "dan")] == [
        "P-0002",
        "P-0001",
        "P-0003",
        None,
    ]


def test_a_reviewer_who_asks_again_goes_on_with_what_they_hold(shared: Workspace) -> None:
    assert taken(shared, "ann") == taken(shared, "ann") == "P-0002"
    assert len(shared.review.claims()) == 1


def test_what_is_skipped_is_released_to_the_others(shared: Workspace) -> None:
    assert taken(shared, "ann") == "P-0002"
    assert taken(shared, "ann", skip=["P-0002"]) == "P-0001"
    assert taken(shared, "bob") == "P-0002"


def test_a_claim_runs_out_and_the_proposal_is_anybodys_again(shared: Workspace, clock: Clock) -> None:
    assert taken(shared, "ann", minutes=10) == "P-0002"
    clock.minutes = 9
    assert taken(shared, "bob", skip=["P-0001", "P-0003"]) is None
    clock.minutes = 10
    assert taken(shared, "bob", skip=["P-0001", "P-0003"]) == "P-0002"
    with pytest.raises(BusyError, match="bob holds P-0002"):
        shared.review.renew("P-0002", "ann")


def test_a_heartbeat_keeps_a_claim_alive_and_it_is_since_the_beginning(
    shared: Workspace, clock: Clock
) -> None:
    taken(shared, "ann", minutes=10)
    clock.minutes = 9
    claim = shared.review.renew("P-0002", "ann", minutes=10)
    assert (claim.taken_at, claim.until) == ("2026-01-01T00:00:00Z", "2026-01-01T00:19:00Z")
    clock.minutes = 18
    assert shared.review.holder("P-0002") == claim


def test_who_asks_for_a_proposal_by_its_id_is_told_who_holds_it_and_may_insist(shared: Workspace) -> None:
    taken(shared, "ann")
    with pytest.raises(BusyError, match="ann holds P-0002 until 2026-01-01T00:15:00Z"):
        shared.review.claim("P-0002", "bob")
    assert shared.review.claim("P-0002", "bob", force=True).holder == "bob"
    [event] = [e for e in shared.store.events.newest(subject="P-0002") if e.kind == "claim.taken_over"]
    assert (event.actor, event.data) == ("bob", {"holder": "ann"})


DECISIONS: dict[str, Callable[[Workspace, bool], object]] = {
    "approve": lambda ws, force: ws.review.approve("P-0002", "bob", force=force),
    "approve with a text": lambda ws, force: ws.review.approve("P-0002", "bob", text="Mine.", force=force),
    "edit": lambda ws, force: ws.review.edit("P-0002", "Mine.", "bob", force=force),
    "reject": lambda ws, force: ws.review.reject("P-0002", "no", "bob", force=force),
    "defer": lambda ws, force: ws.review.defer("P-0002", "later", "bob", force=force),
    "many": lambda ws, force: ws.review.approve_all(["P-0001", "P-0002"], "bob", force=force),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_nobody_else_decides_on_what_is_held_unless_they_insist_and_then_the_log_tells(
    shared: Workspace, decision: str
) -> None:
    taken(shared, "ann")
    dump = shared.store.dump()
    with pytest.raises(BusyError, match="ann holds P-0002"):
        DECISIONS[decision](shared, False)
    assert shared.store.dump() == dump
    DECISIONS[decision](shared, True)
    assert shared.store.events.of("P-0002")[-1].event.data["over"] == "ann"


def test_a_decision_ends_the_claim_and_an_edit_does_not(shared: Workspace) -> None:
    taken(shared, "ann")
    shared.review.edit("P-0002", "Mine.", "ann")
    assert shared.review.holder("P-0002") is not None
    shared.review.approve("P-0002", "ann")
    assert shared.review.claims() == []


def test_what_is_decided_cannot_be_claimed_and_a_claim_lasts_a_day_at_most(shared: Workspace) -> None:
    shared.review.reject("P-0001", "no", "ann")
    with pytest.raises(InputError, match="Cannot claim P-0001: it was rejected by ann"):
        shared.review.claim("P-0001", "bob")
    for minutes in (0, -1, 24 * 60 + 1, float("nan")):
        with pytest.raises(InputError, match="at most 1440 minutes"):
            shared.review.claim("P-0002", "bob", minutes=minutes)


def test_only_the_holder_gives_a_proposal_back(shared: Workspace) -> None:
    taken(shared, "ann")
    assert not shared.review.release("P-0002", "bob")
    assert shared.review.release("P-0002", "ann")
    assert taken(shared, "bob") == "P-0002"


# -- interleavings --------------------------------------------------------------------------------

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing example is as short as its reviewers are: shrinking it would copy a workspace for minutes."""


class Act(NamedTuple):
    """One thing that a reviewer does after having looked."""

    what: str
    pick: int
    text: str


ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from(["approve", "edit", "reject", "defer", "undo", "rebase", "publish", "rollback"]),
        st.integers(0, 5),
        st.sampled_from(["Mine.", "Mine, too.", "字 👍🏽 ${x}"]),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two published lessons and six proposals, some of them about the same lesson."""
    folder = tmp_path_factory.mktemp("reviewers") / "library"
    workspace = Workspace(folder, clock=ticking())
    publish(workspace, "First lesson.", "Second lesson.")
    operations: list[Operation] = [
        Modify(experience_id="E-0001", text="One way."),
        Modify(experience_id="E-0001", text="Another way."),
        Delete(experience_id="E-0002"),
        Add(text="Third lesson.", domain="sums"),
        Add(text="third lesson", domain="sums"),
        Add(text="Fourth lesson.", domain="sums"),
    ]
    propose(workspace, *operations)
    workspace.store._database.handle.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def look(workspace: Workspace, act: Act) -> int:
    if act.what in ("publish", "rollback"):
        return workspace.store.versions.head()
    return workspace.store.proposals.get(f"P-{3 + act.pick:04d}").revision


def do(workspace: Workspace, name: str, act: Act, seen: int) -> None:
    review, of = workspace.review, f"P-{3 + act.pick:04d}"
    match act.what:
        case "approve":
            review.approve(of, name, revision=seen)
        case "edit":
            review.edit(of, act.text, name, revision=seen)
        case "reject":
            review.reject(of, act.text, name, revision=seen)
        case "defer":
            review.defer(of, act.text, name, revision=seen)
        case "undo":
            review.undo(of, name, revision=seen)
        case "rebase":
            review.rebase(of, name, text=act.text, revision=seen)
        case "publish":
            review.publish(act.text, name, parent=seen)
        case "rollback":
            review.rollback(act.pick % (seen + 1), name, parent=seen)


@settings(max_examples=40, deadline=None, phases=NO_SHRINK)
@given(ann=ACTS, bob=ACTS, order=st.lists(st.booleans(), max_size=32))
def test_however_two_reviewers_interleave_the_end_is_that_of_one_after_the_other_and_no_decision_is_lost(
    library: Path, ann: list[Act], bob: list[Act], order: list[bool]
) -> None:
    """Each looks and then acts; between the two the other one may do anything.

    What was accepted, done again one after the other by somebody who looks right before acting, gives the same
    workspace: so nothing was accepted that rested on what had moved, and nothing that was accepted got lost.
    """
    with tempfile.TemporaryDirectory() as folder:
        together = Workspace(shutil.copytree(library, Path(folder) / "together"), clock=ticking())
        accepted: list[tuple[str, Act]] = []
        steps = {"ann": [a for a in ann for _ in (0, 1)], "bob": [a for a in bob for _ in (0, 1)]}
        seen: dict[str, int] = {}
        turns = (
            ["ann" if turn else "bob" for turn in order]
            + ["ann"] * len(steps["ann"])
            + ["bob"] * len(steps["bob"])
        )
        for name in turns:
            if not steps[name]:
                continue
            act = steps[name].pop(0)
            if name not in seen:
                seen[name] = look(together, act)
                continue
            before = look(together, act)
            at = seen.pop(name)
            try:
                do(together, name, act, at)
            except WinnowError:
                continue
            assert before == at, "accepted on what had moved since it was looked at"
            accepted.append((name, act))
        alone = Workspace(shutil.copytree(library, Path(folder) / "alone"), clock=ticking())
        for name, act in accepted:
            do(alone, name, act, look(alone, act))
        assert together.store.dump() == alone.store.dump()
        assert compare(together.store) == []
        actors = [e.event.actor for e in together.store.events.every() if e.event.actor in ("ann", "bob")]
        assert set(actors) >= {name for name, _ in accepted}


def test_of_two_who_publish_on_the_same_version_one_is_told_what_moved(library: Path, tmp_path: Path) -> None:
    workspace = Workspace(shutil.copytree(library, tmp_path / "copy"), clock=ticking())
    for proposal_id in ("P-0003", "P-0006"):
        workspace.review.approve(proposal_id, "ann")
    parent = workspace.review.preview().parent
    workspace.review.publish("First come", "ann", parent=parent, only=["P-0003"])
    with pytest.raises(StaleVersionError, match=r"ann published 'First come', and E-0001 changed since"):
        workspace.review.publish("Second come", "bob", parent=parent)
    assert workspace.store.proposals.get("P-0006").status == "approved", (
        "the decision waits for another publish"
    )


# -- processes ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_that_review_and_publish_at_once_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    """`python -m tests.soak_review` does it with 8 processes, 200 decisions each and 50 publishes."""
    told = at_once(tmp_path / "workspace", processes=3, decisions=10, publishes=6)
    assert wrong(tmp_path / "workspace", told) == []
    assert sum(len(t.published) for t in told) == 6
