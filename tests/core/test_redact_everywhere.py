"""Redaction of every column of every table that there is, as the schema itself lists them, and of every file.

Two secrets are planted: one with every character that is written in several ways, and a plain word, which a search
index would hold as it is. What is found afterwards is looked for without the code under test: in the raw bytes of every
file of the workspace, and in whatever can be unpacked from any place of them.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from core.experience import Add, Quarantined
from core.llm.ledger import Entry
from core.packs.foreign import Aside
from core.prior import Factor, Prior, PriorToken, TokenizerName
from core.proof import Arm, ArmLesson, Effect, EvaluationConfig, Measured
from core.rollout import Batch, Extraction, Score, SetAside, Step, Usage
from core.settings import Endpoint, RunConfig, VerifierSpec
from core.store.copying import copy_database
from core.store.groups import ANSWER_SHOWN
from core.store.imports import Import, ImportedLesson
from core.store.needle import Needle
from core.store.recorded import RecordedAttempt
from core.workspace import Workspace
from core.workspace.care import Care
from core.workspace.checkup import Checkup
from core.workspace.erasing import Erasing
from tests.core.test_redact import SECRET, plant
from tests.core.test_store import CountingEmbedder
from tests.core.test_usage import line, mark
from tests.make import add_tasks, make_group, make_proposal, make_task, publish, ticking

WORD = "zanzibarkey"
BOTH = f"{SECRET} {WORD}"

OURS = {
    "an id": """
        runs.id groups.id groups.run_id rollouts.id rollouts.group_id trajectories.rollout_id proposals.id
        proposals.run_id proposals.experience_id quarantine.run_id quarantine.group_ids quarantine.proposal_id
        experiences.id experience_states.experience_id experience_states.merged_into experience_states.proposal_id
        batches.run_id jobs.id jobs.subject claims.proposal_id credits.experience_id credits.source
        priors.id citations.rollout_id import_lessons.became tool_use.rollout_id tool_use.run_id spend.run_id
        citations.used evaluations.id measured.subject measured.evaluation_id
        recorded_attempts.rollout_id recorded_groups.group_id
    """,
    "a hash": """
        tasks.text_key calls.key embeddings.text_key imports.key imports.sha256 import_lessons.import_key
        import_aside.key usage_entries.key redactions.salt redactions.hash runs.request
        priors.content evaluations.request
        recorded_attempts.file recorded_attempts.identity recorded_attempts.group_key
        recorded_tasks.key recorded_groups.key set_aside.file
    """,
    "a time": """
        tasks.imported_at set_aside.at runs.created_at runs.finished_at calls.at proposals.decided_at quarantine.at
        versions.created_at events.at jobs.lease_until jobs.created_at jobs.finished_at spend.at claims.taken_at
        claims.until labels.moved_at credits.at imports.imported_at usage_entries.imported_at redactions.at
        redactions.proved_at priors.created_at
        evaluations.created_at evaluations.finished_at measured.at
    """,
    "one of a few words": """
        tasks.split set_aside.kind roles.role runs.kind runs.status groups.status proposals.status
        proposals.op proposals.extractor experience_states.kind experience_states.status events.kind jobs.kind
        jobs.state spend.stage imports.form groups.reason evaluations.purpose evaluations.status measured.kind
    """,
    "numbers": "rollouts.usage rollouts.components redactions.places embeddings.vector",
    "a name of letters, digits, dots, dashes": "endpoints.name roles.endpoint spend.endpoint labels.name",
}
"""Columns that hold nothing of a user's own words, and why; every other one must be planted."""


