"""What the pages of the library list: one filtered page of a version, what versions changed, who was given a lesson.

Reading only. A list costs what it shows or what its version holds, never the number of rollouts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import Field

from core.errors import InputError
from core.experience import PENDING, Experience
from core.record import Record
from core.store.database import Row
from core.store.search import FROM_WORDS, MAX_QUERY, Hit, hit_of, terms_of
from core.store.store import Store
from core.store.versions import AT, FROM, NOW, STATE

ShelfOrder = Literal["newest", "changed", "confidence", "uses", "wins", "domain", "id"]
ORDERS: dict[ShelfOrder, str] = {
    "newest": "e.number DESC",
    "changed": "s.from_version DESC, e.number DESC",
    "confidence": "s.confidence DESC, e.number",
    "uses": "s.uses DESC, e.number",
    "wins": "s.wins DESC, e.number",
    "domain": "s.domain, e.number",
    "id": "e.number",
}
USED = (
    "EXISTS (SELECT 1 FROM credits c WHERE c.experience_id = e.id AND c.followers > 0 AND c.in_sample = {})"
)
WINDOW = 5_000
"""Rollouts that are looked at for one page of those that were given a lesson: nobody keeps a list of them."""

_ID = re.compile(r"\s*([Ee]-\d{1,15})\s*")


class Shelf(Record):
    """Which lessons are meant; what is empty takes all."""

    version: int | None = None
    """None is the newest."""
    text: str = Field(default="", max_length=MAX_QUERY)
    """Words and "phrases", or the id of one lesson. In an older version: parts of the text."""
    kind: str = ""
    domain: str = ""
    learned_on: str = ""
    confidence_from: float = 0.0
    confidence_to: float = 1.0
    used: Literal["", "used", "unused"] = ""
    proof: Literal["", "elsewhere", "in-sample"] = ""
    """Whether it was followed on tasks that it was not learned from, or on no others than those."""
    order: ShelfOrder = "newest"
    """`newest` gives the best match first, where words are looked for in the newest version."""


class Facets(Record):
    """How many live lessons of a version there are of each."""

    domain: dict[str, int]
    kind: dict[str, int]
    learned_on: dict[str, int]


class Earnings(Record):
    """What contrasts say of a lesson, in all versions and pending."""

    worse: int = 0
    pending: int = 0
    """Uses that no version counts yet."""
    waiting: int = 0
    """Proposals about it that are not decided or not published."""


class Changes(Record):
    """What a version did to the lessons of the one before."""

    added: int = 0
    changed: int = 0
    """Text, kind or domain."""
    gone: int = 0
    earned: int = 0
    """Nothing but confidence, uses and wins."""


class Given(Record):
    """A rollout that had a lesson in its prompt."""

    id: str
    group_id: str
    label: str
    """What the lesson was called there: `G3`."""
    reward: float | None
    advantage: float | None
    model: str
    cited: bool | None
    """Whether its summary says that it followed the lesson; None where there is no summary."""


class GivenPage(Record):
    """One look back through the rollouts."""

    rollouts: tuple[Given, ...] = ()
    before: int | None = None
    """Where to look on; None where all were looked at."""
    looked: int = 0
    """Places in the order of rollouts that were looked at."""


class LibraryPages:
    """Reads of the library of one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store._database

    def page(self, shelf: Shelf, *, limit: int = 50, offset: int = 0) -> tuple[list[Hit], int]:
        """One page of the live lessons that are meant, and how many there are in all.

        Raises:
            NotFoundError: there is no such version.
        """
        version, there = self._at(shelf.version)
        terms = terms_of(shelf.text) if shelf.text.strip() and not _ID.fullmatch(shelf.text) else []
        conditions, values = _narrowed(shelf)
        source, order = FROM, ORDERS[shelf.order]
        words = " AND ".join(t.match() for t in terms if t.indexed)
        if words and shelf.version is None:
            source = FROM_WORDS
            conditions.append("w.experience_words MATCH ?")
            values.append(words)
            order = "w.rank, e.number" if shelf.order == "newest" else order
        plain = [t.text for t in terms if shelf.version is not None or not t.indexed]
        if plain:
            conditions.append(
                "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE NOT instr(lower(s.text), lower(value)))"
            )
            values.append(json.dumps(plain))
        where = f" WHERE {there} AND s.status = 'live'" + "".join(f" AND {c}" for c in conditions)
        total = self._database.value(f"SELECT count(*){source}{where}", version, *values)
        rows = self._database.rows(
            f"SELECT {STATE}{source}{where} ORDER BY {order} LIMIT {int(limit)} OFFSET {int(offset)}",
            *(version, *values),
        )
        return [hit_of(row, terms) for row in rows], int(total)

    def facets(self, version: int | None = None) -> Facets:
        """What a version can be filtered by."""
        number, there = self._at(version)
        rows = self._database.rows(
            "SELECT s.domain, s.kind, s.learned_on, count(*) AS n FROM experience_states s"
            f" WHERE {there} AND s.status = 'live' GROUP BY s.domain, s.kind, s.learned_on",
            number,
        )
        return Facets(**{name: _summed(rows, name) for name in Facets.model_fields})

    def records(self, ids: Collection[str]) -> dict[str, Earnings]:
        """What is known of some lessons beside their states; those of which nothing is are absent."""
        named = json.dumps(sorted(ids))
        found: dict[str, dict[str, int]] = {}
        for row in self._database.rows(
            "SELECT experience_id, sum(better IS 0) AS worse,"
            " sum(folded_in IS NULL) AS pending FROM credits"
            " WHERE experience_id IN (SELECT value FROM json_each(?)) AND followers > 0 GROUP BY experience_id",
            named,
        ):
            found[row.pop("experience_id")] = row
        for row in self._database.rows(
            "SELECT t.value AS id, count(*) AS waiting FROM proposals p, json_each(CASE p.op WHEN 'merge' THEN"
            " p.body -> '$.operation.experience_ids' ELSE json_array(p.body ->> '$.operation.experience_id') END) t"
            " WHERE p.status IN (SELECT value FROM json_each(?)) AND p.op <> 'add'"
            " AND t.value IN (SELECT value FROM json_each(?)) GROUP BY t.value",
            *(json.dumps(PENDING), named),
        ):
            found.setdefault(row["id"], {})["waiting"] = row["waiting"]
        return {i: Earnings(**values) for i, values in found.items()}

    def sample(self, version: int, most: int) -> list[Experience]:
        """Live lessons of a version, spread evenly over all of them: all where there are no more than `most`.

        Raises:
            NotFoundError: there is no such version.
        """
        size = self._store.versions.get(version).size
        rows = self._database.rows(
            f"SELECT {STATE}{FROM} WHERE {AT} AND s.status = 'live' AND e.number % ?2 = 0 ORDER BY e.number",
            *(version, max(1, math.ceil(size / most))),
        )
        return [Experience(**row) for row in rows]

    def changes(self, numbers: Sequence[int]) -> dict[int, Changes]:
        """What each of some versions did."""
        rows = self._database.rows(
            "SELECT s.from_version AS number, sum(s.status = 'live' AND b.status IS NOT 'live') AS added,"
            " sum(s.status <> 'live' AND b.status IS 'live') AS gone,"
            " sum(s.status = 'live' AND b.status IS 'live'"
            " AND (s.text, s.kind, s.domain) IS NOT (b.text, b.kind, b.domain)) AS changed,"
            " sum(s.status = 'live' AND b.status IS 'live'"
            " AND (s.text, s.kind, s.domain) IS (b.text, b.kind, b.domain)) AS earned"
            " FROM experience_states s LEFT JOIN experience_states b"
            " ON b.experience_id = s.experience_id AND b.to_version = s.from_version"
            " WHERE s.from_version IN (SELECT value FROM json_each(?)) GROUP BY s.from_version",
            json.dumps(list(numbers)),
        )
        return {row.pop("number"): Changes(**row) for row in rows}

    def given(self, experience_id: str, *, before: int | None = None, limit: int = 12) -> GivenPage:
        """Rollouts that had a lesson in their prompt, the newest first; looks at `WINDOW` of them at most."""
        top = (
            before
            if before is not None
            else 1 + int(self._database.value("SELECT max(rowid) FROM rollouts") or 0)
        )
        bottom = max(0, top - WINDOW)
        rows = self._database.rows(
            "SELECT r.rowid AS place, r.id, r.group_id, r.reward, r.advantage, r.model, l.key AS label,"
            " (SELECT ?1 IN (SELECT value FROM json_each(c.used)) FROM citations c WHERE c.rollout_id = r.id) AS cited"
            " FROM rollouts r, json_each(r.injected) l WHERE r.rowid < ?2 AND r.rowid >= ?3"
            " AND instr(r.injected, ?4) AND l.value = ?1 ORDER BY r.rowid DESC LIMIT ?5",
            *(experience_id, top, bottom, json.dumps(experience_id), limit),
        )
        full = len(rows) == limit
        stopped = rows[-1]["place"] if full else bottom
        found = []
        for row in rows:
            del row["place"]
            found.append(Given(**{**row, "cited": None if row["cited"] is None else bool(row["cited"])}))
        return GivenPage(rollouts=tuple(found), before=stopped if stopped > 1 else None, looked=top - stopped)

    def _at(self, version: int | None) -> tuple[int, str]:
        return (0, NOW) if version is None else (self._store.versions.get(version).number, AT)


