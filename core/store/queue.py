"""What a reviewer's desk shows: one filtered page of the proposals, who else is at work, what hangs on a lesson.

Reading only; decisions are written by `core.store.proposals`. Nothing here grows with the number of rollouts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from core.experience import Experience, Proposal
from core.record import Record, content_hash
from core.store.database import Row
from core.store.evaluations import STANDS
from core.store.events import newest_of
from core.store.proposals import COLUMNS, STALE
from core.store.store import Store
from core.store.versions import FROM, STATE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Order = Literal["evidence", "newest", "confidence", "target", "effect", "uncertainty"]
TARGET = "coalesce(body ->> '$.operation.experience_id', body ->> '$.operation.experience_ids[0]')"
MEASURED = (
    "(SELECT m.{} FROM measured m JOIN evaluations e ON e.id = m.evaluation_id WHERE m.kind = 'proposal'"
    f" AND m.subject = proposals.id ORDER BY {STANDS} LIMIT 1)"
)
"""The mean, or the width of the interval, of the measurement of a proposal that stands (`core.proof.Measured`)."""
ORDERS: dict[Order, str] = {
    "evidence": "strength DESC, number",
    "newest": "number DESC",
    "confidence": "body ->> '$.confidence' DESC, number",
    "target": f"{TARGET} NULLS LAST, number",
    "effect": f"{MEASURED.format('mean')} DESC NULLS LAST, strength DESC, number",
    "uncertainty": f"{MEASURED.format('width')} DESC NULLS FIRST, strength DESC, number",
}
LAST = "status = 'deferred', "
"""What was put off comes last, in every order."""

KIND = "coalesce(body ->> '$.operation.kind', '')"
TEXT = "coalesce(edited_text, body ->> '$.operation.text', '')"
HELD = (
    "coalesce(body ->> '$.operation.experience_id', '') = upper(?7) OR EXISTS"
    " (SELECT 1 FROM json_each(body, '$.operation.experience_ids') WHERE value = upper(?7))"
)
WHERE = (
    " FROM proposals WHERE (?1 = '[]' OR status IN (SELECT value FROM json_each(?1)){stale})"
    " AND (?2 = '' OR op = ?2) AND (?3 = '' OR domain = ?3) AND (?4 = '' OR extractor = ?4)"
    f" AND (?5 = '' OR run_id = ?5) AND (?6 = '' OR {KIND} = ?6)"
    f" AND (?7 = '' OR id = upper(?7) OR {TEXT} LIKE ?8 ESCAPE '\\' OR {HELD})"
)

TOLD = (
    *(f"proposal.{name}" for name in ("made", "approved", "rejected", "deferred", "edited", "rebased")),
    *(f"proposal.{name}" for name in ("undone", "published", "set_aside")),
    "version.published",
    "version.rolled_back",
    "quarantine.adopted",
)
"""Events after which a desk looks different."""

NAMED = 200


class Sieve(Record):
    """Which proposals are meant; what is empty takes all."""

    statuses: tuple[str, ...] = ()
    """"stale" takes what is undecided or staged and whose target changed since it was made."""
    op: str = ""
    domain: str = ""
    extractor: str = ""
    run_id: str = ""
    kind: str = ""
    search: str = Field(default="", max_length=2_000)
    """Part of a text, or the id of a proposal or of a lesson that it changes; the case of ASCII letters is the same."""


class Place(Record):
    """Where a proposal stands in a list."""

    number: int
    """From 1."""
    before: str | None = None
    after: str | None = None


class ProposalQueue:
    """Reads of the proposals of one workspace."""

    def __init__(self, store: Store) -> None:
        self._database = store._database

    def page(
        self, sieve: Sieve, *, order: Order = "evidence", limit: int = 50, offset: int = 0
    ) -> tuple[list[Proposal], int]:
        """One page, and how many there are in all."""
        where, values = _where(sieve)
        total = self._database.value(f"SELECT count(*){where}", *values)
        rows = self._database.rows(
            f"SELECT {COLUMNS}{where} ORDER BY {LAST}{ORDERS[order]} LIMIT ?9 OFFSET ?10",
            *(*values, limit, offset),
        )
        return [_proposal(row) for row in rows], int(total)

    def ids(self, sieve: Sieve, *, order: Order = "evidence", limit: int = 10_000) -> list[tuple[str, int]]:
        """(id, revision) of all that match, in order."""
        where, values = _where(sieve)
        rows = self._database.rows(
            f"SELECT id, revision{where} ORDER BY {LAST}{ORDERS[order]} LIMIT ?9", *values, limit
        )
        return [(row["id"], row["revision"]) for row in rows]

    def place(self, sieve: Sieve, proposal_id: str, *, order: Order = "evidence") -> Place | None:
        """Where a proposal stands among those that match; None where it is not among them."""
        where, values = _where(sieve)
        row = self._database.row(
            "SELECT number, before, after FROM (SELECT id, row_number() OVER w AS number, lag(id) OVER w AS before,"
            f" lead(id) OVER w AS after{where} WINDOW w AS (ORDER BY {LAST}{ORDERS[order]})) WHERE id = ?9",
            *(*values, proposal_id),
        )
        return Place(**row) if row else None

    def values(self, statuses: Collection[str]) -> dict[str, list[str]]:
        """What the filters can be set to: the domains and the runs of what has one of these statuses."""
        found = {}
        for name in ("domain", "run_id"):
            rows = self._database.rows(
                f"SELECT DISTINCT {name} AS name FROM proposals WHERE status IN (SELECT value FROM json_each(?))"
                f" AND {name} IS NOT NULL AND {name} <> '' ORDER BY length({name}), {name} LIMIT ?",
                *(json.dumps(list(statuses)), NAMED),
            )
            found[name] = [str(row["name"]) for row in rows]
        return found

    def experiences(self, ids: Collection[str]) -> dict[str, Experience]:
        """Lessons as they are now, dead ones included, by their ids."""
        rows = self._database.rows(
            f"SELECT {STATE}{FROM} WHERE e.id IN (SELECT value FROM json_each(?)) AND s.to_version IS NULL",
            json.dumps(sorted(ids)),
        )
        return {row["id"]: Experience(**row) for row in rows}

    def rollouts_of(self, group_ids: Sequence[str]) -> list[Row]:
        """(group, rollout, reward, advantage, error) of some groups, without their trajectories."""
        return self._database.rows(
            "SELECT group_id, id, reward, advantage, error IS NOT NULL AS broke_off FROM rollouts"
            " WHERE group_id IN (SELECT value FROM json_each(?)) ORDER BY group_id, reward DESC NULLS LAST, replicate",
            json.dumps(list(group_ids)),
        )

    def examples(self, rollout_ids: Sequence[str]) -> list[Row]:
        """(id, answer, reward, advantage, steps, bytes) of some rollouts, in the order given; answers are cut."""
        return self._database.rows(
            "SELECT r.id, substr(r.answer, 1, 300) AS answer, r.reward, r.advantage, r.steps,"
            " (SELECT length(body) FROM trajectories WHERE rollout_id = r.id) AS bytes FROM json_each(?) j"
            " JOIN rollouts r ON r.id = j.value ORDER BY j.key",
            json.dumps(list(rollout_ids)),
        )

    def live_texts(self) -> dict[str, str]:
        """The text of every live lesson, by its id."""
        rows = self._database.rows(
            "SELECT experience_id, text FROM experience_states WHERE to_version IS NULL AND status = 'live'"
        )
        return {row["experience_id"]: row["text"] for row in rows}

    def vectors(self, texts: Sequence[str], model: str) -> dict[str, NDArray[np.float32]]:
        """The stored vectors of some texts, by the hashes of those; none is made."""
        import numpy as np

        rows = self._database.rows(
            "SELECT text_key, vector FROM embeddings WHERE model = ?1"
            " AND text_key IN (SELECT value FROM json_each(?2))",
            *(model, json.dumps([content_hash(text) for text in texts])),
        )
        return {row["text_key"]: np.frombuffer(row["vector"], dtype="<f4") for row in rows}

    def vectors_kept(self, model: str) -> int:
        return int(self._database.value("SELECT count(*) FROM embeddings WHERE model = ?", model))

    def live_by_domain(self) -> dict[str, int]:
        """How many live lessons each domain has."""
        rows = self._database.rows(
            "SELECT domain, count(*) AS n FROM experience_states WHERE to_version IS NULL AND status = 'live'"
            " GROUP BY domain"
        )
        return {row["domain"]: row["n"] for row in rows}

    def decided_stamp(self) -> str:
        """Changes whenever somebody decides or publishes."""
        return str(newest_of(self._database, TOLD))

    def stamp(self) -> str:
        """Changes with a decision, and when a proposal is taken or given back; a heartbeat changes nothing."""
        held = self._database.row("SELECT count(*) AS n, max(taken_at || proposal_id) AS newest FROM claims")
        return f"{self.decided_stamp()} {held}"


def _where(sieve: Sieve) -> tuple[str, tuple[object, ...]]:
    escaped = sieve.search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    where = WHERE.format(stale=f" OR ({STALE})" if "stale" in sieve.statuses else "")
    values = (
        json.dumps(sieve.statuses),
        *(sieve.op, sieve.domain, sieve.extractor, sieve.run_id, sieve.kind),
        *(sieve.search, f"%{escaped}%"),
    )
    return where, values


def _proposal(row: Row) -> Proposal:
    return Proposal(**json.loads(row.pop("body")), **row)
