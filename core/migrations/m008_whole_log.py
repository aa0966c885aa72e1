"""The log tells of the quarantine and of claims, too."""

from __future__ import annotations

import json

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS

NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"


@MIGRATIONS()
def m008_whole_log(db: Database) -> None:
    db.execute("DELETE FROM claims")  # leases of minutes: whoever still looks at a proposal takes it again
    for row in list(db.query("SELECT * FROM quarantine ORDER BY id")):
        item_id = f"Q-{row['id']:04d}"
        item = {name: row[name] for name in ("reason", "raw", "run_id")}
        item["group_ids"] = json.loads(row["group_ids"])
        data = {"run": row["run_id"], "reason": row["reason"]}
        _append(db, row["at"], "quarantine.set_aside", item_id, data, {"set_aside": item})
        if row["proposal_id"] is not None:
            adopted = {"proposal": row["proposal_id"]}
            _append(db, None, "quarantine.adopted", item_id, adopted, {"adopted": row["proposal_id"]})


def _append(
    db: Database, at: str | None, kind: str, subject: str, data: dict[str, object], state: dict[str, object]
) -> None:
    told = (json.dumps(value, ensure_ascii=False) for value in (data, state))
    db.execute(
        f"INSERT INTO events (at, actor, kind, subject, data, state) VALUES (coalesce(?, {NOW}), 'winnow', ?, ?, ?, ?)",
        [at, kind, subject, *told],
    )
