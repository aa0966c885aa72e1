"""What was really sent, request by request: the ledger behind every sum of calls, tokens and money."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from core.llm.ledger import Entry
from core.rollout import SpendRow, Usage
from core.settings import EMBEDDED
from core.store.database import Database, Row
from core.store.events import Clock

By = Literal["run", "endpoint", "day", "stage"]
_LABELS: dict[By, str] = {
    "run": "run_id",
    "endpoint": "endpoint",
    "day": "substr(at, 1, 10)",
    "stage": "stage",
}
_SUMS = (
    "coalesce(sum(calls), 0) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt_tokens,"
    " coalesce(sum(completion_tokens), 0) AS completion_tokens, coalesce(sum(cost_usd), 0.0) AS cost_usd"
)


LATELY = 20_000
"""Newest rows that a look at the last minute goes back over, at most."""


class Spending:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def book(self, entries: Sequence[Entry]) -> None:
        """Write down what was sent; in one transaction with the replies where one is open."""
        at = self._clock()
        rows = [
            (at, e.run_id, e.endpoint, e.stage, u.calls, u.prompt_tokens, u.completion_tokens, u.cost_usd)
            for e in entries
            for u in [e.usage]
        ]
        with self._database.writing():
            self._database.executemany(
                "INSERT INTO spend (at, run_id, endpoint, stage, calls, prompt_tokens, completion_tokens, cost_usd)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def of_run(self, run_id: str) -> Usage:
        row = self._database.row(f"SELECT {_SUMS} FROM spend WHERE run_id = ?", run_id)
        return Usage(**(row or {}))

    def of_runs(self, run_ids: Sequence[str]) -> dict[str, Usage]:
        """What was sent for each of some runs; those for which nothing was are left out."""
        rows = self._database.rows(
            f"SELECT run_id, {_SUMS} FROM spend WHERE run_id IN (SELECT value FROM json_each(?)) GROUP BY run_id",
            json.dumps(list(run_ids)),
        )
        return {row.pop("run_id"): Usage(**row) for row in rows}

    def calls_since(self, run_id: str, at: str) -> int:
        """Requests that were sent for a run since a time (UTC, ISO 8601)."""
        return int(
            self._database.value(
                "SELECT coalesce(sum(calls), 0) FROM spend WHERE id > (SELECT max(id) - ? FROM spend)"
                " AND run_id = ? AND at >= ?",
                *(LATELY, run_id, at),
            )
        )

    def by(self, what: By, *, run_id: str | None = None, since: str = "") -> list[SpendRow]:
        """Sums by run, endpoint, day or stage, the newest first; of one run, or since a day (`2026-11-29`)."""
        rows = self._database.rows(
            f"SELECT {_LABELS[what]} AS label, {_SUMS}, min(endpoint = ?3) AS free FROM spend"
            " WHERE (?1 IS NULL OR run_id = ?1) AND at >= ?2 GROUP BY 1 ORDER BY max(id) DESC",
            *(run_id, since, EMBEDDED),
        )
        return [_spend_row(row) for row in rows]


def _spend_row(row: Row) -> SpendRow:
    label, free = row.pop("label"), row.pop("free")
    return SpendRow(label=label, usage=Usage(**row), free=bool(free))
