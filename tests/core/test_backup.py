"""Backup and restore: consistent, checked, nothing written over, old or new whatever kills it."""

from __future__ import annotations

import json
import sqlite3
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock
from sqlite_utils import Database as SqliteUtils

from core.cli import main
from core.errors import BusyError, InputError
from core.experience import Quarantined
from core.migrations import MIGRATIONS
from core.settings import RunConfig
from core.store import Store
from core.worker import seat
from core.workspace import Workspace
from core.workspace.care import Care
from core.workspace.erasing import Erasing
from tests.killing import unsound
from tests.make import add_tasks, make_tasks, propose, publish, ticking


@pytest.fixture
def care(workspace: Workspace) -> Care:
    add_tasks(workspace, make_tasks(3))
    publish(workspace, "Answer with one word.")
    return Care(workspace.folder, ticking())


def log_free(dump: str) -> list[str]:
    """The dump without what restoring itself adds: its line in the log, and versions that are passed over."""
    added = ("workspace.restored", "was given before a restore")
    return [line for line in dump.splitlines() if not any(mark in line for mark in added)]


def test_what_was_backed_up_comes_back_and_what_was_there_meanwhile_too(
    workspace: Workspace, care: Care
) -> None:
    first = workspace.store.dump()
    made = care.backup(None, "ann")
    publish(workspace, "Answer with two words.")
    second = workspace.store.dump()
    done = care.restore(made.path, "ann")
    assert log_free(workspace.store.dump()) == log_free(first), "a connection that was open sees it, too"
    assert (workspace.store.versions.head(), done.versions) == (2, (2,)), "the number was given already"
    assert [e.text for e in workspace.store.versions.library()] == ["Answer with one word."]
    assert done.kept is not None
    care.restore(done.kept, "ann")
    assert log_free(workspace.store.dump()) == log_free(second)
    assert not unsound(workspace.folder)


def test_a_restore_is_told_in_the_log_of_what_was_restored(workspace: Workspace, care: Care) -> None:
    done = care.restore(care.backup(None, "ann").path, "bob")
    [event] = workspace.store.events.newest(1)
    assert done.kept is not None
    assert (event.actor, event.kind, event.data["kept"]) == ("bob", "workspace.restored", done.kept.name)


def test_a_backup_never_writes_over_a_file(care: Care, tmp_path: Path) -> None:
    there = tmp_path / "mine.zip"
    there.write_bytes(b"mine")
    with pytest.raises(InputError, match="never writes over"):
        care.backup(there, "ann")
    assert there.read_bytes() == b"mine"
    frozen = Care(care.folder, lambda: "2026-01-02T03:04:05Z")
    names = [frozen.backup(None, "ann").path.name for _ in range(2)]
    assert names == ["winnow-20260102T030405Z.zip", "winnow-20260102T030405Z-2.zip"]


def test_a_backup_made_amid_writes_is_one_state(workspace: Workspace, care: Care, tmp_path: Path) -> None:
    """Each write adds a task and a row aside, in one transaction: a backup has as many of the one as of the other."""
    stop = threading.Event()

    def write() -> None:
        store = Store(workspace.folder / "winnow.db", ticking())
        for number in range(10_000):
            if stop.is_set():
                return
            with store.writing():
                store.tasks.add(make_tasks(1, id=f"w-{number}", question=f"What is {number}?"), [1], "w", "w")
                store.events.append("w", "counted", "w")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [care.backup(tmp_path / f"{n}.zip", "ann") for n in range(4)]
    finally:
        stop.set()
        writer.join()
    for backup in made:
        with zipfile.ZipFile(backup.path) as archive, closing(sqlite3.connect(":memory:")) as db:
            db.deserialize(archive.read("winnow.db"))
            [tasks] = db.execute("SELECT count(*) FROM tasks WHERE id LIKE 'w-%'").fetchone()
            [events] = db.execute("SELECT count(*) FROM events WHERE kind = 'counted'").fetchone()
        assert tasks == events


def _rewrite(source: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


def _manifest(**fields: object) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | fields).encode()

    return change


def _flip(members: dict[str, bytes]) -> None:
    data = bytearray(members["winnow.db"])
    data[5000] ^= 1
    members["winnow.db"] = bytes(data)


