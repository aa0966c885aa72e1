"""Proposals, their decisions, and the quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from core.errors import ApplyError, InputError, NotFoundError
from core.experience import (
    BASE_FIELDS,
    Operation,
    Proposal,
    Quarantined,
    targets_of,
    text_of,
)
from core.record import Record, canonical_json
from core.store.database import Database, Row
from core.store.events import Events
from core.store.lasting import given
from core.words import normalise

DECIDED = {
    "status",
    "edited_text",
    "reason",
    "decided_by",
    "decided_at",
    "revision",
    "published_in",
    "experience_id",
}
"""What decisions change, besides the base that an edit is written against."""

COLUMNS = "id, run_id, body, extractor, " + ", ".join(sorted(DECIDED))

BASE = {"base_version", "base_texts", "base_fields"}

TOLD = (DECIDED - {"decided_by", "decided_at", "revision"}) | BASE
"""What the log tells of a decision, before and after; who, when and the revision stand beside it."""

SET_ASIDE = "quarantine.set_aside"

STALE = (
    "status IN ('proposed', 'deferred', 'approved') AND EXISTS (SELECT 1 FROM json_each(body, '$.base_texts') b"
    " LEFT JOIN experience_states s ON s.experience_id = b.key AND s.to_version IS NULL"
    " LEFT JOIN json_each(body, '$.base_fields') f ON f.key = b.key"
    " WHERE s.status IS NOT 'live' OR s.text IS NOT b.value"
    " OR s.kind IS NOT coalesce(f.value ->> 'kind', s.kind)"
    " OR s.domain IS NOT coalesce(f.value ->> 'domain', s.domain))"
)
"""A proposal that is not decided for good and whose target changed: the same as `core.review.stale`, for many."""


class QuarantinedItem(Record):
    """An operation that could not become a proposal, under a name that a person can call it by."""

    id: str
    """`Q-0003`."""
    item: Quarantined
    at: str
    proposal_id: str | None = None
    """What a person made of it."""


class Open(NamedTuple):
    """A proposal that is undecided or staged, without what is behind it."""

    id: str
    status: str
    op: str
    domain: str
    text: str
    """The reviewer's own, if there is one; empty for a delete."""
    targets: tuple[str, ...]


