"""Proposals, their decisions, and the quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from core.errors import ApplyError, NotFoundError
from core.experience import Proposal, Quarantined
from core.record import canonical_json
from core.store.database import Database, Row
from core.store.events import Events

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


class Proposals:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(self, proposals: Sequence[Proposal], actor: str) -> list[str]:
        """Write new proposals in order; their ids are given here and returned."""
        ids = []
        with self._database.writing():
            number = int(self._database.value("SELECT coalesce(max(number), 0) FROM proposals"))
            for proposal in proposals:
                number += 1
                proposal_id = f"P-{number:04d}"
                self._database.insert("proposals", _row(proposal, proposal_id, number))
                self._events.append(
                    actor, "proposal.made", proposal_id, run=proposal.run_id, op=proposal.operation.op
                )
                ids.append(proposal_id)
        return ids

    def quarantine(self, items: Sequence[Quarantined]) -> None:
        with self._database.writing():
            for item in items:
                row = {
                    "run_id": item.run_id,
                    "reason": item.reason,
                    "raw": item.raw,
                    "group_ids": canonical_json(list(item.group_ids)),
                    "at": self._events.clock(),
                }
                self._database.insert("quarantine", row)

    def quarantined(self, limit: int = 200) -> list[Quarantined]:
        rows = self._database.rows(
            "SELECT reason, raw, run_id, group_ids FROM quarantine ORDER BY id DESC LIMIT ?", limit
        )
        return [Quarantined(**{**row, "group_ids": json.loads(row["group_ids"])}) for row in rows]

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
        """One page, the strongest evidence first, and how many there are in all; empty filters take all."""
        where = (
            " FROM proposals WHERE (?1 = '[]' OR status IN (SELECT value FROM json_each(?1)))"
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

    def remove_of(self, run_id: str) -> int:
        """Take away the proposals of a run that nobody decided on; gives their number."""
        with self._database.writing():
            return self._database.execute(
                "DELETE FROM proposals WHERE run_id = ? AND revision = 0 AND status IN ('proposed', 'superseded')",
                run_id,
            )

    def counts(self) -> dict[str, int]:
        """Number of proposals by status."""
        rows = self._database.rows(
            "SELECT status, count(*) AS n FROM proposals GROUP BY status ORDER BY status"
        )
        return {row["status"]: row["n"] for row in rows}

    def decide(
        self, proposal: Proposal, revision: int, actor: str, event: str, **data: JsonValue
    ) -> Proposal:
        """Write a decision, if nobody decided since the reviewer looked.

        Args:
            proposal: with its new status, text, reason, who and when.
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
            changed = self._database.execute(
                f"UPDATE proposals SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ? AND revision = ?",
                *(*values.values(), proposal.id, revision),
            )
            if not changed:
                raise _decided_meanwhile(self.get(proposal.id))
            self._events.append(actor, event, proposal.id, revision=revision + 1, **data)
        return decided


def _decided_meanwhile(now: Proposal) -> ApplyError:
    who = now.decided_by or "somebody"
    return ApplyError(
        f"{now.id} was changed meanwhile: {who} made it {now.status}. Look at it again, then decide."
    )


def strength(proposal: Proposal) -> float:
    """What the queue is ordered by: 1 - the smallest corrected p of its findings; 0 without findings."""
    return 1 - min((f.p_corrected for f in proposal.evidence.findings), default=1.0)


def _row(proposal: Proposal, proposal_id: str, number: int) -> Row:
    return {
        "id": proposal_id,
        "number": number,
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
