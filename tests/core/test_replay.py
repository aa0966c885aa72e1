"""The log alone gives the tables, byte for byte, whatever was done; and a rollback gives every text back."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from core.errors import WinnowError
from core.experience import Add, Delete, Merge, Modify, Operation, Quarantined
from core.migrations import MIGRATIONS
from core.record import canonical_json
from core.settings import RunConfig
from core.store.needle import Needle
from core.store.replay import NAMES, compare, replay, rows
from core.workspace import Workspace
from tests.make import add_tasks, make_task, propose, publish, ticking

TEXTS = (
    "Read it. ",
    "${x} {} $5 -> ",
    "先读取文件 ",
    "שלום عالم ",
    "👍🏽 👩‍👩‍👧 ",
    "tab\tand\nline ",
    '"quoted" \\ ',
    "word " * 33,
)
"""Anything that a reviewer may write; the last one is too long to be approved."""


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
    """Does one command after the other as one of two reviewers; what is refused changes nothing."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def do(self, way: str, pick: int, text: str) -> None:
        self.who = ("ann", "bob")[pick % 2]
        with (
            self.refused() if pick % 4 == 0 else suppress(WinnowError)
        ):  # looking at everything takes its time
            getattr(self, way)(pick, text)

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
            made += [Modify(experience_id=target, text=text)] * 3
        if len(live) > 3:
            made.append(Delete(experience_id=target))
        if len(live) > 1:
            made.append(
                Merge(experience_ids=(live[pick % len(live)], live[(pick + 1) % len(live)]), text=text)
            )
        propose(self.workspace, made[pick % len(made)], made[pick // 2 % len(made)])

    def approve(self, pick: int, text: str) -> None:
        mine = text if pick % 3 == 0 else None
        waiting = [p.id for p in self.workspace.store.proposals.open() if p.status == "proposed"]
        of = waiting[pick % len(waiting)] if waiting and pick % 5 else self.proposal(pick)
        self.workspace.review.approve(of, self.who, text=mine, force=pick % 2 == 0)

    def publish(self, pick: int, text: str) -> None:
        staged = [p.id for p in self.workspace.review.staged()]
        self.workspace.review.publish(text, self.who, only=staged[: 1 + pick % 3] if pick % 2 else None)

    def edit(self, pick: int, text: str) -> None:
        self.workspace.review.edit(self.proposal(pick), text, self.who)

    def reject(self, pick: int, text: str) -> None:
        self.workspace.review.reject(self.proposal(pick), text, self.who)

    def defer(self, pick: int, text: str) -> None:
        self.workspace.review.defer(self.proposal(pick), text, self.who)

    def undo(self, pick: int, text: str) -> None:
        self.workspace.review.undo(self.proposal(pick), self.who)

    def rebase(self, pick: int, text: str) -> None:
        found, _ = self.workspace.store.proposals.page(["stale"])
        live = {e.id for e in self.workspace.store.versions.library()}
        stale = [p for p in found if p.status != "approved" and live >= p.base_texts.keys()]
        of = stale[pick % len(stale)].id if stale else self.proposal(pick)
        self.workspace.review.rebase(of, self.who, text=text if pick % 3 else None)

    def rollback(self, pick: int, text: str) -> None:
        head = self.workspace.store.versions.head()
        self.workspace.review.rollback(max(0, head - 1 - pick % 3), self.who, message=text)

    def revert(self, pick: int, text: str) -> None:
        self.workspace.review.revert(self.proposal(pick), self.who)

    def label(self, pick: int, text: str) -> None:
        head = self.workspace.store.versions.head()
        name = ("production", "trial")[pick % 2]
        if pick % 5 == 0:
            self.workspace.store.labels.remove(name, "ann", force=True)
        else:
            self.workspace.store.labels.set(name, pick % (head + 1), "ann", force=pick % 3 > 0)

    def next(self, pick: int, text: str) -> None:
        self.workspace.review.next(self.who, minutes=1 + pick / 7, skip=[self.proposal(pick)] * (pick % 2))

    def claim(self, pick: int, text: str) -> None:
        """A clock that ticks at each look: some claims have run out when the next one looks."""
        held = [claim.proposal_id for claim in self.workspace.review.claims()]
        of = held[pick % len(held)] if held and pick % 3 else self.proposal(pick)
        self.workspace.review.claim(of, self.who, minutes=(0.01, 5, 20)[pick % 3], force=pick % 4 > 0)

    def release(self, pick: int, text: str) -> None:
        self.workspace.review.release(self.proposal(pick), self.who)

    def quarantine(self, pick: int, text: str) -> None:
        self.workspace.store.proposals.quarantine(
            [Quarantined(reason="no such id", raw=text)] * (1 + pick % 2)
        )

    def adopt(self, pick: int, text: str) -> None:
        self.workspace.review.adopt(f"Q-{1 + pick % 4:04d}", Add(text=text), self.who)

    def set_aside(self, pick: int, text: str) -> None:
        """What discarding a run does with the proposals that were drawn from it."""
        now = self.workspace.store.proposals.get(self.proposal(pick))
        if now.status in ("proposed", "deferred"):
            gone = now.model_copy(update={"status": "quarantined", "reason": text})
            self.workspace.store.proposals.decide(gone, now.revision, "cem", "proposal.set_aside")


def stored(workspace: Workspace, table: str) -> list[str]:
    """The rows of a table, column for column."""
    return sorted(canonical_json(row) for row in workspace.store._database.rows(f"SELECT * FROM {table}"))


def assert_rebuilt(workspace: Workspace) -> None:
    """What the log alone gives is what is stored, byte for byte; and the doctor says so."""
    told = replay(workspace.store.events.every())
    assert told.unread == []
    for table, expected in rows(told).items():
        there = stored(workspace, table)
        if table == "versions":
            there = [row for row in there if '"number":0' not in row]
        assert sorted(map(canonical_json, expected)) == there, table
    assert compare(workspace.store) == []


WAYS = ["propose", "propose", "approve", "publish", "rebase"] * 2 + [
    "edit", "reject", "defer", "undo", "undo", "rollback", "revert", "label", "next", "claim", "release",
    "quarantine", "adopt", "set_aside",
]  # fmt: skip
HAPPENED = {
    *(
        f"proposal.{name}"
        for name in ("made", "approved", "edited", "rejected", "deferred", "rebased", "undone")
    ),
    *("proposal.published", "proposal.set_aside", "version.published", "version.rolled_back"),
    *("quarantine.set_aside", "quarantine.adopted", "label.set", "label.removed"),
    *("claim.taken", "claim.renewed", "claim.ended", "claim.taken_over"),
}
"""What all the sequences together must have done: a sequence of refusals would prove nothing."""


def test_whatever_two_reviewers_did_the_log_gives_the_tables_and_a_rollback_every_byte(empty: Path) -> None:
    happened: set[str] = set()
    for seed in range(5):
        with copied(empty) as workspace:
            try:
                at_random(workspace, random.Random(seed))
            except BaseException as e:
                e.add_note(f"seed {seed}")
                raise
            happened |= {entry.event.kind for entry in workspace.store.events.every()}
    assert happened >= HAPPENED


def at_random(workspace: Workspace, rng: random.Random) -> None:
    hand, versions = Hand(workspace), workspace.store.versions
    texts = [{e.id: e.text for e in versions.library()}]
    for _ in range(100):
        hand.do(rng.choice(WAYS), rng.randrange(30), f"{rng.choice(TEXTS)}{rng.randrange(40)}")
        if versions.head() == len(texts):
            texts.append({e.id: e.text for e in versions.library()})
    assert_rebuilt(workspace)
    number = rng.randrange(len(texts))
    with hand.refused():
        workspace.review.rollback(number, "ann")
    assert {e.id: e.text for e in versions.library()} == texts[number]
    for old, expected in enumerate(texts):
        assert {e.id: e.text for e in versions.library(old)} == expected
    assert_rebuilt(workspace)


# -- what a change behind the log's back looks like -----------------------------------------------


@pytest.fixture
def everything(workspace: Workspace) -> Workspace:
    """A workspace with something in each table that the log rebuilds."""
    publish(workspace, "First lesson.", "Second lesson.")
    publish(workspace, Modify(experience_id="E-0001", text="Changed."))
    propose(workspace, "Third lesson.")
    workspace.store.proposals.quarantine(
        [Quarantined(reason="no such id", raw="{}", group_ids=("R1-0001",))] * 2
    )
    workspace.review.adopt("Q-0001", Add(text="Adopted."), "ann")
    workspace.review.claim("P-0004", "bob")
    workspace.store.labels.set("trial", 1, "ann")
    assert compare(workspace.store) == []
    return workspace


class _BackError(Exception):
    """Takes back what was spoilt."""


def spoilt(workspace: Workspace, sql: str, *values: object) -> list[str]:
    """What the comparison says once a statement changed something; it is taken back then."""
    said: list[str] = []
    with suppress(_BackError), workspace.store.writing():
        workspace.store._database.execute("PRAGMA defer_foreign_keys = ON")
        workspace.store._database.execute(sql, *values)
        said = compare(workspace.store)
        raise _BackError
    return said


def other(value: object) -> object:
    """A value of the same kind that is another one."""
    if isinstance(value, str):
        return (
            canonical_json({**json.loads(value), "rationale": "Other."}) if value[:1] == "{" else f"{value}x"
        )
    return 7 if value is None else value + 1000 if isinstance(value, int) else value / 2 + 0.1  # type: ignore[operator]


def test_whatever_value_of_whatever_row_is_changed_the_row_is_named_and_the_column(
    everything: Workspace,
) -> None:
    seen = 0
    for table, name in NAMES.items():
        for row in everything.store._database.rows(f"SELECT rowid AS place, * FROM {table}"):
            place = row.pop("place")
            for column, value in row.items():
                if table == "versions" and row["number"] == 0 and column in ("author", "message"):
                    continue  # nobody made it, so nobody is told of
                new = str(other(value)) if column in TEXTS_WHERE_NONE and value is None else other(value)
                lines = spoilt(everything, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", new, place)
                called = name.format(**row)
                either = (called, name.format(**row | {column: new}))
                assert any(called in small(line) for line in lines), f"{table}.{column}"
                assert all(any(one in small(line) for one in either) for line in lines), lines
                if column not in KEYS:
                    assert any(
                        f"has {column if column != 'body' else 'rationale'} " in line for line in lines
                    )
                seen += 1
    assert seen > 100


def small(line: str) -> str:
    return line[:1].lower() + line[1:]


KEYS = ("id", "number", "proposal_id", "name", "experience_id", "from_version")
"""Columns that a row may be called by: it is missed then, and another one is found."""

TEXTS_WHERE_NONE = (
    "run_id",
    "edited_text",
    "decided_by",
    "decided_at",
    "experience_id",
    "merged_into",
    "proposal_id",
)


@pytest.mark.parametrize("table", NAMES)
def test_a_row_that_is_gone_is_named(everything: Workspace, table: str) -> None:
    for row in everything.store._database.rows(f"SELECT rowid AS place, * FROM {table}"):
        lines = spoilt(everything, f"DELETE FROM {table} WHERE rowid = ?", row.pop("place"))
        assert f"The log tells of {NAMES[table].format(**row)}, which is not in its table." in lines


MORE = {
    "proposal P-0099": "INSERT INTO proposals SELECT 'P-0099', 99, run_id, status, op, domain, extractor, strength,"
    " body, edited_text, reason, decided_by, decided_at, revision, published_in, experience_id FROM proposals LIMIT 1",
    "quarantined item Q-0099": "INSERT INTO quarantine VALUES (99, NULL, 'why', 'raw', '[]', 'now', NULL)",
    "claim on P-0005": "INSERT INTO claims VALUES ('P-0005', 'eve', 'now', 'later')",
    "version 3": "INSERT INTO versions VALUES (3, 2, 'eve', 'mine', 'now', 0)",
    "experience E-0099": "INSERT INTO experiences VALUES ('E-0099', 99, 0)",
    "label x": "INSERT INTO labels VALUES ('x', 1, 0, 'ann', '2026-01-01T00:00:00Z')",
}


@pytest.mark.parametrize("name", MORE)
def test_a_row_that_nobody_made_is_named(everything: Workspace, name: str) -> None:
    assert spoilt(everything, MORE[name]) == [f"The table has {name}, which the log does not tell of."]


def test_every_difference_is_named_and_a_body_that_cannot_be_read_hides_none_of_the_others(
    everything: Workspace,
) -> None:
    assert spoilt(everything, "UPDATE labels SET version = 0, moved_by = 'eve'") == [
        "Label trial has version 0, but the log says 1.",
        "Label trial has moved_by 'eve', but the log says 'ann'.",
    ]
    sql = "UPDATE proposals SET body = CASE id WHEN 'P-0001' THEN '{' ELSE body END, reason = 'x' WHERE number < 3"
    assert spoilt(everything, sql) == [
        "Proposal P-0001 has a body that cannot be read.",
        "Proposal P-0001 has reason 'x', but the log says ''.",
        "Proposal P-0002 has reason 'x', but the log says ''.",
    ]
    [long] = spoilt(everything, "UPDATE quarantine SET raw = ? WHERE id = 2", "y" * 100_000)
    assert len(long) < 300


def test_an_event_that_cannot_be_understood_is_named_and_the_others_are_read(everything: Workspace) -> None:
    with everything.store.writing():
        everything.store.events.append("eve", "label.set", "trial", {"label": {"version": "many"}})
        everything.store.events.append("eve", "surprise", "trial", {"surprise": 1})
    [first, second] = compare(everything.store)
    last = everything.store.events.newest(1)[0].id
    assert (first, second) == tuple(f"Event {i} of the log cannot be understood." for i in (last - 1, last))


# -- what a run set aside -------------------------------------------------------------------------


def run_that_set_aside(workspace: Workspace, *raw: str) -> str:
    task = make_task(1)
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [task], [0], request="r", kind="recorded", library_version=0, model="m", note="",
        actor="test",
    )  # fmt: skip
    workspace.store.proposals.quarantine(
        [Quarantined(reason="why", raw=r, run_id=run_id) for r in raw], "ann"
    )
    return run_id


def test_the_log_keeps_the_raw_reply_of_what_was_set_aside_with_the_reason_and_by_whom(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, [make_task(1)])
    run_id = run_that_set_aside(workspace, '{"op": "frob"} ${x} 字')
    told = replay(workspace.store.events.every()).quarantine
    assert told == {"Q-0001": workspace.store.proposals.quarantined_item("Q-0001")}
    assert told["Q-0001"].item.raw == '{"op": "frob"} ${x} 字'
    [event] = workspace.store.events.newest(subject="Q-0001")
    assert (event.actor, event.data) == ("ann", {"reason": "why", "run": run_id})


def test_a_discarded_run_takes_what_it_set_aside_with_it_and_no_name_is_given_twice(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, [make_task(1)])
    workspace.store.proposals.quarantine([Quarantined(reason="why", raw="of nobody")])
    run_id = run_that_set_aside(workspace, "one", "two")
    workspace.learning.cancel(run_id, "ann", discard=True)
    assert_rebuilt(workspace)
    assert workspace.store.proposals.quarantine([Quarantined(reason="why", raw="three")]) == ["Q-0004"]
    assert_rebuilt(workspace)


RAW = ('{"text": "say \\"hush 字\\" twice"}', 'cut off: {"text": "say \\"hush 字\\"', 'say "hush 字"')


@pytest.mark.parametrize("raw", RAW)
def test_a_redaction_takes_the_same_out_of_the_log_and_the_quarantine(workspace: Workspace, raw: str) -> None:
    store = workspace.store
    store.proposals.quarantine([Quarantined(reason='no "hush 字" here', raw=raw)])
    with store.writing():
        replaced = store.redactions.replace([(Needle('"hush 字"'), "[redacted 2026-01-01 #1]")])
    assert replaced.places == {
        "events.data": 1,
        "events.state": 2,
        "quarantine.raw": 1,
        "quarantine.reason": 1,
    }
    assert_rebuilt(workspace)


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


def test_what_was_set_aside_before_the_log_told_of_it_is_told_once_and_claims_end(
    workspace: Workspace,
) -> None:
    workspace.store.proposals.quarantine([Quarantined(reason=f"no {i}", raw=f'{{"{i}"}}') for i in (1, 2, 3)])
    workspace.review.adopt("Q-0002", Add(text="Adopted."), "ann")
    workspace.review.claim("P-0001", "bob")
    before = stored(workspace, "quarantine")
    path = workspace.folder / "winnow.db"
    with closing(sqlite3.connect(path)) as db:
        for trigger in ("events_stay", "events_remain"):
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("DELETE FROM events WHERE kind GLOB 'quarantine.*' OR kind GLOB 'claim.*'")
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm008_whole_log'")
        db.commit()
    upgraded = Workspace(workspace.folder, clock=ticking())
    assert stored(upgraded, "quarantine") == before
    assert upgraded.review.claims() == []
    assert_rebuilt(upgraded)
    assert upgraded.store.proposals.quarantine([Quarantined(reason="why", raw="four")]) == ["Q-0004"]


def test_a_new_workspace_has_a_log_that_is_complete_from_the_beginning(workspace: Workspace) -> None:
    publish(workspace, "First lesson.")
    told = replay(workspace.store.events.every())
    assert told.complete_from == 0
    assert [v.message for v in told.versions.values()] == ["test"]
    assert json.loads(told.proposals["P-0001"].canonical())["status"] == "published"