def columns(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Each column of text or bytes of each table that is no inside of a search index."""
    tables = db.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
    ).fetchall()
    names = sorted(name for (name,) in tables if not name.startswith(("sqlite_", "_sqlite")))
    found = [(name, row[1], row[2]) for name in names for row in db.execute(f"PRAGMA table_xinfo('{name}')")]
    return [(table, column) for table, column, kind in found if kind.upper() not in ("INTEGER", "REAL")]


def indexes(db: sqlite3.Connection) -> list[str]:
    rows = db.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'virtual' AND schema = 'main'"
    ).fetchall()
    return [name for (name,) in rows]


def forms() -> list[bytes]:
    texts = [SECRET, WORD]
    texts += [json.dumps(text)[1:-1] for text in texts] + [
        json.dumps(json.dumps(text))[2:-2] for text in texts
    ]
    return [text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le")]


def pieces(data: bytes) -> Iterator[bytes]:
    """Some bytes, and what can be unpacked from any place of them."""
    yield data
    begin = data.find(b"\x78")
    while begin >= 0:
        if data[begin + 1 : begin + 2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
            yield unpacked(data[begin:])
        begin = data.find(b"\x78", begin + 1)


def unpacked(data: bytes) -> bytes:
    """As much as can be."""
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data, 1 << 20)
    return b""


def holding(folder: Path) -> list[str]:
    """Files whose bytes hold one of the secrets, whatever they are packed in; and search indexes that know the word."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        contents = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                contents += [archive.read(name) for name in archive.namelist()]
        if path.suffix == ".db":
            contents += list(_values(path))
        if any(form in piece.lower() for content in contents for piece in pieces(content) for form in LOW):
            found.append(path.name)
    with closing(sqlite3.connect(folder / "winnow.db")) as db:
        for index in indexes(db):
            db.execute(f"CREATE VIRTUAL TABLE temp.v_{index} USING fts5vocab(main, {index}, 'row')")
            if db.execute(f"SELECT 1 FROM v_{index} WHERE term = ?", (WORD,)).fetchone():
                found.append(index)
    return found


LOW = [form.lower() for form in forms()]


def _values(path: Path) -> Iterator[bytes]:
    """Values as they are: in the pages, long ones lie in parts."""
    with closing(sqlite3.connect(path)) as db:
        for table, column in columns(db):
            for (value,) in db.execute(f'SELECT "{column}" FROM "{table}"'):
                yield value.encode() if isinstance(value, str) else value or b""


def held(db: sqlite3.Connection) -> set[str]:
    """Columns that hold one of the secrets."""
    found = set()
    for table, column in columns(db):
        for (value,) in db.execute(f'SELECT "{column}" FROM "{table}"'):
            data = value.encode() if isinstance(value, str) else value or b""
            if any(form in piece.lower() for piece in pieces(data) for form in LOW):
                found.add(f"{table}.{column}")
    return found


# -- whatever a value is ----------------------------------------------------------------------------


def stuff(db: sqlite3.Connection) -> None:
    """Put both secrets into each value of each column, whatever that is; a row into each table that has none."""
    db.execute("PRAGMA foreign_keys = OFF")
    guards = db.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%RAISE%'"
    ).fetchall()
    for name, _ in guards:
        db.execute(f"DROP TRIGGER {name}")
    every = columns(db)
    for table in dict.fromkeys(table for table, _ in every):
        if db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,):
            infos = db.execute(f"PRAGMA table_xinfo('{table}')").fetchall()
            values = [{"INTEGER": 1, "REAL": 0.5, "BLOB": zlib.compress(b"x")}.get(i[2], "x") for i in infos]
            db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    for table, column in every:
        for rowid, value in db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (_with(value), rowid))
    for index in indexes(db):
        names = [row[1] for row in db.execute(f"PRAGMA table_info('{index}')")]
        marks = ", ".join("?" * len(names))
        db.execute(
            f"INSERT INTO {index} (rowid, {', '.join(names)}) VALUES (999, {marks})", [BOTH] * len(names)
        )
    for _, sql in guards:
        db.execute(sql)
    db.commit()


def _with(value: str | bytes | None) -> str | bytes:
    if isinstance(value, bytes):
        try:
            return zlib.compress(str(_with(zlib.decompress(value).decode())).encode())
        except zlib.error:
            return value + BOTH.encode()
    if value and value[0] in "{[":
        parsed = json.loads(value)
        return json.dumps([*parsed, BOTH] if isinstance(parsed, list) else {**parsed, "more": {BOTH: BOTH}})
    return f"{value} {BOTH}" if value else BOTH


