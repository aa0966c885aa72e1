"""The log alone gives the state, whatever was done; and a rollback gives every text back, byte for byte."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.errors import WinnowError
from core.experience import Add, Delete, Merge, Modify, Operation, Quarantined
from core.migrations import MIGRATIONS
from core.store.replay import compare, replay
from core.workspace import Workspace
from tests.make import propose, publish, ticking

TEXTS = st.text(min_size=1, max_size=40).filter(lambda t: t.strip() and "\x00" not in t)
"""Anything that a reviewer may write: right-to-left, emoji, line breaks, ${x}."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to be copied: making one takes longer than all that an example does in it."""
    folder = tmp_path_factory.mktemp("replay") / "empty"
    workspace = Workspace(folder)
    workspace.store._database.handle.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@contextmanager
def copied(folder: Path) -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory() as name:
        copy = shutil.copytree(folder, Path(name) / "copy")
        yield Workspace(copy, clock=ticking())


class Hand:
    """Does one command after the other, drawn from numbers; what is refused changes nothing."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def do(self, command: int, pick: int, text: str) -> None:
        commands: list[Callable[[int, str], object]] = [
            self.propose,
            self.approve,
            self.approve,
            self.publish,
            self.edit,
            self.reject,
            self.defer,
            self.undo,
            self.rebase,
            self.rollback,
            self.revert,
            self.label,
            self.next,
            self.adopt,
            self.set_aside,
        ]
        with self.refused():
            commands[command % len(commands)](pick, text)

    @contextmanager
    def refused(self) -> Iterator[None]:
        dump = self.workspace.store.dump()
        try:
            yield
        except WinnowError:
            assert self.workspace.store.dump() == dump, "what is refused changes nothing"

    def proposal(self, pick: int) -> str:
        ids = [p.id for p in self.workspace.store.proposals.every()]
        return ids[pick % len(ids)] if ids else "P-0001"

    def propose(self, pick: int, text: str) -> None:
        live = [e.id for e in self.workspace.store.versions.library()]
        made: list[Operation] = [Add(text=text, domain="sums")]
        if live:
            target = live[pick % len(live)]
            made += [Modify(experience_id=target, text=text), Delete(experience_id=target)]
        if len(live) > 1:
            made.append(
                Merge(experience_ids=(live[pick % len(live)], live[(pick + 1) % len(live)]), text=text)
            )
        propose(self.workspace, made[pick % len(made)])

    def approve(self, pick: int, text: str) -> None:
        self.workspace.review.approve(self.proposal(pick), "ann", text=text if pick % 3 == 0 else None)

    def publish(self, pick: int, text: str) -> None:
        staged = [p.id for p in self.workspace.review.staged()]
        self.workspace.review.publish(text, "bob", only=staged[: 1 + pick % 3] if pick % 2 else None)

    def edit(self, pick: int, text: str) -> None:
        self.workspace.review.edit(self.proposal(pick), text, "bob")

    def reject(self, pick: int, text: str) -> None:
        self.workspace.review.reject(self.proposal(pick), text, "ann")

    def defer(self, pick: int, text: str) -> None:
        self.workspace.review.defer(self.proposal(pick), text, "bob")

    def undo(self, pick: int, text: str) -> None:
        self.workspace.review.undo(self.proposal(pick), "cem")

    def rebase(self, pick: int, text: str) -> None:
        self.workspace.review.rebase(self.proposal(pick), "ann", text=text if pick % 2 else None)

    def rollback(self, pick: int, text: str) -> None:
        head = self.workspace.store.versions.head()
        self.workspace.review.rollback(pick % (head + 1), "ann", message=text)

    def revert(self, pick: int, text: str) -> None:
        self.workspace.review.revert(self.proposal(pick), "ann")

    def label(self, pick: int, text: str) -> None:
        head = self.workspace.store.versions.head()
        name = ("production", "trial")[pick % 2]
        if pick % 5 == 0:
            self.workspace.store.labels.remove(name, "ann", force=True)
        else:
            self.workspace.store.labels.set(name, pick % (head + 1), "ann", force=pick % 3 > 0)

    def next(self, pick: int, text: str) -> None:
        self.workspace.review.next(("ann", "bob")[pick % 2], minutes=1)

    def adopt(self, pick: int, text: str) -> None:
        store = self.workspace.store
        with store.writing():  # refused, both go
            store.proposals.quarantine([Quarantined(reason="no such id", raw=text)])
            found, total = store.proposals.quarantine_page()
            self.workspace.review.adopt(found[pick % total].id, Add(text=text), "ann")

    def set_aside(self, pick: int, text: str) -> None:
        """What discarding a run does with the proposals that were drawn from it."""
        now = self.workspace.store.proposals.get(self.proposal(pick))
        if now.status in ("proposed", "deferred"):
            gone = now.model_copy(update={"status": "quarantined", "reason": text})
            self.workspace.store.proposals.decide(gone, now.revision, "cem", "proposal.set_aside")


NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking would copy a workspace and write to it for minutes."""

