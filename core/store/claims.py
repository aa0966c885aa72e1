"""Which reviewer is looking at which proposal. A claim is a lease: it ends by itself.

What is taken, held for longer and given back is in the log under the subject "claims", away from the decisions on the
proposals: a heartbeat is no decision.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta

from core.record import Record
from core.store.database import Database
from core.store.events import Events

COLUMNS = "proposal_id, holder, taken_at, until"
SUBJECT = "claims"


class Claim(Record):
    """A proposal that one reviewer has taken to decide on."""

    proposal_id: str
    holder: str
    taken_at: str
    until: str
    """UTC, ISO 8601; from then on it is anybody's again."""


def after(before: Claim | None, proposal_id: str, holder: str, minutes: float, at: str) -> Claim:
    """The claim on a proposal once somebody takes it: who holds it already goes on holding it.

    Args:
        before: the claim that there is, though it may have run out.
        proposal_id: on what.
        holder: who takes it.
        minutes: how long from now.
        at: now, UTC, ISO 8601.
    """
    goes_on = before is not None and before.holder == holder and before.until > at
    since = before.taken_at if before is not None and goes_on else at
    return Claim(proposal_id=proposal_id, holder=holder, taken_at=since, until=later(at, minutes))


def later(at: str, minutes: float) -> str:
    """So many minutes after a time, both UTC, ISO 8601."""
    return (datetime.fromisoformat(at) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Claims:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events
        self.clock = events.clock

    def take(self, proposal_id: str, holder: str, minutes: float, at: str) -> Claim:
        """Put a claim in the place of whatever claim there was on a proposal; see `after`."""
        with self._database.writing():
            row = self._database.row(f"SELECT {COLUMNS} FROM claims WHERE proposal_id = ?", proposal_id)
            before = Claim(**row) if row else None
            claim = after(before, proposal_id, holder, minutes, at)
            if claim == before:
                return claim
            self._database.execute("DELETE FROM claims WHERE proposal_id = ?", proposal_id)
            self._database.insert("claims", claim.model_dump())
            renewed = before is not None and claim.taken_at == before.taken_at
            self._events.append(
                holder,
                "claim.renewed" if renewed else "claim.taken",
                SUBJECT,
                {"claim": {"proposal_id": proposal_id, "minutes": minutes}},
                at,
                proposal=proposal_id,
                minutes=minutes,
            )
        return claim

    def end(self, proposal_id: str, actor: str) -> None:
        """Take away the claim on a proposal, whoever has it, if there is one."""
        with self._database.writing():
            if self._database.execute("DELETE FROM claims WHERE proposal_id = ?", proposal_id):
                self._events.append(
                    actor, "claim.ended", SUBJECT, {"unclaimed": proposal_id}, proposal=proposal_id
                )

    def of(self, proposal_id: str, now: str) -> Claim | None:
        """The claim on a proposal that has not run out; None where it is free."""
        row = self._database.row(
            f"SELECT {COLUMNS} FROM claims WHERE proposal_id = ? AND until > ?", proposal_id, now
        )
        return Claim(**row) if row else None

    def all(self, now: str) -> list[Claim]:
        """Every claim that has not run out, the oldest first."""
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM claims WHERE until > ? ORDER BY taken_at, proposal_id", now
        )
        return [Claim(**row) for row in rows]

    def waiting(
        self, holder: str, now: str, *, domain: str, run_id: str | None, skip: Collection[str]
    ) -> str | None:
        """The proposal that a reviewer should look at next: what they hold, else the strongest that nobody holds."""
        held_first = (
            "SELECT p.id FROM proposals p LEFT JOIN claims c ON c.proposal_id = p.id AND c.until > ?2"
            " WHERE p.status = 'proposed' AND (c.holder IS NULL OR c.holder = ?1) AND (?3 = '' OR p.domain = ?3)"
            " AND (?4 IS NULL OR p.run_id = ?4) AND p.id NOT IN (SELECT value FROM json_each(?5))"
            " ORDER BY c.holder IS NULL, p.strength DESC, p.number LIMIT 1"
        )
        found = self._database.value(held_first, holder, now, domain, run_id, json.dumps(sorted(skip)))
        return str(found) if found else None
