"""The doctor: nothing is wrong with a sound workspace; each kind of harm is found, told where, and mended if safe."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.job import Job
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.care import Care
from core.workspace.checkup import Checkup
from tests.make import add_tasks, make_group, make_task, propose, publish


@pytest.fixture
def full(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    """A workspace with something in each table; no model file is there, and no trust file."""
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    task = make_task(1)
    add_tasks(workspace, [task, make_task(2)])
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [task], [0], request="r", kind="recorded", library_version=0, model="m", note="",
        actor="test",
    )  # fmt: skip
    workspace.store.groups.save(make_group(1.0, 0.0, id=f"{run_id}-0001"))
    workspace.store.runs.set_status(run_id, "done", "test")
    publish(workspace, "Answer with one word.")
    propose(workspace, "Read the question twice.")
    workspace.store.jobs.add("run", run_id, {}, "test")
    workspace.store.calls.put_many([("k" * 64, '{"text":"plain"}')])
    return workspace


def checkup(workspace: Workspace) -> Checkup:
    return Checkup(Care(workspace.folder, workspace.store.events.clock))


def harm(workspace: Workspace, *statements: str) -> None:
    """Change the file behind Winnow's back; what guards the log is lifted for it."""
    with closing(sqlite3.connect(workspace.folder / "winnow.db")) as db:
        guards = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%RAISE%'"
        ).fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
        for _, sql in guards:
            db.execute(sql)
        db.commit()


def test_a_sound_workspace_has_nothing_wrong(full: Workspace) -> None:
    dump = full.store.dump()
    assert checkup(full).check() == []
    assert checkup(full).fix("ann").backup is None, "where there is nothing to mend, nothing is made"
    assert full.store.dump() == dump


HARMS = {
    "points to no row of rollouts": "INSERT INTO trajectories VALUES ('nobody', x'00')",
    "rollout without its trajectory": "DELETE FROM trajectories WHERE rollout_id = 'R1-0001-1'",
    "cannot be unpacked": "UPDATE trajectories SET body = x'0011' WHERE rollout_id = 'R1-0001-1'",
    "not valid UTF-8": "UPDATE tasks SET question = CAST(x'ff41' AS TEXT) WHERE id = 't-002'",
    "a row that cannot be read": "UPDATE tasks SET split = 'nowhere' WHERE id = 't-002'",
    "a row that cannot be read ": "UPDATE proposals SET body = '{' WHERE id = 'P-0002'",
    "a row that cannot be read  ": "UPDATE runs SET config = '{\"surprise\": 1}'",
    "a row that cannot be read   ": "UPDATE calls SET completion = 'none'",
    "number of rollouts is not": "UPDATE groups SET size = 9",
    "number of experiences is not": "UPDATE versions SET size = 7 WHERE number = 1",
    "parent is not the one before": "INSERT INTO versions VALUES (3, 0, 'x', 'x', '2026-01-01T00:00:00Z', 1)",
    "came from a proposal that is not there": "UPDATE experience_states SET proposal_id = 'P-0099'",
    "published in no version": "UPDATE proposals SET published_in = 9 WHERE id = 'P-0001'",
    "the log says": "UPDATE experience_states SET text = 'Something else.'",
    "which is not in its table": "DELETE FROM proposals WHERE id = 'P-0002'",
    "an experience without any text": "INSERT INTO experiences VALUES ('E-0009', 9, 0)",
    "role that names an endpoint": "INSERT INTO roles VALUES ('rollouts', 'gone')",
    "vector of another size": "INSERT INTO embeddings VALUES ('a', 'm', x'00000000'), ('b', 'm', x'00000000'),"
    " ('c', 'm', x'0000000000000000')",
    "the trigger t that is not|there is a trigger t": "CREATE TRIGGER t AFTER INSERT ON tasks BEGIN SELECT 1; END",
    "the index tasks_by_text is missing": "DROP INDEX tasks_by_text",
    "an event of the future": "INSERT INTO events (at, actor, kind, subject, data) VALUES"
    " ('2999-01-01T00:00:00Z', 'a', 'k', 's', '{}')",
    "not found clean": "INSERT INTO redactions VALUES (1, '2026-01-01T00:00:00Z', 'a', 'k', '', '', '', '{}', NULL)",
    "lease of a worker": "UPDATE jobs SET state = 'running', worker = 'host 1 1', lease_until = '2025-01-01T00:00:00Z'",
    "search index": "INSERT INTO experience_words (experience_words) VALUES ('delete-all')",
    "newer Winnow": "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('winnow', 'm999_z', '')",
}


