"""Redaction: a text is taken out everywhere, the files are searched for it, and all else reads as before."""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
import sys
import zipfile
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from core.cli import main
from core.cli.care import _piped
from core.errors import BusyError, InputError, PackError
from core.experience import Delete, Quarantined
from core.packs.content import unfit
from core.rollout import Message, SetAside, Step
from core.settings import RunConfig
from core.store.copying import copy_database
from core.store.needle import Needle, merged
from core.store.replay import compare
from core.store.sweep import strings
from core.worker import seat
from core.workspace import Workspace
from core.workspace.care import Care
from core.workspace.erasing import Erased, Erasing
from core.workspace.quiet import SCRATCH
from core.workspace.workspace import DATABASE
from tests.killing import unsound
from tests.make import add_tasks, make_group, make_task, propose, publish, ticking

SECRET = 'hunter2-Ödland"key/7'


def plant(workspace: Workspace, secret: str) -> None:
    """Put a text wherever one can be."""
    store = workspace.store
    task = make_task(
        1, question=f"Log in with {secret}: what is 1 + 1?", metadata={"note": secret, secret: 1}
    )
    add_tasks(workspace, [task, make_task(2)])
    store.tasks.set_aside(
        [SetAside(kind="task", source=f"{secret}.csv", line=1, reason="no", raw=f"x,{secret}")]
    )
    run_id = store.runs.create(
        RunConfig(group_size=2), [task], [0], request="r", kind="recorded", library_version=0, model="m",
        note=f"from {secret}", actor="test",
    )  # fmt: skip
    nested = json.dumps({"said": json.dumps({"token": secret})})
    step = Step(
        tool="login", parameters={"key": secret, "n": 5}, output=nested, success=False, error=f"bad {secret}"
    )
    group = make_group(
        1.0, 0.0, id=f"{run_id}-0001", answers=[f"It is {secret.upper()}", "2"], steps=[[step], []]
    )
    first, other = group.rollouts
    messages = (
        Message(role="user", content=f"{secret}{secret}"),
        Message(role="tool", content="Basic " + _b64(secret)),
    )
    first = first.model_copy(
        update={"trajectory": first.trajectory.model_copy(update={"messages": messages})}
    )
    store.groups.save(group.model_copy(update={"rollouts": (first, other)}))
    store.groups.save_critiques({}, {first.id: f"used {secret}"}, {group.id: nested})
    store.calls.put_many(
        [("a" * 64, json.dumps({"text": f"the key {secret}"})), ("b" * 64, '{"text":"plain"}')]
    )
    store.proposals.quarantine([Quarantined(reason="odd", raw=f"op: {secret}", run_id=run_id)])
    publish(workspace, f"Log in with {secret} first.")
    publish(workspace, "Read the question twice.")
    propose(workspace, f"Never print {secret}.", "Answer in one word.")
    store.jobs.add("run", run_id, {"note": secret}, "test")
    logs = workspace.folder / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "worker.log").write_text(f"started\nfailed on {secret}\n", "utf-8")


def _b64(text: str) -> str:
    return base64.b64encode(f"user:{text}".encode()).decode()


def in_files(folder: Path, secret: str) -> list[str]:
    """Files whose bytes, or what is inside of them, hold a text: written without what it tests."""
    forms = [secret, secret.upper(), json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[2:-2]]
    needles = {form.encode(encoding) for form in forms for encoding in ("utf-8", "utf-16-le")}
    needles |= {_b64(secret)[8:-4].encode()} if len(secret) > 10 else set()
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        pieces = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                pieces += [archive.read(name) for name in archive.namelist()]
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as db:
                pieces += [text.encode() for text in strings(db)]
        if any(needle in piece for needle in needles for piece in pieces):
            found.append(path.name)
    return found


def redact(workspace: Workspace, *texts: str, **options: bool) -> Erased:
    return Erasing(workspace).redact(texts, "ann", reason="it leaked", **options)