COMMANDS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 30), TEXTS), min_size=5, max_size=30)


@settings(max_examples=40, deadline=None, phases=NO_SHRINK)
@given(commands=COMMANDS, back=st.integers(0, 30))
def test_whatever_was_done_the_log_gives_the_tables_and_a_rollback_every_byte(
    empty: Path, commands: list[tuple[int, int, str]], back: int
) -> None:
    with copied(empty) as workspace:
        hand = Hand(workspace)
        texts = [{e.id: e.text for e in workspace.store.versions.library()}]
        for command in commands:
            hand.do(*command)
            versions = workspace.store.versions
            if versions.head() == len(texts):
                texts.append({e.id: e.text for e in versions.library()})
        assert compare(workspace.store) == []
        number = back % len(texts)
        with hand.refused():
            workspace.review.rollback(number, "ann")
        assert {e.id: e.text for e in workspace.store.versions.library()} == texts[number]
        for old, expected in enumerate(texts):
            assert {e.id: e.text for e in workspace.store.versions.library(old)} == expected
        assert compare(workspace.store) == []


# -- what a change behind the log's back looks like -----------------------------------------------


def spoil(workspace: Workspace, sql: str) -> None:
    with workspace.store.writing():
        workspace.store.runs._database.execute(sql)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "UPDATE proposals SET status = 'rejected' WHERE id = 'P-0002'",
            "Proposal P-0002 has status 'rejected', but",
        ),
        (
            "DELETE FROM proposals WHERE id = 'P-0002'",
            "The log tells of proposal P-0002, which is not in its table.",
        ),
        (
            "UPDATE versions SET message = 'other' WHERE number = 1",
            "Version 1 has message 'other', but the log says",
        ),
        (
            "UPDATE experience_states SET text = 'Other.'",
            "Experience E-0001 as of version 1 has text 'Other.', but",
        ),
        (
            "UPDATE experience_states SET to_version = 1",
            "Experience E-0001 is so from version 1 to 1, but the log",
        ),
        ("DELETE FROM experience_states", "The log tells of experience E-0001, which is not in its table."),
        ("UPDATE labels SET version = 0", "Label trial has version 0, but the log says 1."),
        (
            "INSERT INTO labels VALUES ('x', 1, 0, 'ann', '2026-01-01T00:00:00Z')",
            "The table has label x, which the log does not tell of.",
        ),
    ],
)
def test_a_table_that_was_changed_without_the_log_is_told_in_a_sentence(
    workspace: Workspace, sql: str, told: str
) -> None:
    publish(workspace, "First lesson.")
    propose(workspace, "Second lesson.")
    workspace.store.labels.set("trial", 1, "ann")
    assert compare(workspace.store) == []
    spoil(workspace, sql)
    [line] = compare(workspace.store)
    assert line.startswith(told)


# -- workspaces from before -----------------------------------------------------------------------


def downgrade(path: Path) -> None:
    """Take a workspace back to before the log held states; none of what follows it is needed here."""
    with closing(sqlite3.connect(path)) as db:
        for name in ("claims", "labels"):
            db.execute(f"DROP TABLE {name}")
        for index in ("events_by_kind", "proposals_by_version", "states_of_proposals"):
            db.execute(f"DROP INDEX {index}")
        db.execute("ALTER TABLE events DROP COLUMN state")
        db.execute("ALTER TABLE quarantine DROP COLUMN proposal_id")
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm003_review'")
        db.commit()


def test_the_log_of_a_workspace_from_before_is_completed_once_and_says_from_which_event_on(
    workspace: Workspace,
) -> None:
    publish(workspace, "First lesson.", "Second lesson.")
    publish(workspace, Modify(experience_id="E-0001", text="Changed."), Delete(experience_id="E-0002"))
    [waiting] = propose(workspace, "Third lesson.")
    workspace.review.defer(waiting, "later", "ann")
    before = workspace.store.events.newest(1)[0].id
    downgrade(workspace.folder / "winnow.db")
    upgraded = Workspace(workspace.folder, clock=ticking())
    told = replay(upgraded.store.events.every())
    assert told.complete_from == before + 1
    assert compare(upgraded.store) == []
    publish(upgraded, "Fourth lesson.")
    assert compare(upgraded.store) == []
    again = upgraded.review.undo(waiting, "ann")
    assert (again.status, again.reason) == ("proposed", ""), "a decision from before goes back to the queue"
    assert "m003_review" in {m.name for m in MIGRATIONS.applied(upgraded.store._database.handle)}


def test_a_new_workspace_has_a_log_that_is_complete_from_the_beginning(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    told = replay(workspace.store.events.every())
    assert told.complete_from == 0
    assert [v.message for v in told.versions.values()] == ["test"]
    assert json.loads(told.proposals["P-0001"].canonical())["status"] == "published"