def test_no_column_of_any_table_keeps_it(workspace: Workspace) -> None:
    plant(workspace, "nothing special")
    workspace.store.embeddings.embed(["Read the question twice."], CountingEmbedder("one"))
    database = workspace.store.tasks._database
    database.close()
    with closing(sqlite3.connect(workspace.folder / "winnow.db")) as db:
        stuff(db)
        assert held(db) == {f"{table}.{column}" for table, column in columns(db)}, "it is everywhere"
    assert "experience_words" in holding(workspace.folder)
    redactions = workspace.store.redactions
    redactions.forget_pages()
    database.handle.conn.execute("PRAGMA foreign_keys = OFF")  # the ids are no ids any more
    with workspace.store.writing():
        redactions.replace([(Needle(text), "[gone]") for text in (SECRET, WORD)])
    assert redactions.wipe()
    assert holding(workspace.folder) == []


# -- wherever it can rightly be ---------------------------------------------------------------------


def plant_everywhere(workspace: Workspace, secret: str) -> None:
    """Put a text wherever a user, a model or a file can put one."""
    plant(workspace, secret)
    Erasing(workspace).redact(["this was redacted before"], secret, kind=secret, reason=secret)
    _plant_a_run(workspace, secret)
    _plant_what_was_brought(workspace, secret)
    _plant_decisions(workspace, secret)
    _plant_an_evaluation(workspace, secret)
    _plant_where_a_rollout_came_from(workspace, secret)
    store = workspace.store
    endpoint = Endpoint(
        name="stub", base_url=f"http://127.0.0.1:1/{WORD}", model=secret, extra={"note": secret}
    )
    store.endpoints.save(endpoint, secret)
    store.endpoints.set_role("extraction", "stub", secret)
    store.labels.set("stable", 1, secret)
    store.priors.add(_prior(secret), secret)
    store.embeddings.embed(
        [f"Log in with {secret} first.", "Read the question twice."], CountingEmbedder(secret)
    )


def _plant_where_a_rollout_came_from(workspace: Workspace, secret: str) -> None:
    recorded = workspace.store.recorded
    with workspace.store.writing():
        recorded.keep_task("d" * 64, secret)
        recorded.keep(
            RecordedAttempt(
                identity="e" * 64,
                rollout_id="R1-0001-0",
                group_key="f" * 64,
                scope=secret,
                repeat=None,
                own_id=secret,
                scores={secret: 1.0},
                metadata={"note": secret},
                source=secret,
                file="a" * 64,
                place=secret,
            )
        )


def _prior(secret: str) -> Prior:
    said = {
        "sign": 1,
        "log_odds": 1.0,
        "z": 3.0,
        "winners_with": 5,
        "winners": 8,
        "losers_with": 0,
        "losers": 8,
    }
    factor = Factor(
        domain=secret,
        source=secret,
        tokens=(PriorToken(id=7, piece=secret, groups=4, **said),),
        alpha=1.0,
        wins=4,
        contrasts=4,
        groups=4,
        replies=16,
        masked=0,
    )
    return Prior(tokenizer=TokenizerName(name=secret, sha256="0" * 64), model=secret, factors=(factor,))


