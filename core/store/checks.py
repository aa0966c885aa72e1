"""Everything that can be found wrong with a workspace's database, and what of it can be mended without asking."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from core.job import ENDED
from core.store.claims import later
from core.store.integrity import (
    Finding,
    Mend,
    applied,
    hanging,
    known_migrations,
    pages,
    rebuild_words,
    references,
    schema_differences,
    unparsed,
    unreadable,
    words_out_of_step,
)
from core.store.readers import readers
from core.store.redaction import wipe
from core.store.replay import compare
from core.store.store import Store

RESTORE = "Restore a backup: winnow restore FILE."
AHEAD_MINUTES = 5.0
"""Events this far in the future mean that a clock is, or was, wrong."""
FREE_SHARE, FREE_PAGES = 4, 1000
"""A file is worth writing anew when a quarter of it, and this many pages, are empty."""


def check_file(path: Path) -> tuple[list[Finding], bool]:
    """Look at a database before anything else opens it.

    Returns:
        What was found, and whether it can be opened.
    """
    try:
        with closing(sqlite3.connect(path)) as db:
            if torn := pages(db):
                return [
                    Finding(what=f"damaged pages: {line}", where=path.name, how=RESTORE) for line in torn
                ], False
            if not (names := applied(db)):
                return [Finding(what="no database of Winnow", where=path.name, how=RESTORE)], False
            if newer := sorted(set(names) - set(known_migrations())):
                what = f"written by a newer Winnow (it has {newer[-1]})"
                return [Finding(what=what, where=path.name, how="Upgrade Winnow.")], False
            return [Finding(what=line, where=path.name, how=RESTORE) for line in references(db)], True
    except sqlite3.DatabaseError as e:
        return [Finding(what=f"it cannot be read ({e})", where=path.name, how=RESTORE)], False


def check_content(store: Store, path: Path) -> Iterator[Finding]:
    """Look at every row of a database that can be opened."""
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        yield from (Finding(what=line, where="schema", how=RESTORE) for line in schema_differences(db))
        yield from unreadable(db)
        yield from hanging(db)
        db.execute("BEGIN IMMEDIATE")
        out_of_step = words_out_of_step(db)
        db.rollback()
        yield from out_of_step
        yield from _empty_pages(db)
        for table, column, read in readers(store):
            ids = (str(row[0]) for row in db.execute(f"SELECT DISTINCT {column} FROM {table}"))
            yield from unparsed(table, ids, read)
    yield from _log_against_tables(store)
    yield from _leases(store)
    yield from _times(store)
    yield from _redactions(store)


def mend(store: Store, path: Path, what: Collection[Mend]) -> None:
    """Do what changes nothing that is told: search indexes, leases of the dead, empty pages, the journal."""
    if "leases" in what:
        with store.writing():
            for job in _void(store):
                free = store.jobs.get(job).model_copy(update={"worker": "", "lease_until": None})
                store.jobs.save(free)
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        if "fts" in what:
            rebuild_words(db)
        if {"vacuum", "checkpoint"} & set(what):
            wipe(db)


def _log_against_tables(store: Store) -> Iterator[Finding]:
    try:
        lines = compare(store)
    except Exception as e:  # noqa: BLE001  # a log that cannot be read is a finding, too
        lines = [f"The log cannot be replayed ({type(e).__name__})."]
    for line in lines:
        yield Finding(what=line, where="events", how=RESTORE)


def _void(store: Store) -> list[str]:
    """Jobs whose worker did not renew its lease."""
    now = store.jobs.clock()
    due = [job for job in store.jobs.due() if job.state not in ENDED and job.worker]
    return [job.id for job in due if (job.lease_until or "") < now]


def _leases(store: Store) -> Iterator[Finding]:
    for job_id in _void(store):
        yield Finding(
            what="a lease of a worker that is no longer heard of",
            where=job_id,
            how="The next worker takes the job up (winnow worker); --fix releases it now.",
            mend="leases",
        )


def _times(store: Store) -> Iterator[Finding]:
    latest = later(store.events.clock(), AHEAD_MINUTES)
    for event in store.events.newest(1):
        if event.at > latest:
            how = f"Set the clock of this machine, or wait: here it is {store.events.clock()}."
            yield Finding(what=f"an event of the future ({event.at})", where=f"event {event.id}", how=how)


def _redactions(store: Store) -> Iterator[Finding]:
    for redaction in store.redactions.all():
        if redaction.proved_at is None:
            yield Finding(
                what="a redaction after which the files were not found clean",
                where=f"redaction {redaction.id}",
                how="Redact the same text again (winnow redact - --yes): that finishes it, or says where it still is;"
                " --remove-copies takes backups away that hold it.",
            )


def _empty_pages(db: sqlite3.Connection) -> Iterator[Finding]:
    [free], [all_pages] = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count")
    )
    if free > FREE_PAGES and free * FREE_SHARE > all_pages:
        yield Finding(
            what=f"{free:,} of {all_pages:,} pages are empty",
            where="winnow.db",
            how="--fix writes the file anew, smaller.",
            mend="vacuum",
        )