def _narrowed(shelf: Shelf) -> tuple[list[str], list[object]]:
    """Conditions and their values; those of the text are apart."""
    conditions: list[str] = []
    values: list[object] = []
    for column in ("kind", "domain", "learned_on"):
        if wanted := getattr(shelf, column):
            conditions.append(f"s.{column} = ?")
            values.append(wanted)
    if (shelf.confidence_from, shelf.confidence_to) != (0.0, 1.0):
        if shelf.confidence_from > shelf.confidence_to:
            raise InputError("The least confidence is higher than the highest one.")
        conditions.append("round(s.confidence, 4) BETWEEN ? AND ?")
        values += [shelf.confidence_from, shelf.confidence_to]
    if shelf.used:
        conditions.append("s.uses > 0" if shelf.used == "used" else "s.uses = 0")
    if shelf.proof == "elsewhere":
        conditions.append(USED.format(0))
    elif shelf.proof == "in-sample":
        conditions.append(f"{USED.format(1)} AND NOT {USED.format(0)}")
    if found := _ID.fullmatch(shelf.text):
        conditions.append("e.id = ?")
        values.append(found[1].upper())
    return conditions, values


def _summed(rows: Sequence[Row], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row[name]] = found.get(row[name], 0) + row["n"]
    return dict(sorted(found.items()))