def _plant_a_run(workspace: Workspace, secret: str) -> None:
    store = workspace.store
    check = VerifierSpec(kind="regex", options={"pattern": secret})
    task = make_task(3, id=f"t {secret}", answer=secret, domain=secret, verifier=check)
    store.tasks.add([task], [1], f"{secret}.jsonl", secret)
    store.tasks.set_aside([SetAside(kind="task", source=secret, line=1, reason=f"for {secret}", raw=secret)])
    run_id = store.runs.create(
        RunConfig(group_size=2, domains=(secret,), stop=(secret,)), [task], [0], request="r2", kind="recorded",
        library_version=0, model=secret, note=secret, actor=secret,
    )  # fmt: skip
    step = Step(tool=f"use {secret}", parameters={}, output="", success=False, error=f"{secret} is no key")
    group = make_group(1.0, 0.0, id=f"{run_id}-0001", task_id=task.id, steps=[[step], []])
    told = {
        "scores": {secret: Score(value=0.5, reason=f"it says {secret}")},
        "error": f"it broke off at {secret}",
        "injected": {"G0": "E-0001", secret: "E-0001"},
        "model": f"model of {secret}",
        "trajectory": group.rollouts[0].trajectory.model_copy(update={"finish_reason": secret}),
    }
    first, other = (r.model_copy(update={"task_id": task.id}) for r in group.rollouts)
    first = first.model_copy(update=told)
    more = {"left_out": {secret: f"left out for {secret}"}, "not_injected": {"E-0001": secret}}
    store.groups.save(group.model_copy(update={"rollouts": (first, other), **more}))
    store.groups.save_critiques({first.id: (f"S {secret}", json.dumps({"raw": secret}))}, {}, {})
    store.credits.cite({first.id: ["E-0001"]})
    drawn = Extraction(notes=(secret,))
    store.runs.save_extraction(run_id, drawn)
    store.runs.save_batch(run_id, Batch(epoch=0, batch=0, extraction=drawn))
    store.spending.book([Entry(run_id=run_id, endpoint="stub", stage="rollouts", usage=Usage(calls=1))])
    job = store.jobs.get("J1")
    with store.writing():
        update = {
            "state": "failed",
            "worker": secret,
            "what": secret,
            "error": f"at {secret}",
            "actor": secret,
        }
        store.jobs.save(job.model_copy(update=update))


def _plant_what_was_brought(workspace: Workspace, secret: str) -> None:
    lessons = json.dumps({secret: f"Never say {secret} aloud.", "2": 3}).encode()
    workspace.shipping.arriving.library(lessons, f"{secret}.json", secret, domain=secret)
    made = Import(key="i", form="json", source=secret, sha256="0" * 64, name=secret, version=1, actor=secret)
    lesson = ImportedLesson(place=secret, their_id=secret, became="P-0001", claimed={"learned_on": secret})
    workspace.store.imports.add(made, [lesson], [Aside(place=secret, reason=secret, raw=secret)])
    publish(workspace, "Answer with the number alone.")
    [own] = [e for e in workspace.store.versions.library() if e.text == "Answer with the number alone."]
    log = (
        line(1, injected={own.id: mark(own.text)}, followed=[own.id], task=secret, model=secret)
        + f"\n{secret}\n"
    )
    workspace.shipping.arriving.usage(log.encode(), f"{secret}.jsonl", secret)


def _plant_an_evaluation(workspace: Workspace, secret: str) -> None:
    kept = workspace.store.evaluations
    arm = Arm(name=secret, kind="text", lessons=(ArmLesson(text=f"Say {secret}.", domain=secret),))
    config = EvaluationConfig(arms=(arm,), domains=(secret,), stop=(secret,))
    made = kept.create("compare", config, request="r", model=secret, actor=secret)
    kept.set_runs(made, {secret: ["R1"]})
    kept.set_stopped(made, {secret: 4}, secret)
    kept.set_status(made, "waiting", secret, f"because of {secret}")
    kept.measure(
        [
            Measured(
                kind="lesson", subject="E-0001", evaluation_id=made, version=1, split="trial", model=secret,
                effect=Effect(tasks=4, mean=0.1), samples=4,
            )
        ],
        secret,
    )  # fmt: skip


def _plant_decisions(workspace: Workspace, secret: str) -> None:
    store, review = workspace.store, workspace.review
    store.proposals.quarantine([Quarantined(reason=f"for {secret}", raw=secret)])
    made = make_proposal(Add(text="Three.", domain=secret)).model_copy(update={"learned_on": secret})
    one, two, three = store.proposals.add([make_proposal("One."), make_proposal("Two."), made], secret)
    review.edit(one, f"Say {secret}.", secret)
    review.claim(one, secret)
    review.reject(two, f"because of {secret}", secret)
    review.approve(three, secret)
    review.publish(f"as {secret} said", secret)


