"""The log, read from its beginning, gives the state: proposals, quarantine, claims, versions, experiences and labels.

What an event made of its subject stands in its state:

    {"made": proposal}                          a proposal as it was made (or found by an upgrade)
    {"was": fields, "now": fields, "decided":}  what was changed of a proposal, and whether by who decides on it now
    {"set_aside": operation}                    what could not become a proposal, with its reason and the raw reply
    {"adopted": proposal id}                    what a person made of that
    {"claim": {"proposal_id":, "minutes":}}     who holds a proposal, and for how long from then on
    {"unclaimed": proposal id}                  nobody holds it any more
    {"version": fields, "experiences": [...]}   a version, and every experience that is another one from then on
    {"label": fields or null}                   where a label points; null takes it away
    {"complete": true}                          all that there was is told after this: older events do not count

A run that is discarded takes what it set aside with it (`run.discarded`, which has no state of its own).

Events of a workspace from before the states tell of decisions without what came of them. The upgrade therefore wrote
everything that was there into the log once; `Replayed.complete_from` is that event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from core.experience import Experience, Proposal, Quarantined, Version
from core.rollout import Event
from core.store.claims import Claim, after
from core.store.database import Row
from core.store.events import Entry, State
from core.store.labels import Label
from core.store.proposals import QuarantinedItem, proposal_row, quarantine_row
from core.store.store import Store

Span = tuple[int, int | None, Experience]
"""From which version, to before which, an experience was so."""

DISCARDED = "run.discarded"


@dataclass
class Replayed:
    """What the log tells."""

    proposals: dict[str, Proposal] = field(default_factory=dict)
    quarantine: dict[str, QuarantinedItem] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    """By proposal; those that ran out and were never ended, too."""
    versions: dict[int, Version] = field(default_factory=dict)
    experiences: dict[str, list[Span]] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    complete_from: int = 0
    """The event from which on the log is complete; 0 = from the beginning."""
    unread: list[int] = field(default_factory=list)
    """Events whose state is none of those above."""


def replay(log: Iterable[Entry]) -> Replayed:
    """Rebuild the state from the log alone; an event that cannot be understood is left out and named."""
    found = Replayed()
    for event, state in log:
        if event.kind == DISCARDED:
            gone = [i for i, held in found.quarantine.items() if held.item.run_id == event.subject]
            for item_id in gone:
                del found.quarantine[item_id]
        if state is None:
            continue
        if "complete" in state:
            found = Replayed(complete_from=event.id)
            continue
        try:
            _READERS[next(name for name in _READERS if name in state)](found, event, state)
        except (StopIteration, KeyError, TypeError, ValueError, AttributeError):  # pydantic's is a ValueError
            found.unread.append(event.id)
    return found


def _made(found: Replayed, event: Event, state: State) -> None:
    found.proposals[event.subject] = Proposal(**state["made"])


def _decided(found: Replayed, event: Event, state: State) -> None:
    known = found.proposals[event.subject]
    changed = {**state["now"], "revision": event.data["revision"]}
    if state["decided"]:
        changed |= {"decided_by": event.actor, "decided_at": event.at}
    found.proposals[event.subject] = known.model_copy(update=changed)


def _set_aside(found: Replayed, event: Event, state: State) -> None:
    item = Quarantined(**state["set_aside"])
    found.quarantine[event.subject] = QuarantinedItem(id=event.subject, item=item, at=event.at)


def _adopted(found: Replayed, event: Event, state: State) -> None:
    held = found.quarantine[event.subject]
    found.quarantine[event.subject] = held.model_copy(update={"proposal_id": state["adopted"]})


def _claimed(found: Replayed, event: Event, state: State) -> None:
    proposal_id, minutes = state["claim"]["proposal_id"], state["claim"]["minutes"]
    before = found.claims.get(proposal_id)
    found.claims[proposal_id] = after(before, proposal_id, event.actor, minutes, event.at)


def _unclaimed(found: Replayed, event: Event, state: State) -> None:
    del found.claims[state["unclaimed"]]


def _published(found: Replayed, event: Event, state: State) -> None:
    version = Version(**{"created_at": event.at, **state["version"]})
    experiences = [Experience(**given) for given in state["experiences"]]
    found.versions[version.number] = version
    for experience in experiences:
        spans = found.experiences.setdefault(experience.id, [])
        if spans:
            begin, _, before = spans[-1]
            spans[-1] = (begin, version.number, before)
        spans.append((version.number, None, experience))


def _labelled(found: Replayed, event: Event, state: State) -> None:
    if state["label"] is None:
        del found.labels[event.subject]
        return
    found.labels[event.subject] = Label(
        name=event.subject, moved_by=event.actor, moved_at=event.at, **state["label"]
    )


_READERS: dict[str, Callable[[Replayed, Event, State], None]] = {
    "made": _made,
    "now": _decided,
    "set_aside": _set_aside,
    "adopted": _adopted,
    "claim": _claimed,
    "unclaimed": _unclaimed,
    "version": _published,
    "label": _labelled,
}
"""By what a state is known by."""


# -- the tables -----------------------------------------------------------------------------------

NAMES: dict[str, str] = {
    "proposals": "proposal {id}",
    "quarantine": "quarantined item Q-{id:04d}",
    "claims": "claim on {proposal_id}",
    "versions": "version {number}",
    "experiences": "experience {id}",
    "experience_states": "experience {experience_id} as of version {from_version}",
    "labels": "label {name}",
}
"""The tables that the log rebuilds, and what a row of each is called."""

EMPTY = {"number": 0, "parent": None, "created_at": "1970-01-01T00:00:00Z", "size": 0}
"""What is certain of the empty library, which was never made by anybody."""

SHOWN = 120
"""Characters of a value that are shown."""


def rows(told: Replayed) -> dict[str, list[Row]]:
    """Every row that the log tells of by its table, column for column as it is stored; without the empty library."""
    return {
        "proposals": [proposal_row(p) for p in told.proposals.values()],
        "quarantine": [quarantine_row(held) for held in told.quarantine.values()],
        "claims": [claim.model_dump() for claim in told.claims.values()],
        "versions": [v.model_dump(exclude={"proposal_ids"}) for v in told.versions.values()],
        "experiences": [
            {"id": i, "number": int(i.rpartition("-")[2]), "epoch": spans[0][2].epoch}
            for i, spans in told.experiences.items()
        ],
        "experience_states": [
            {"experience_id": i, "from_version": start, "to_version": end}
            | experience.model_dump(exclude={"id", "epoch"})
            for i, spans in told.experiences.items()
            for start, end, experience in spans
        ],
        "labels": [
            label.model_dump() | {"protected": int(label.protected)} for label in told.labels.values()
        ],
    }


def compare(store: Store) -> list[str]:
    """Where the tables are not what the log tells, a sentence for each difference; nothing where they agree."""
    with store.writing():  # one state of both: nobody writes between the two looks
        told = replay(store.events.every())
        there = {table: store._database.rows(f"SELECT * FROM {table}") for table in NAMES}
    lines = [f"Event {number} of the log cannot be understood." for number in told.unread]
    for table, expected in rows(told).items():
        if table == "versions":
            expected.append(next((r for r in there[table] if r["number"] == 0), {}) | EMPTY)
        lines += _differing(table, _named(table, expected), _named(table, there[table]))
    return lines


def _named(table: str, found: list[Row]) -> dict[str, Row]:
    return {NAMES[table].format(**row): row for row in found}


def _differing(table: str, log: dict[str, Row], tables: dict[str, Row]) -> Iterator[str]:
    for name in sorted(log.keys() | tables.keys()):
        if name not in tables:
            yield f"The log tells of {name}, which is not in its table."
        elif name not in log:
            yield f"The table has {name}, which the log does not tell of."
        elif log[name] != tables[name]:
            told, there = _fields(table, log[name]), _fields(table, tables[name])
            if (
                told.keys() != there.keys()
            ):  # it is no proposal any more: its columns are compared as they are
                told, there = log[name], tables[name]
            for column in (c for c in told if told[c] != there[c]):
                has = (
                    "a body that cannot be read"
                    if column == "body"
                    else f"{column} {_short(there[column])}, but the log says {_short(told[column])}"
                )
                yield f"{name[0].upper()}{name[1:]} has {has}."


def _fields(table: str, row: Row) -> Row:
    """The columns of a row; of a proposal, what is in its body besides, so that an older body reads as a new one."""
    if table != "proposals":
        return row
    columns = {name: value for name, value in row.items() if name != "body"}
    known = {name: value for name, value in columns.items() if name in Proposal.model_fields}
    try:
        return columns | Proposal(**json.loads(row["body"]), **known).model_dump(mode="json")
    except (ValueError, TypeError):
        return row


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
