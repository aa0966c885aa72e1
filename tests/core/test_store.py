from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from core.rollout import Message, Step, Trajectory
from core.settings import RunConfig
from core.store import Store
from core.workspace import Workspace
from tests.make import add_tasks, make_group, make_tasks, ticking


class CountingEmbedder:
    dimension = 3

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(t), len(self.name), 1] for t in texts], dtype=np.float32)


def test_a_text_is_embedded_once_for_each_model_and_models_are_never_mixed(workspace: Workspace) -> None:
    one, other = CountingEmbedder("one"), CountingEmbedder("the other")
    embed = workspace.store.embeddings.embed
    first = embed(["a", "bb", "a"], one)
    again = embed(["bb", "a"], one)
    assert one.asked == ["a", "bb"]
    np.testing.assert_array_equal(again, first[[1, 0]])
    assert embed(["a"], other)[0, 1] == len("the other")
    assert embed([], one).shape == (0, 3)


def test_a_paid_reply_is_kept_and_never_replaced(workspace: Workspace) -> None:
    calls = workspace.store.calls
    calls.put_many([("k", '{"text": "first"}')])
    calls.put_many([("k", '{"text": "second"}')])
    assert calls.get("k") == '{"text": "first"}'
    assert calls.get("other") is None


def test_a_trajectory_comes_back_as_it_was_saved(workspace: Workspace) -> None:
    workspace.store.tasks.add(make_tasks(1), [1], "f", "test")
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), make_tasks(1), [0], request="r", kind="recorded", library_version=0, model="m",
        note="", actor="test",
    )  # fmt: skip
    steps = [
        [
            Step(
                tool="read",
                parameters={"p": "ä字", "n": [1, None]},
                output="x" * 100_000,
                success=False,
                error="E",
            )
        ]
    ]
    group = make_group(1.0, "broke off", id=f"{run_id}-0001", answers=["a" * 5000, ""], steps=steps)
    workspace.store.groups.save(group)
    workspace.store.groups.save(group)
    assert workspace.store.groups.get(group.id) == group
    assert workspace.store.groups.rollout(f"{group.id}-0") == group.rollouts[0]
    listed = workspace.store.groups.get(group.id, trajectories=False)
    assert len(listed.rollouts[0].trajectory.answer) == 2000, "a list does not read whole answers"


def test_a_trajectory_that_an_earlier_version_packed_stays_readable(workspace: Workspace) -> None:
    workspace.store.tasks.add(make_tasks(1), [1], "f", "test")
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), make_tasks(1), [0], request="r", kind="recorded", library_version=0, model="m",
        note="", actor="test",
    )  # fmt: skip
    group = make_group(1.0, 0.0, id=f"{run_id}-0001", answers=["ä字" * 500, "no"])
    workspace.store.groups.save(group)
    database = workspace.store.runs._database
    for rollout in group.rollouts:
        body = zlib.compress(rollout.trajectory.canonical().encode(), 6)
        with database.writing():
            database.execute("UPDATE trajectories SET body = ? WHERE rollout_id = ?", body, rollout.id)
    assert workspace.store.groups.get(group.id) == group


def test_a_transaction_that_fails_leaves_nothing_behind(workspace: Workspace) -> None:
    before = workspace.store.dump()

    def add_then_fail() -> None:
        with workspace.store.writing():
            workspace.store.tasks.add(make_tasks(3), [1, 2, 3], "f", "test")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        add_then_fail()
    assert workspace.store.dump() == before


def test_a_write_outside_a_transaction_is_a_mistake_that_is_told(workspace: Workspace) -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        workspace.store.runs._database.execute("DELETE FROM tasks")


def test_a_copy_is_kept_before_a_file_that_is_there_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "winnow.db"
    with sqlite3.connect(path) as database:  # a file from before the first migration
        database.execute("CREATE TABLE notes (text TEXT)")
        database.execute("INSERT INTO notes VALUES ('mine')")
    assert Store(path, clock=ticking()).versions.head() == 0
    with sqlite3.connect(tmp_path / "winnow.before-m001_first.db") as copy:
        assert copy.execute("SELECT * FROM notes").fetchall() == [("mine",)]
        tables = [name for (name,) in copy.execute("SELECT name FROM sqlite_master")]
    assert "tasks" not in tables


def test_reading_a_version_does_not_see_later_ones(workspace: Workspace) -> None:
    from tests.make import publish

    publish(workspace, "First lesson.")
    publish(workspace, "Second lesson.")
    sizes = [len(workspace.store.versions.library(n)) for n in (0, 1, 2)]
    assert sizes == [0, 1, 2]
    assert [v.number for v in workspace.store.versions.newest()] == [2, 1, 0]


def test_a_commit_that_fails_leaves_nothing_open_for_later_writes_to_join(workspace: Workspace) -> None:
    database = workspace.store.runs._database
    before = workspace.store.dump()

    def break_a_promise() -> None:
        with database.writing():
            database.execute("PRAGMA defer_foreign_keys = ON")
            database.execute("INSERT INTO trajectories VALUES ('nobody', x'00')")

    with pytest.raises(sqlite3.IntegrityError):
        break_a_promise()
    assert not database.handle.conn.in_transaction
    assert workspace.store.dump() == before


@pytest.mark.parametrize(
    ("last", "answer"), [("Paris", "Paris"), ("It is Paris.", "Paris"), ("", ""), ("Paris", "")]
)
def test_a_trajectory_is_read_as_it_was_written_whether_its_answer_is_its_last_message_or_not(
    workspace: Workspace, last: str, answer: str
) -> None:
    add_tasks(workspace, make_tasks(1))
    run = workspace.learning.start(RunConfig(group_size=2), "test")
    messages = (Message(role="user", content="Where?"), Message(role="assistant", content=last))
    group = make_group(1.0, 0.0, id=f"{run.id}-0001", run_id=run.id)
    rollouts = [
        r.model_copy(update={"trajectory": Trajectory(messages=messages, answer=answer)})
        for r in group.rollouts
    ]
    workspace.store.groups.save(group.model_copy(update={"rollouts": tuple(rollouts)}))
    assert workspace.store.groups.get(group.id).rollouts[0].trajectory == rollouts[0].trajectory


def test_the_mark_of_the_log_leaves_out_the_families_that_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "winnow.db", ticking())
    events = store.events
    assert events.mark("claim") == 0
    with store.writing():
        events.append("ann", "version.published", "version 1")
        told = events.mark()
        events.append("ann", "claim.taken", "claims")
    assert (events.mark("claim"), events.mark("claim", "version"), events.mark()) == (told, 0, told + 1)