TRICKS: dict[str, Callable[[dict[str, bytes]], None]] = {
    "nothing else": lambda members: members.update({"../../evil": b"x"}),
    "nothing else ": lambda members: members.update({"/etc/passwd": b"x"}),
    "nothing else  ": lambda members: members.pop("manifest.json") and None,
    "checksum": _flip,
    "size": lambda members: members.update({"winnow.db": members["winnow.db"] + bytes(10_000_000)}),
    "newer Winnow": _manifest(format=2),
    "what its manifest says": _manifest(counts={"tasks": 99}),
    "manifest.json: ": _manifest(surprise=1),
    "damaged zip": lambda members: members.update({"manifest.json": b"{"}),
}


@pytest.mark.parametrize("says", TRICKS)
def test_a_backup_that_was_tampered_with_is_refused_and_nothing_changes(
    says: str, workspace: Workspace, care: Care, tmp_path: Path
) -> None:
    bad = _rewrite(care.backup(None, "ann").path, tmp_path / "bad.zip", TRICKS[says])
    before = workspace.store.dump()
    with pytest.raises(InputError, match=says.strip()):
        care.restore(bad, "ann")
    assert workspace.store.dump() == before
    assert not list(workspace.folder.glob(".scratch-*"))


def test_what_is_no_workspace_is_refused(workspace: Workspace, care: Care, tmp_path: Path) -> None:
    text, other, half = tmp_path / "a.txt", tmp_path / "other.db", tmp_path / "half.zip"
    text.write_text("no backup")
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
    half.write_bytes(care.backup(None, "ann").path.read_bytes()[:-200])
    for file, says in ((text, "neither"), (other, "not one of Winnow"), (half, "neither")):
        with pytest.raises(InputError, match=says):
            care.restore(file, "ann")
    assert workspace.store.versions.head() == 1


def test_a_database_with_a_trigger_of_its_own_is_refused(
    workspace: Workspace, care: Care, tmp_path: Path
) -> None:
    evil = tmp_path / "evil.db"
    with closing(sqlite3.connect(workspace.folder / "winnow.db")) as db:
        db.execute("VACUUM INTO ?", (str(evil),))
    with closing(sqlite3.connect(evil)) as db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN DELETE FROM proposals; END")
    with pytest.raises(InputError, match="trigger t that is not Winnow's"):
        care.restore(evil, "ann")


def test_a_newer_workspace_is_refused(workspace: Workspace, care: Care, tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    with closing(sqlite3.connect(workspace.folder / "winnow.db")) as db:
        db.execute("VACUUM INTO ?", (str(newer),))
    with closing(sqlite3.connect(newer)) as db:
        db.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('winnow', 'm999_later', '')"
        )
        db.commit()
    with pytest.raises(InputError, match="it has m999_later"):
        care.restore(newer, "ann")