def test_a_trajectory_has_another_mark_after_any_redaction(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    marks = workspace.store.trajectories.mark
    [of, *_] = (row["id"] for row in workspace.store._database.rows("SELECT id FROM rollouts"))
    before = marks(of)
    assert marks(of) == before
    redact(workspace, "what only another text holds")
    assert marks(of) != before, "it may have held the text: what is kept of it is read anew"


def test_nothing_of_it_is_left_in_any_file_and_the_rest_reads_as_before(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    assert in_files(workspace.folder, SECRET) == ["worker.log", "winnow.db", "winnow.db-wal"]
    done = redact(workspace, SECRET)
    assert done.proved, done.left
    assert in_files(workspace.folder, SECRET) == []
    assert not unsound(workspace.folder)
    assert compare(workspace.store) == [], "the log still tells what is in the tables"
    mark = done.redactions[0].tombstone
    task = workspace.store.tasks.find("t-001")
    assert task is not None
    assert task.question == f"Log in with {mark}: what is 1 + 1?"
    assert task.metadata == {"note": mark, mark: 1}
    rollout = workspace.store.groups.rollout("R1-0001-0")
    [step] = rollout.trajectory.steps
    assert (step.parameters, step.error) == ({"key": mark, "n": 5}, f"bad {mark}")
    assert json.loads(json.loads(step.output)["said"]) == {"token": mark}, "JSON stays JSON, however deep"
    assert rollout.trajectory.answer == f"It is {mark}", "in the other case, too"
    assert rollout.trajectory.messages[0].content == mark * 2
    assert workspace.store.groups.rollout("R1-0001-1").trajectory.answer == "2"
    assert "".join((workspace.folder / "logs" / "worker.log").read_text()) == f"started\nfailed on {mark}\n"


def test_it_leaves_the_library_and_the_queue_and_the_cache(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    done = redact(workspace, SECRET)
    assert (done.experiences, done.version) == (("E-0001",), 3)
    assert [e.id for e in workspace.store.versions.library()] == ["E-0002"]
    mark = done.redactions[0].tombstone
    assert workspace.store.versions.library(1).experiences["E-0001"].text == f"Log in with {mark} first."
    assert done.proposals == ("P-0003",)
    rejected = workspace.store.proposals.get("P-0003")
    assert (rejected.status, rejected.reason) == ("rejected", "Its text was redacted.")
    assert workspace.store.proposals.get("P-0004").status == "proposed"
    assert workspace.store.calls.get("a" * 64) is None, "a reply that was changed is not what the model said"
    assert workspace.store.calls.get("b" * 64) == '{"text":"plain"}'
    publish(workspace, "A lesson that comes later.")


def test_the_record_says_who_when_and_why_and_never_what(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    redact(workspace, SECRET)
    [record] = workspace.store.redactions.all()
    assert (record.id, record.actor, record.kind, record.reason) == (1, "ann", "secret", "it leaked")
    assert record.proved_at is not None
    events = [e for e in workspace.store.events.newest(50) if e.kind == "workspace.redacted"]
    assert [(e.actor, e.subject) for e in events] == [("ann", "redaction 1")]
    assert workspace.store.redactions.of(SECRET) == record
    assert workspace.store.redactions.of("another text") is None
    with pytest.raises(sqlite3.IntegrityError, match="append-only"), workspace.store.writing():
        workspace.store.tasks._database.execute("UPDATE redactions SET actor = 'nobody'")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"), workspace.store.writing():
        workspace.store.tasks._database.execute("DELETE FROM events")


def test_a_second_time_nothing_is_found_and_nothing_changes(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    first = redact(workspace, SECRET)
    dump = workspace.store.dump()
    again = redact(workspace, SECRET)
    assert (again.places, again.proved, again.redactions[0].id) == ({}, True, first.redactions[0].id)
    assert [x for x in workspace.store.dump().splitlines() if not x.startswith("redactions")] == [
        x for x in dump.splitlines() if not x.startswith("redactions")
    ]


def test_a_dry_run_counts_and_changes_nothing(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    dump = workspace.store.dump()
    done = redact(workspace, SECRET, dry_run=True)
    assert done.places["tasks.question"] == 1
    assert done.places["trajectories.body"] >= 6
    assert [f.file for f in done.left] == ["logs/worker.log"]
    assert workspace.store.dump() == dump
    real = redact(workspace, SECRET)
    for name in ("places", "by_chance", "experiences", "version", "proposals"):
        assert getattr(real, name) == getattr(done, name), name
    assert (done.experiences, done.version, done.proposals) == (("E-0001",), 3, ("P-0003",))


def test_a_rollback_leaves_out_what_was_redacted_and_nothing_ships_it(workspace: Workspace) -> None:
    publish(workspace, "Log in with zanzibarkey first.", "Ask once.")
    publish(workspace, Delete(experience_id="E-0002"), "Count to ten.")
    done = redact(workspace, "zanzibarkey")
    assert unfit(done.redactions[0].tombstone) is not None
    assert workspace.review.preview_rollback(1).redacted == ("E-0001",)
    made = workspace.review.rollback(1, "ann")
    assert made.message == "Roll back to version 1, without E-0001 (redacted)"
    with pytest.raises(InputError, match="nothing to roll back"):
        workspace.review.rollback(1, "ann")
    library = workspace.store.versions.library()
    assert [e.text for e in library] == ["Ask once."]
    assert library.experiences["E-0001"].status == "deleted"
    assert workspace.shipping.export("prompt").experiences == 1
    with pytest.raises(PackError, match="mark of a redaction"):
        workspace.shipping.export("prompt", 1)


def test_words_that_can_be_searched_for_are_gone_from_the_index(workspace: Workspace) -> None:
    publish(workspace, "Use zanzibarkey for it.")
    assert redact(workspace, "zanzibarkey").proved
    assert in_files(workspace.folder, "zanzibarkey") == []
    with closing(sqlite3.connect(workspace.folder / "winnow.db")) as db:
        db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, experience_words, 'row')")
        words = {word for (word,) in db.execute("SELECT term FROM v")}
    assert "redacted" in words
    assert "zanzibarkey" not in words


def test_what_was_deleted_long_ago_goes_from_the_free_pages(workspace: Workspace) -> None:
    workspace.store.calls.put_many([("c" * 64, json.dumps({"text": f"the key {SECRET} " * 20_000}))])
    database = workspace.store.tasks._database
    database.handle.conn.execute("PRAGMA secure_delete = OFF")  # on some systems it is on from the start
    with database.writing():
        database.execute("DELETE FROM calls")
    assert in_files(workspace.folder, SECRET) != []
    assert redact(workspace, SECRET).proved
    assert in_files(workspace.folder, SECRET) == []


def test_copies_and_packs_are_listed_and_only_copies_are_removed_when_asked(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    backup = Care(workspace.folder, ticking()).backup(None, "ann").path
    packs = workspace.folder / "packs"
    packs.mkdir()
    with zipfile.ZipFile(packs / "p.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("prompt.txt", f"Log in with {SECRET}.")
    done = redact(workspace, SECRET)
    assert not done.proved
    assert {found.file for found in done.left} == {f"backups/{backup.name}", "packs/p.zip"}
    assert workspace.store.redactions.all()[0].proved_at is None
    done = redact(workspace, SECRET, copies=True)
    assert (done.removed, [found.file for found in done.left]) == (
        (f"backups/{backup.name}",),
        ["packs/p.zip"],
    )
    (packs / "p.zip").unlink()
    assert redact(workspace, SECRET).proved
    assert workspace.store.redactions.all()[0].proved_at is not None


def test_what_is_only_inside_a_compressed_value_of_a_copy_is_found(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    path = workspace.folder / "winnow.before-m999_x.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE trajectories (body BLOB)")
        db.execute("INSERT INTO trajectories VALUES (?)", (zlib.compress(f"the {SECRET} is".encode()),))
        db.commit()
    assert [found.file for found in redact(workspace, SECRET).left] == [path.name]


def test_what_is_refused_changes_nothing(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    dump = workspace.store.dump()
    for text, says in (
        ("abc", "fewer than 4"),
        ("redacted", "in its place"),
        ("it leaked", "which are kept"),
    ):
        with pytest.raises(InputError, match=says):
            redact(workspace, text)
    with pytest.raises(InputError, match="could not be read"):
        redact(workspace, "question", "parameters")
    with pytest.raises(InputError, match="no text"):
        redact(workspace)
    with seat(workspace.folder), pytest.raises(BusyError, match="worker"):
        redact(workspace, SECRET)
    with FileLock(workspace.folder / "locks" / "R1.lock"), pytest.raises(BusyError, match="R1"):
        redact(workspace, SECRET)
    assert workspace.store.dump() == dump


def test_ids_hashes_and_times_that_hold_it_by_chance_stay(workspace: Workspace) -> None:
    plant(workspace, "R1-0001 is the code")
    done = redact(workspace, "0001")
    assert done.proved
    assert done.by_chance > 0
    assert workspace.store.groups.rollout("R1-0001-0").group_id == "R1-0001"
    task = workspace.store.tasks.find("t-001")
    assert task is not None
    assert "0001" not in task.question
    assert compare(workspace.store) == []


@pytest.mark.parametrize(
    "text", ["priors", "INTEGER", "CREATE TABLE", "SQLite format", "remain", "m001_first"]
)
def test_what_every_database_of_winnows_holds_is_neither_left_over_nor_a_reason_to_remove_copies(
    workspace: Workspace, text: str
) -> None:
    plant(workspace, f"the {text} of mine")
    clean = Workspace(workspace.folder.parent / "clean", clock=ticking())
    backup = Care(clean.folder, ticking()).backup(None, "ann").path
    (workspace.folder / "backups").mkdir()
    kept = workspace.folder / "backups" / backup.name
    kept.write_bytes(backup.read_bytes())
    done = redact(workspace, text, copies=True)
    assert done.proved, done.left
    assert done.places["tasks.question"] == 1
    assert (done.removed, kept.exists()) == ((), True)
    assert not [path for path in workspace.folder.iterdir() if path.name.startswith(SCRATCH)]


def test_the_time_of_a_migration_may_hold_it_by_chance(workspace: Workspace) -> None:
    [at] = {
        row["applied_at"][17:24]
        for row in workspace.store.tasks._database.rows("SELECT applied_at FROM _sqlite_migrations LIMIT 1")
    }
    add_tasks(workspace, [make_task(1, question=f"What happened {at} seconds ago?")])
    done = redact(workspace, at)
    assert done.proved, done.left
    assert done.places["tasks.question"] == 1


def test_a_copy_holds_what_only_its_free_pages_or_its_index_still_hold(workspace: Workspace) -> None:
    publish(workspace, "Use zanzibarkey for it.")
    backups = workspace.folder / "backups"
    backups.mkdir()
    free, index = backups / "free.db", backups / "index.db"
    for path in (free, index):
        copy_database(workspace.folder / DATABASE, path)
    with closing(sqlite3.connect(free)) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute(
            "INSERT INTO calls (key, completion, at) VALUES ('k', ?, '')", ("the priorskey " * 20_000,)
        )
        db.commit()
        db.execute("DELETE FROM calls")
        db.commit()
    with closing(sqlite3.connect(index)) as db:
        db.execute("INSERT INTO experience_words (rowid, words) VALUES (99, 'priorskey')")
        db.commit()
    assert {found.file for found in redact(workspace, "priorskey").left} == {
        "backups/free.db",
        "backups/index.db",
    }
    assert {found.file for found in redact(workspace, "priors").left} == {
        "backups/free.db",
        "backups/index.db",
    }, "the name of a table hides nothing"


def test_a_copy_that_cannot_be_searched_is_listed_and_never_removed(workspace: Workspace) -> None:
    plant(workspace, SECRET)
    path = workspace.folder / "winnow.before-m999_x.db"
    path.write_bytes(b"SQLite format 3\x00 and then nothing of the kind")
    done = redact(workspace, SECRET, copies=True)
    [left] = done.left
    assert (left.file, left.count, path.exists()) == (path.name, 0, True)
    assert "could not be searched" in left.what
    assert not done.proved


def test_a_name_in_the_ids_of_tasks_goes_from_all_that_refers_to_them(workspace: Workspace) -> None:
    task = make_task(1, id="alice@example.org/1")
    add_tasks(workspace, [task])
    workspace.store.runs.create(
        RunConfig(),
        [task],
        [0],
        request="r",
        kind="sampled",
        library_version=0,
        model="m",
        note="",
        actor="t",
    )
    done = redact(workspace, "alice@example.org")
    assert done.proved
    [group], _ = workspace.store.groups.page("R1")
    assert group.task_id == f"{done.redactions[0].tombstone}/1"
    assert not unsound(workspace.folder)


def test_texts_that_overlap_leave_no_rest(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1, question="say banananas plus tree, or anana")])
    done = redact(workspace, "anana", "nas plus")
    task = workspace.store.tasks.find("t-001")
    assert task is not None
    first, second = (r.tombstone for r in done.redactions)
    assert (
        task.question == f"say b{second} tree, or {second}"
        or task.question == f"say b{first} tree, or {second}"
    )


def test_a_number_of_the_users_own_goes_and_a_count_of_ours_stays(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1, metadata={"card": 4111222233334444, "n": 7})])
    mark = redact(workspace, "4111222233334444").redactions[0].tombstone
    task = workspace.store.tasks.find("t-001")
    assert task is not None
    assert task.metadata == {"card": mark, "n": 7}


def test_the_vectors_of_texts_that_went_go_with_them(workspace: Workspace) -> None:
    from tests.core.test_store import CountingEmbedder

    plant(workspace, SECRET)
    embedder = CountingEmbedder("one")
    workspace.store.embeddings.embed([f"Log in with {SECRET} first.", "Read the question twice."], embedder)
    assert redact(workspace, SECRET).embeddings_dropped == 1
    embedder.asked.clear()
    workspace.store.embeddings.embed(["Read the question twice."], embedder)
    assert embedder.asked == []


FORMS = {
    "as it is": lambda text: text,
    "in capitals": str.upper,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON in JSON in JSON": lambda text: json.dumps(
        {"a": json.dumps([json.dumps(text, ensure_ascii=False)])}
    ),
    "in an address": lambda text: "".join(f"%{b:02X}" for b in text.encode()),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 after something": lambda text: base64.b64encode(f"ab{text}zz".encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"a{text}".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=8, max_size=12))
@settings(max_examples=20, deadline=None)
def test_a_text_is_found_in_every_form(form: str, text: str) -> None:
    if form == "in capitals":
        text = "".join(c for c in text if len(c.upper()) == 1) + "abcd"
    written = f"before {FORMS[form](text)} after"
    needle = Needle(text)
    assert needle.found(written)
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert needle.count_bytes(b"\x00\x01" + written.encode(encoding)) >= 1
    assert not needle.found(merged([(needle, "\ue000")], written)[0])


def test_the_other_case_can_be_left(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1, question="Rose is a rose.")])
    redact(workspace, "Rose", exact_case=True)
    task = workspace.store.tasks.find("t-001")
    assert task is not None
    assert task.question.endswith("is a rose.")


@example(secret="0000\r0")
@given(secret=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=6, max_size=24))
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@pytest.mark.slow
def test_whatever_the_secret_is_nothing_of_it_is_left_and_everything_else_stays(
    secret: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = f"q{secret.strip()}z9Q"
    plain, planted = (
        Workspace(tmp_path_factory.mktemp("w") / n, clock=ticking()) for n in ("plain", "planted")
    )
    done = []
    for workspace, text in ((plain, "~stand-in~"), (planted, secret)):
        plant(workspace, text)
        done.append(redact(workspace, text))
    assert in_files(planted.folder, secret) == []
    assert done[1].proved, done[1].left
    assert done[0].places == done[1].places

    def rest(workspace: Workspace) -> list[str]:
        lines = workspace.store.dump().splitlines()
        kept = [line for line in lines if not line.startswith(("redactions ", "tasks "))]
        return [
            re.sub(r'Basic [^\\"]*', "Basic", line) for line in kept
        ]  # base64 holds some of what stands beside

    assert rest(plain) == rest(planted), "apart from the secret they are the same"
    assert compare(planted.store) == []


# -- the command ----------------------------------------------------------------------------------


def test_the_command_counts_first_and_does_it_when_told(workspace: Workspace, tmp_path: Path) -> None:
    plant(workspace, SECRET)

    def winnow(*words: str, stdin: str | None = None) -> tuple[int, str]:
        result = CliRunner().invoke(
            main, ["redact", *words, "--workspace", str(workspace.folder)], input=stdin
        )
        return result.exit_code, result.output

    file = tmp_path / "text"
    file.write_text(SECRET + "\n", "utf-8")
    code, said = winnow(str(file))
    assert (code, "Nothing was changed" in said, "tasks.question: 1" in said) == (0, True, True)
    assert SECRET not in said
    code, said = winnow("-", "--yes", "--reason", "leaked", stdin=SECRET)
    assert (code, "nothing is left" in said) == (0, True)
    code, said = winnow("--text", "question twice", "--dry-run")
    assert (code, "history of your shell" in said) == (0, True)
    code, said = winnow("--experience", "E-0002", "--yes", "--json")
    assert code == 0
    assert winnow("--experience", "E-0099")[0] == 2
    assert [e.id for e in workspace.store.versions.library()] == []
    packs = workspace.folder / "packs"
    packs.mkdir()
    (packs / "p.txt").write_text("one word")
    assert winnow("--text", "one word", "--yes")[0] == 1, "done, but it is still in a pack"


def test_the_text_can_be_piped_in_without_any_sign(workspace: Workspace) -> None:
    plant(workspace, SECRET)

    def piped(data: bytes, *words: str) -> tuple[int, str]:
        folder = str(workspace.folder)
        result = CliRunner().invoke(main, ["redact", "--workspace", folder, *words], input=data)
        return result.exit_code, result.output

    assert piped(b"") == (2, "winnow: There is no text to redact: it is empty.\n")
    assert piped(b"\xff\xfe") == (
        2,
        "winnow: What holds the text is not UTF-8; texts are looked for as characters.\n",
    )
    code, said = piped(f"\ufeff{SECRET}\r\n".encode())
    assert (code, "tasks.question: 1" in said) == (0, True)
    code, said = piped(b"Nothing of this is read.", "--text", "question twice")
    assert (code, "Nothing was changed" in said) == (0, True), "where a text is named, no pipe is waited for"
    assert piped(SECRET.encode(), "--yes")[0] == 0
    assert in_files(workspace.folder, SECRET) == []


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="terminals are a POSIX matter")
def test_who_sits_at_a_terminal_is_told_how_rather_than_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = os.openpty()
    with open(terminal, encoding="utf-8") as stdin, monkeypatch.context() as here:
        here.setattr(sys, "stdin", stdin)
        with pytest.raises(InputError, match="a FILE that holds it, a pipe into this command, or --task"):
            _piped()
    os.close(master)


def test_a_file_larger_than_any_text_is_refused_before_it_is_read_whole(workspace: Workspace) -> None:
    done = CliRunner().invoke(main, ["redact", "--workspace", str(workspace.folder), "/dev/zero"])
    assert done.exit_code == 2, done.output
    assert "more than 16,777,216 characters" in done.output


def test_a_rollback_to_what_was_redacted_whole_names_what_is_left_out(workspace: Workspace) -> None:
    publish(workspace, "Log in with zanzibarkey first.")
    redact(workspace, "zanzibarkey")
    with pytest.raises(
        InputError, match=r"reads as version 1 did, without E-0001 \(redacted\); there is nothing"
    ):
        workspace.review.rollback(1, "ann")
