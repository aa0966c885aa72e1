"""Token priors."""

from __future__ import annotations

import json

from core.errors import NotFoundError
from core.prior import Prior
from core.record import content_hash
from core.store.database import Database, Row
from core.store.events import Events

BESIDES = {"id", "derived_by", "created_at"}
"""Fields that have a column of their own; two priors that differ in nothing else are the same."""


class Priors:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(self, prior: Prior, actor: str) -> Prior:
        """Keep a prior, and give it its id; one that is there already is given as it is."""
        body = prior.model_dump(mode="json", exclude=BESIDES)
        content = content_hash(body)
        with self._database.writing():
            if row := self._database.row("SELECT * FROM priors WHERE content = ?", content):
                return _prior(row)
            number = int(self._database.value("SELECT coalesce(max(number), 0) + 1 FROM priors"))
            row = {
                "id": f"PR-{number:04d}",
                "number": number,
                "content": content,
                "body": json.dumps(body, ensure_ascii=False),
                "derived_by": actor,
                "created_at": self._events.clock(),
            }
            self._database.insert("priors", row)
            tokens = sum(len(f.tokens) for f in prior.factors)
            self._events.append(
                actor, "prior.kept", row["id"], tokenizer=prior.tokenizer.sha256, tokens=tokens
            )
        return _prior(row)

    def get(self, prior_id: str) -> Prior:
        """One prior.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._database.row("SELECT * FROM priors WHERE id = upper(?)", prior_id)
        if row is None:
            raise NotFoundError(f"There is no token prior {prior_id!r}; `winnow prior list` shows them.")
        return _prior(row)

    def all(self) -> list[Prior]:
        """Every prior, the newest first."""
        return [_prior(row) for row in self._database.rows("SELECT * FROM priors ORDER BY number DESC")]


def _prior(row: Row) -> Prior:
    own = {name: row[name] for name in BESIDES}
    return Prior(**json.loads(row["body"]), **own)