def old_file(path: Path, before: str) -> None:
    """A file as an earlier Winnow left it: made by its migrations, with a version and a decision in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        MIGRATIONS.apply(SqliteUtils(db, execute_plugins=False), stop_before=before)
        db.execute("INSERT INTO versions VALUES (1, 0, 'ann', 'First', '2026-01-01T00:00:00Z', 1)")
        db.execute("INSERT INTO experiences VALUES ('E-0001', 1, 0)")
        db.execute(
            "INSERT INTO experience_states VALUES ('E-0001', 1, NULL, 'Read the file.', 'strategy', 'general', 'live',"
            " NULL, NULL, 'm', 0.5, 0, 0)"
        )
        db.execute(
            "INSERT INTO events (at, actor, kind, subject, data) VALUES ('2026-01-01T00:00:00Z', 'a', 'k', 's', '{}')"
        )


OLD = [m.name for m in MIGRATIONS._migrations][1:]


@pytest.mark.parametrize("before", OLD)
def test_a_copy_is_kept_of_a_file_of_each_earlier_schema_and_can_be_restored(
    before: str, tmp_path: Path
) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    old_file(folder / "winnow.db", before)
    workspace = Workspace(folder, clock=ticking())
    assert [e.text for e in workspace.store.versions.library()] == ["Read the file."]
    [copy] = folder.glob("winnow.before-*")
    assert copy.name == f"winnow.before-{before}.db"
    assert not list(folder.glob("*.partial*"))
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",), "one file, without a journal"
        names = [n for (n,) in db.execute("SELECT name FROM _sqlite_migrations")]
        assert before not in names
        assert db.execute("SELECT text FROM experience_states").fetchall() == [("Read the file.",)]
    publish(workspace, "A later lesson.")
    Care(folder, ticking()).restore(copy, "ann")
    assert workspace.store.versions.head() == 2, "its number is not given again"
    texts = [e.text for e in workspace.store.versions.library()]
    assert texts == ["Read the file."], "the old file was put back, at the present schema"
    publish(workspace, "Another later lesson.")
    assert not unsound(folder)


def test_a_second_upgrade_keeps_a_second_copy(tmp_path: Path) -> None:
    for number in range(2):
        path = tmp_path / "winnow.db"
        path.unlink(missing_ok=True)
        old_file(path, "m002_engine")
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"UPDATE versions SET message = 'number {number}' WHERE number = 1")
            db.commit()
        Store(path, ticking())
    found = []
    for copy in sorted(tmp_path.glob("winnow.before-*")):
        with closing(sqlite3.connect(copy)) as db:
            found += db.execute("SELECT message FROM versions WHERE number = 1").fetchall()
    assert sorted(found) == [("number 0",), ("number 1",)]


def test_a_damaged_file_is_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "winnow.db"
    old_file(path, "m002_engine")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("INSERT INTO trajectories VALUES ('nobody', x'00')")
        db.commit()
    with pytest.raises(InputError, match="damaged"):
        Store(path, ticking())
    with closing(sqlite3.connect(path)) as db:
        names = [n for (n,) in db.execute("SELECT name FROM _sqlite_migrations")]
    assert names == ["m001_first"]


def test_a_restore_waits_for_nobody_who_works(workspace: Workspace, care: Care) -> None:
    made = care.backup(None, "ann")
    with seat(workspace.folder), pytest.raises(BusyError, match="worker is at work"):
        care.restore(made.path, "ann")
    with FileLock(workspace.folder / "locks" / "R1.lock"), pytest.raises(BusyError, match="works on R1"):
        care.restore(made.path, "ann")
    care.restore(made.path, "ann")


@pytest.mark.parametrize("harm", ["no database", "torn"])
def test_a_damaged_workspace_is_replaced_and_its_files_are_kept_as_they_are(
    harm: str, workspace: Workspace, care: Care
) -> None:
    dump = workspace.store.dump()
    made = care.backup(None, "ann")
    path = workspace.folder / "winnow.db"
    workspace.store.tasks._database.close()
    data = path.read_bytes()
    bad = b"nonsense" * 1000 if harm == "no database" else data[:8192] + bytes(len(data) - 8192)
    path.write_bytes(bad)
    done = care.restore(made.path, "ann")
    assert done.kept is not None
    assert (done.kept / "winnow.db").read_bytes() == bad
    assert log_free(Workspace(workspace.folder).store.dump()) == log_free(dump)


def test_a_workspace_can_be_restored_where_none_is(care: Care, tmp_path: Path) -> None:
    made = care.backup(tmp_path / "x.zip", "ann")
    done = Care(tmp_path / "new", ticking()).restore(made.path, "ann")
    assert done.kept is None
    assert Workspace(tmp_path / "new").store.versions.head() == 1


def test_the_commands_say_where_it_is_and_how_to_go_back(
    workspace: Workspace, care: Care, tmp_path: Path
) -> None:
    def winnow(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])
        return done.exit_code, done.output

    code, said = winnow("backup", str(tmp_path / "b.zip"))
    assert (code, f"winnow restore {tmp_path / 'b.zip'}" in said) == (0, True)
    assert winnow("backup", str(tmp_path / "b.zip"))[0] == 2
    code, said = winnow("restore", str(tmp_path / "b.zip"))
    assert (code, "To go back: winnow restore" in said) == (0, True)
    with seat(workspace.folder):
        assert winnow("restore", str(tmp_path / "b.zip"))[0] == 3
    elsewhere = CliRunner().invoke(main, ["backup", "--workspace", str(tmp_path / "none")])
    assert elsewhere.exit_code == 2
    assert not (tmp_path / "none").exists()


# -- what a restore does not take back -------------------------------------------------------------------


def test_no_id_and_no_version_is_given_twice(workspace: Workspace, care: Care) -> None:
    store = workspace.store
    made = care.backup(None, "ann")
    for text in ("Answer with two words.", "Answer with three words."):
        publish(workspace, text)
    task = make_tasks(1)[0]

    def run() -> str:
        return store.runs.create(
            RunConfig(group_size=2), [task], [0], request="r", kind="recorded", library_version=0, model="m",
            note="", actor="test",
        )  # fmt: skip

    def set_aside() -> str:
        return store.proposals.quarantine([Quarantined(reason="odd", raw="?")])[0]

    gone = {
        set_aside(),
        *propose(workspace, "Ask once."),
        run(),
        store.jobs.add("run", "R1", {}, "test").id,
        "E-0002",
        "E-0003",
    }
    versions = [store.versions.get(n) for n in (2, 3)]
    for _ in range(2):  # the second restore knows what the first one knew
        done = care.restore(made.path, "ann")
    assert done.versions == (2, 3)
    assert [store.versions.get(n).message == v.message for n, v in zip((2, 3), versions, strict=True)] == [
        False,
        False,
    ]
    publish(workspace, "Answer with four words.")
    assert store.versions.head() == 4
    assert [e.id for e in store.versions.library()] == ["E-0001", "E-0004"]
    assert not gone & {
        set_aside(),
        *propose(workspace, "Ask twice."),
        run(),
        store.jobs.add("run", "R2", {}, "test").id,
    }
    assert not unsound(workspace.folder)


def test_versions_of_another_workspace_are_not_passed_over(
    workspace: Workspace, care: Care, tmp_path: Path
) -> None:
    other = Workspace(tmp_path / "other", ticking())
    for text in ("One.", "Two.", "Three."):
        publish(other, text)
    done = Care(other.folder, ticking()).restore(care.backup(None, "ann").path, "ann")
    assert done.versions == ()
    assert other.store.versions.head() == 1


def test_a_redaction_outlasts_the_restore_of_a_backup_from_before_it(
    workspace: Workspace, care: Care
) -> None:
    secret = "the code of the door is 4711"
    publish(workspace, f"Remember: {secret}.")
    made = care.backup(None, "ann")
    assert Erasing(workspace).redact([secret], "ann").redactions[0].id == 1

    def winnow(*words: str, stdin: str = "") -> tuple[int, str]:
        done = CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)], input=stdin)
        return done.exit_code, done.output

    code, said = winnow("restore", str(made.path))
    assert code == 1
    assert "1 redaction was made after this backup (#1)" in said
    assert secret in workspace.store.dump(), "a backup gives back what it holds"
    [known] = workspace.store.redactions.all()
    assert (known.id, known.proved_at) == (1, None)
    code, said = winnow("doctor")
    assert (code, "redaction 1" in said, "--remove-copies" in said) == (1, True, True)
    code, said = winnow("redact", "--yes", "--remove-copies", stdin=secret)
    assert code == 0, said
    [known] = workspace.store.redactions.all()
    assert known.proved_at is not None, "the same text is the same redaction"


def test_going_back_says_that_what_is_kept_holds_the_text(workspace: Workspace, care: Care) -> None:
    secret = "the code of the door is 4711"
    publish(workspace, f"Remember: {secret}.")
    made = care.backup(None, "ann")
    Erasing(workspace).redact([secret], "ann")
    kept = care.restore(made.path, "ann").kept
    assert kept is not None
    back = care.restore(kept, "ann")
    assert (back.redactions, back.held) == ((), (1,)), "before-restore-...-2 holds it"
    assert secret not in workspace.store.dump()


def test_where_what_was_there_cannot_be_read_it_is_said_that_nothing_is_known(
    workspace: Workspace, care: Care
) -> None:
    made = care.backup(None, "ann")
    workspace.store.tasks._database.close()
    (workspace.folder / "winnow.db").write_bytes(b"nonsense" * 1000)
    assert not care.restore(made.path, "ann").compared


def test_the_backup_in_json_is_named_so_that_it_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace(tmp_path / "ws")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["backup", "b.zip", "--json", "--workspace", "ws"])
    assert json.loads(done.stdout)["path"] == str(tmp_path / "b.zip")