class Proposals:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(self, proposals: Sequence[Proposal], actor: str) -> list[str]:
        """Write new proposals in order; their ids are given here and returned."""
        ids = []
        with self._database.writing():
            there = int(self._database.value("SELECT coalesce(max(number), 0) FROM proposals"))
            number = max(there, given(self._database, "proposals"))
            for proposal in proposals:
                number += 1
                proposal_id = f"P-{number:04d}"
                made = proposal.model_copy(
                    update={"id": proposal_id, "base_fields": self._base_fields(proposal)}
                )
                self._database.insert("proposals", proposal_row(made))
                state = {"made": made.model_dump(mode="json")}
                self._events.append(
                    actor,
                    "proposal.made",
                    proposal_id,
                    state,
                    run=proposal.run_id,
                    op=proposal.operation.op,
                )
                ids.append(proposal_id)
        return ids

    def _base_fields(self, proposal: Proposal) -> dict[str, dict[str, str]]:
        """Kind and domain of what a proposal changes, in the version that it is based on."""
        if not (targets := targets_of(proposal.operation)):
            return {}
        rows = self._database.rows(
            "SELECT experience_id, kind, domain FROM experience_states"
            " WHERE experience_id IN (SELECT value FROM json_each(?1)) AND from_version <= ?2"
            " AND (to_version IS NULL OR to_version > ?2) ORDER BY experience_id",
            *(json.dumps(targets), proposal.base_version),
        )
        return {row["experience_id"]: {name: row[name] for name in BASE_FIELDS} for row in rows}

    def quarantine(self, items: Sequence[Quarantined], actor: str = "winnow") -> list[str]:
        """Keep what could not become a proposal; gives the names that it can be called by.

        Args:
            items: each with its reason and the raw reply.
            actor: who set it aside.
        """
        ids = []
        with self._database.writing():
            number = self._last_set_aside()
            for item in items:
                number += 1
                item_id, at = f"Q-{number:04d}", self._events.clock()
                self._database.insert(
                    "quarantine", quarantine_row(QuarantinedItem(id=item_id, item=item, at=at))
                )
                state = {"set_aside": item.model_dump(mode="json")}
                data: dict[str, JsonValue] = {"run": item.run_id, "reason": item.reason}
                self._events.append(actor, SET_ASIDE, item_id, state, at, **data)
                ids.append(item_id)
        return ids

    def _last_set_aside(self) -> int:
        """The highest number that was ever given: a run that is discarded takes its rows away, not their names."""
        there = int(self._database.value("SELECT coalesce(max(id), 0) FROM quarantine"))
        told = self._database.value(
            "SELECT subject FROM events WHERE kind = ? ORDER BY id DESC LIMIT 1", SET_ASIDE
        )
        return max(there, number_of(told or ""), given(self._database, "quarantine"))

    def quarantine_page(
        self, *, run_id: str | None = None, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuarantinedItem], int]:
        """One page of what could not become a proposal, the newest first, and how many there are in all."""
        total = self._database.value(
            "SELECT count(*) FROM quarantine WHERE ?1 IS NULL OR run_id = ?1", run_id
        )
        rows = self._database.rows(
            f"SELECT {QUARANTINE} FROM quarantine WHERE ?1 IS NULL OR run_id = ?1 ORDER BY id DESC LIMIT ?2 OFFSET ?3",
            run_id,
            limit,
            offset,
        )
        return [_item(row) for row in rows], int(total)

    def quarantined_item(self, item_id: str) -> QuarantinedItem:
        """One of them.

        Raises:
            NotFoundError: there is no such item.
        """
        number = number_of(item_id)
        row = self._database.row(f"SELECT {QUARANTINE} FROM quarantine WHERE id = ?", number)
        if row is None or item_id != f"Q-{number:04d}":
            raise NotFoundError(
                f"Nothing in the quarantine is called {item_id!r}; `winnow review quarantine` shows what is there."
            )
        return _item(row)

    def adopt(self, item_id: str, proposal: Proposal, actor: str) -> str:
        """Make a proposal in the place of something in the quarantine; gives its id.

        Raises:
            InputError: that was done already.
        """
        with self._database.writing():
            if done := self.quarantined_item(item_id).proposal_id:
                raise InputError(f"{item_id} became {done} already; see `winnow review show {done}`.")
            [proposal_id] = self.add([proposal], actor)
            self._database.execute(
                "UPDATE quarantine SET proposal_id = ? WHERE id = ?", proposal_id, number_of(item_id)
            )
            self._events.append(
                actor, "quarantine.adopted", item_id, {"adopted": proposal_id}, proposal=proposal_id
            )
        return proposal_id

    def get(self, proposal_id: str) -> Proposal:
        """One proposal.

        Raises:
            NotFoundError: there is no such proposal.
        """
        row = self._database.row(f"SELECT {COLUMNS} FROM proposals WHERE id = ?", proposal_id)
        if row is None:
            raise NotFoundError(
                f"There is no proposal {proposal_id!r} in this workspace; `winnow review list` shows them."
            )
        return _proposal(row)

    def page(
        self,
        statuses: Sequence[str] = (),
        *,
        domain: str = "",
        run_id: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Proposal], int]:
        """One page, the strongest evidence first, and how many there are in all; empty filters take all.

        "stale" takes what is proposed, deferred or approved and whose target changed since it was made.
        """
        stale = f" OR ({STALE})" if "stale" in statuses else ""
        where = (
            f" FROM proposals WHERE (?1 = '[]' OR status IN (SELECT value FROM json_each(?1)){stale})"
            " AND (?2 = '' OR domain = ?2) AND (?3 IS NULL OR run_id = ?3)"
        )
        filters = (json.dumps(list(statuses)), domain, run_id)
        total = self._database.value("SELECT count(*)" + where, *filters)
        rows = self._database.rows(
            f"SELECT {COLUMNS}{where} ORDER BY strength DESC, number LIMIT ?4 OFFSET ?5",
            *filters,
            limit,
            offset,
        )
        return [_proposal(row) for row in rows], int(total)

    def about(self, experience_id: str, statuses: Sequence[str]) -> list[Proposal]:
        """Those of some statuses that would change a lesson, the strongest evidence first."""
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM proposals WHERE status IN (SELECT value FROM json_each(?2)) AND instr(body, ?1)"
            " AND (body ->> '$.operation.experience_id' = ?1 OR EXISTS (SELECT 1 FROM"
            " json_each(body, '$.operation.experience_ids') e WHERE e.value = ?1)) ORDER BY strength DESC, number",
            *(experience_id, json.dumps(list(statuses))),
        )
        return [_proposal(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Number of proposals by status."""
        rows = self._database.rows(
            "SELECT status, count(*) AS n FROM proposals GROUP BY status ORDER BY status"
        )
        return {row["status"]: row["n"] for row in rows}

    def rewarded_since(self, proposal_ids: Sequence[str]) -> dict[str, int]:
        """How many groups behind each of some proposals have other rewards since it was drawn; only where some do.

        Lines of the log are compared, not times, which are of whole seconds.
        """
        rows = self._database.rows(
            "SELECT p.id, count(*) AS n FROM proposals p JOIN json_each(p.body, '$.evidence.group_ids') e"
            " JOIN groups g ON g.id = e.value WHERE p.id IN (SELECT value FROM json_each(?)) AND g.rewarded >="
            " (SELECT min(id) FROM events WHERE subject = p.id) GROUP BY p.id",
            json.dumps(list(proposal_ids)),
        )
        return {row["id"]: row["n"] for row in rows}

    def open(self) -> list[Open]:
        """Every proposal that is undecided or staged, in the order in which they were made."""
        rows = self._database.rows(
            "SELECT id, status, op, domain, coalesce(edited_text, json_extract(body, '$.operation.text'), '') AS text,"
            " coalesce(json_extract(body, '$.operation.experience_ids'),"
            " json_array(json_extract(body, '$.operation.experience_id'))) AS targets FROM proposals"
            " WHERE status IN ('proposed', 'deferred', 'approved') ORDER BY number"
        )
        return [Open(**{**row, "targets": tuple(filter(None, json.loads(row["targets"])))}) for row in rows]

    def same(self, operation: Operation) -> Proposal | None:
        """The first open proposal that does what an operation does, to the same lessons and in the same words."""
        wanted = _what(operation)
        told = (operation.op, targets_of(operation), normalise(text_of(operation) or ""))
        for known in self.open():  # cheaper than whole proposals, of which there may be thousands
            if (known.op, known.targets, normalise(known.text)) == told:
                found = self.get(known.id)
                if _what(found.effective) == wanted:
                    return found
        return None

    def every(self) -> list[Proposal]:
        """All proposals in the order in which they were made."""
        return [
            _proposal(row) for row in self._database.rows(f"SELECT {COLUMNS} FROM proposals ORDER BY number")
        ]

    def decide(
        self, proposal: Proposal, revision: int, actor: str, event: str, **data: JsonValue
    ) -> Proposal:
        """Write a decision, if nobody decided since the reviewer looked.

        Args:
            proposal: with its new status, text, reason, and who decided when: the actor, or as it was.
            revision: the revision that the decision was made on.
            actor: who decided.
            event: kind of the line in the log.
            data: what the log is to remember besides.

        Raises:
            ApplyError: it was decided on meanwhile; the message says by whom and how.
        """
        decided = proposal.model_copy(update={"revision": revision + 1})
        values = {name: getattr(decided, name) for name in sorted(DECIDED)} | {"body": _body(decided)}
        with self._database.writing():
            before = self.get(proposal.id)
            if before.revision != revision:
                raise decided_meanwhile(before, revision)
            self._database.execute(
                f"UPDATE proposals SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?",
                *(*values.values(), proposal.id),
            )
            now, was = decided.model_dump(include=TOLD), before.model_dump(include=TOLD)
            changed = [name for name in sorted(TOLD) if now[name] != was[name]]
            by_actor = (decided.decided_by, decided.decided_at) != (before.decided_by, before.decided_at)
            state = {
                "was": {n: was[n] for n in changed},
                "now": {n: now[n] for n in changed},
                "decided": by_actor,
            }
            self._events.append(
                actor,
                event,
                proposal.id,
                state,
                decided.decided_at if by_actor else None,
                revision=revision + 1,
                **data,
            )
        return decided


def decided_meanwhile(now: Proposal, seen: int) -> ApplyError:
    """That a proposal is another one than that of the revision that was looked at."""
    if seen > now.revision:
        return ApplyError(
            f"{now.id} has no revision {seen}: it is at revision {now.revision}. Look at it again, then decide."
        )
    who = now.decided_by or "somebody"
    return ApplyError(
        f"{now.id} was changed meanwhile: {who} made it {now.status}. Look at it again, then decide."
    )


def _what(operation: Operation) -> tuple[object, ...]:
    """What makes two operations one; of lessons that say the same in one domain only one can be published."""
    more = (getattr(operation, "kind", None), getattr(operation, "domain", None))
    kept = more[1:] if operation.op == "add" else more
    return operation.op, targets_of(operation), normalise(text_of(operation) or ""), kept


def number_of(name: str) -> int:
    """The number in an id such as `P-0007`; 0 where there is none."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0


def strength(proposal: Proposal) -> float:
    """What the queue is ordered by: 1 - the smallest corrected p of its findings; 0 without findings."""
    return 1 - min((f.p_corrected for f in proposal.evidence.findings), default=1.0)


def proposal_row(proposal: Proposal) -> Row:
    """The row of a proposal; its number is the one in its id."""
    return {
        "id": proposal.id,
        "number": number_of(proposal.id),
        "run_id": proposal.run_id,
        "op": proposal.operation.op,
        "domain": getattr(proposal.operation, "domain", None) or "",
        "extractor": proposal.extractor,
        "strength": strength(proposal),
        "body": _body(proposal),
        **{name: getattr(proposal, name) for name in sorted(DECIDED)},
    }


def _body(proposal: Proposal) -> str:
    return canonical_json(proposal.model_dump(mode="json", exclude={"id", "run_id", "extractor", *DECIDED}))


def _proposal(row: Row) -> Proposal:
    body = json.loads(row.pop("body"))
    return Proposal(**body, **row)


def quarantine_row(held: QuarantinedItem) -> Row:
    """The row of something in the quarantine."""
    return {
        "id": number_of(held.id),
        "run_id": held.item.run_id,
        "reason": held.item.reason,
        "raw": held.item.raw,
        "group_ids": canonical_json(list(held.item.group_ids)),
        "at": held.at,
        "proposal_id": held.proposal_id,
    }


QUARANTINE = "id, reason, raw, run_id, group_ids, at, proposal_id"


def _item(row: Row) -> QuarantinedItem:
    number, at, proposal_id = row.pop("id"), row.pop("at"), row.pop("proposal_id")
    return QuarantinedItem(id=f"Q-{number:04d}", item=_quarantined(row), at=at, proposal_id=proposal_id)


def _quarantined(row: Row) -> Quarantined:
    return Quarantined(**{**row, "group_ids": json.loads(row["group_ids"])})