@pytest.fixture
def planted(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    plant_everywhere(workspace, BOTH)
    return workspace


def test_every_column_that_can_hold_it_does_in_this_test(planted: Workspace) -> None:
    with closing(sqlite3.connect(planted.folder / "winnow.db")) as db:
        missing = {f"{t}.{c}" for t, c in columns(db)} - held(db)
    missing -= {name for names in OURS.values() for name in names.split()}
    assert sorted(missing) == [], "plant it there, or say in OURS why nobody can"


def test_it_goes_from_every_file_and_the_doctor_finds_nothing(planted: Workspace) -> None:
    assert Checkup(Care(planted.folder)).check() == []
    folder = planted.folder
    Care(folder, ticking()).backup(None, "ann")
    copy_database(folder / "winnow.db", folder / "winnow.before-m099_x.db")
    for name in ("logs/deep/worker.log", "logs/worker.log.1"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(f"x\n{BOTH}\n")
    assert {"winnow.db", "winnow.db-wal", "worker.log"} <= set(holding(folder))
    done = Erasing(planted).redact([SECRET, WORD], "ann", reason="it leaked", copies=True)
    assert done.proved, done.left
    assert len(done.removed) == 2
    assert holding(folder) == []
    assert Checkup(Care(folder)).check() == []


@pytest.mark.parametrize("shown", [1, len(SECRET) // 2, len(SECRET) - 1])
def test_no_beginning_of_it_stays_where_an_answer_was_cut_off_in_the_middle(
    workspace: Workspace, shown: int
) -> None:
    add_tasks(workspace, [make_task(1)])
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [make_task(1)], [0], request="r", kind="recorded", library_version=0, model="m",
        note="", actor="test",
    )  # fmt: skip
    before = "-" * (ANSWER_SHOWN - shown)
    workspace.store.groups.save(
        make_group(1.0, 0.0, id=f"{run_id}-0001", answers=[f"{before}{SECRET}.", "2"])
    )
    mark = Erasing(workspace).redact([SECRET], "ann").redactions[0].tombstone
    [row] = workspace.store.tasks._database.rows("SELECT answer FROM rollouts WHERE replicate = 0")
    assert row["answer"] == f"{before}{mark}."[:ANSWER_SHOWN]


def test_what_packed_bytes_hold_by_chance_does_not_stand_in_the_way_of_the_proof(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, [make_task(1)])
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [make_task(1)], [0], request="r", kind="recorded", library_version=0, model="m",
        note="", actor="test",
    )  # fmt: skip
    answer = random.Random(1).randbytes(3000).hex()
    workspace.store.groups.save(make_group(1.0, 0.0, id=f"{run_id}-0001", answers=[answer, "2"]))
    sql = "SELECT body FROM trajectories ORDER BY length(body) DESC"
    body = workspace.store.tasks._database.value(sql)
    [chance, *_] = (m.group().decode() for m in re.finditer(rb"[g-zG-Z]{4}", body[:3000]))
    done = Erasing(workspace).redact([chance], "ann")
    assert (done.proved, done.places) == (True, {})
    assert workspace.store.groups.rollout(f"{run_id}-0001-0").trajectory.answer == answer
    assert workspace.store.tasks._database.value(sql) != body


def test_a_vector_whose_numbers_look_like_the_text_is_computed_again(workspace: Workspace) -> None:
    embedder = CountingEmbedder("one")
    workspace.store.embeddings.embed(["Read it.", "Read it twice."], embedder)
    database = workspace.store.tasks._database
    with database.writing():
        vector = b"\x00" + WORD.encode()
        database.execute("UPDATE embeddings SET vector = ? WHERE rowid = 1", vector)
    done = Erasing(workspace).redact([WORD], "ann")
    assert (done.proved, done.places, done.embeddings_dropped) == (True, {"embeddings.vector": 1}, 2)
    assert holding(workspace.folder) == []