@pytest.mark.parametrize("says", HARMS)
def test_each_harm_is_found_and_told_where(says: str, full: Workspace) -> None:
    harm(full, HARMS[says])
    found = checkup(full).check()
    assert any(part.strip() in one.what for one in found for part in says.split("|")), found
    assert all(one.where and one.how for one in found)


def test_damaged_pages_are_found_without_opening_the_file(full: Workspace) -> None:
    full.store.tasks._database.close()
    path = full.folder / "winnow.db"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    assert any("damaged pages" in one.what or "cannot be read" in one.what for one in checkup(full).check())
    path.write_bytes(b"no database at all" * 500)
    assert any("cannot be read" in one.what for one in checkup(full).check())


def _model(workspace: Workspace, folder: Path) -> None:
    from core.embedder import TOKENIZER

    TOKENIZER.path.parent.mkdir(parents=True)
    TOKENIZER.path.write_text("not the tokenizer")


def _trust(workspace: Workspace, folder: Path) -> None:
    (folder / "trust.toml").write_text("key_variables = [")


AROUND: dict[str, Callable[[Workspace, Path], object]] = {
    "not what it should be": _model,
    "not valid TOML": _trust,
    "everyone may write": lambda workspace, folder: (workspace.folder / "winnow.db").chmod(0o666),
    "left-over": lambda workspace, folder: (workspace.folder / ".scratch-x").mkdir(),
    "left-over ": lambda workspace, folder: (workspace.folder / "winnow.before-x.db.partial").write_text(""),
}


@pytest.mark.skipif(os.name != "posix", reason="modes as POSIX has them")
@pytest.mark.parametrize("says", AROUND)
def test_what_is_wrong_around_it_is_found(says: str, full: Workspace, tmp_path: Path) -> None:
    AROUND[says](full, tmp_path)
    assert [one.what for one in checkup(full).check() if says.strip() in one.what]


def test_what_is_safe_is_mended_after_a_backup_and_the_rest_is_left(full: Workspace) -> None:
    harm(full, HARMS["lease of a worker"], HARMS["search index"], HARMS["role that names an endpoint"])
    (full.folder / ".scratch-x").mkdir()
    locks = full.folder / "locks"
    locks.mkdir(exist_ok=True)
    (locks / "R7.lock").touch()
    done = checkup(full).fix("ann")
    assert {one.mend for one in done.mended} == {"leases", "fts", "leftovers", "locks"}
    assert [one.what for one in done.findings] == ["a role that names an endpoint that is not there"]
    assert done.backup is not None
    assert done.backup.exists()
    job: Job = full.store.jobs.get("J1")
    assert (job.state, job.worker, job.lease_until) == ("running", "", None)
    with closing(sqlite3.connect(full.folder / "winnow.db")) as db:
        assert db.execute(
            "SELECT count(*) FROM experience_words WHERE experience_words MATCH 'word'"
        ).fetchone() == (1,)


def test_the_command_tells_scripts_by_its_exit_code(full: Workspace, tmp_path: Path) -> None:
    def winnow(*words: str, folder: Path = full.folder) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["doctor", *words, "--workspace", str(folder)])
        return done.exit_code, done.stdout

    real = Workspace(full.folder)
    assert winnow() == (0, "Nothing is wrong.\n")
    harm(real, HARMS["role that names an endpoint"])
    code, said = winnow("--json")
    assert code == 1
    [finding] = json.loads(said)["findings"]
    assert finding["where"] == "rollouts"
    assert winnow(folder=tmp_path / "none")[0] == 2
    assert not (tmp_path / "none").exists()


def test_an_older_workspace_is_upgraded_and_then_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.core.test_backup import old_file

    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    folder = tmp_path / "old"
    folder.mkdir()
    old_file(folder / "winnow.db", "m003_review")
    assert Checkup(Care(folder)).check() == []
    assert (folder / "winnow.before-m003_review.db").exists()
