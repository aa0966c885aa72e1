"""Which reviewer is looking at which proposal. A claim is a lease: it ends by itself."""

from __future__ import annotations

import json
from collections.abc import Collection

from core.record import Record
from core.store.database import Database
from core.store.events import Clock

COLUMNS = "proposal_id, holder, taken_at, until"


class Claim(Record):
    """A proposal that one reviewer has taken to decide on."""

    proposal_id: str
    holder: str
    taken_at: str
    until: str
    """UTC, ISO 8601; from then on it is anybody's again."""


class Claims:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock

    def save(self, claim: Claim) -> Claim:
        """Put a claim in the place of whatever claim there was on its proposal."""
        with self._database.writing():
            self._database.execute("DELETE FROM claims WHERE proposal_id = ?", claim.proposal_id)
            self._database.insert("claims", claim.model_dump())
        return claim

    def remove(self, proposal_id: str) -> None:
        with self._database.writing():
            self._database.execute("DELETE FROM claims WHERE proposal_id = ?", proposal_id)

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
