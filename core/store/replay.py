"""The log, read from its beginning, gives the state: proposals, versions, experiences and labels.

What an event made of its subject stands in its state:

    {"made": proposal}                          a proposal as it was made (or found by an upgrade)
    {"was": fields, "now": fields, "decided":}  what was changed of a proposal, and whether by who decides on it now
    {"version": fields, "experiences": [...]}   a version, and every experience that is another one from then on
    {"label": fields or null}                   where a label points; null takes it away
    {"complete": true}                          all that there was is told after this: older events do not count

Events of a workspace from before the states tell of decisions without what came of them. The upgrade therefore wrote
everything that was there into the log once; `Replayed.complete_from` is that event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from core.experience import Experience, Proposal, Version
from core.store.events import Entry, State
from core.store.labels import Label
from core.store.store import Store

Span = tuple[int, int | None, Experience]
"""From which version, to before which, an experience was so."""


@dataclass
class Replayed:
    """What the log tells."""

    proposals: dict[str, Proposal] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    experiences: dict[str, list[Span]] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    complete_from: int = 0
    """The event from which on the log is complete; 0 = from the beginning."""


def replay(log: Iterable[Entry]) -> Replayed:
    """Rebuild the state from the log alone."""
    found = Replayed()
    for entry in log:
        if entry.state is not None:
            found = _after(found, entry, entry.state)
    return found


def _after(found: Replayed, entry: Entry, state: State) -> Replayed:
    event = entry.event
    if "complete" in state:
        return Replayed(complete_from=event.id)
    if "made" in state:
        found.proposals[event.subject] = Proposal(**state["made"])
    elif "now" in state:
        known = found.proposals.get(event.subject)
        if known is not None:
            changed = {**state["now"], "revision": event.data["revision"]}
            if state["decided"]:
                changed |= {"decided_by": event.actor, "decided_at": event.at}
            found.proposals[event.subject] = known.model_copy(update=changed)
    elif "version" in state:
        _publish(found, {"created_at": event.at, **state["version"]}, state["experiences"])
    elif "label" in state:
        found.labels.pop(event.subject, None)
        if state["label"] is not None:
            found.labels[event.subject] = Label(
                name=event.subject, moved_by=event.actor, moved_at=event.at, **state["label"]
            )
    return found


def _publish(found: Replayed, version: State, experiences: list[State]) -> None:
    number = version["number"]
    found.versions[number] = Version(**version)
    for given in experiences:
        experience = Experience(**given)
        spans = found.experiences.setdefault(experience.id, [])
        if spans:
            begin, _, before = spans[-1]
            spans[-1] = (begin, number, before)
        spans.append((number, None, experience))


def compare(store: Store) -> list[str]:
    """Where the tables are not what the log tells, a sentence each; nothing where they agree."""
    with store.writing():  # one state of both: nobody writes between the two looks
        told = replay(store.events.every())
        versions = {v.number: v.model_copy(update={"proposal_ids": ()}) for v in store.versions.newest(-1)}
        del versions[0]  # the empty library was never made by anybody
        kinds: list[tuple[str, dict[str, object], dict[str, object]]] = [
            ("proposal", {**told.proposals}, {p.id: p for p in store.proposals.every()}),
            (
                "version",
                {f"{n}": v for n, v in told.versions.items()},
                {f"{n}": v for n, v in versions.items()},
            ),
            ("experience", {**told.experiences}, {**store.versions.every_state()}),
            ("label", {**told.labels}, {label.name: label for label in store.labels.all()}),
        ]
    return [line for kind, log, tables in kinds for line in _differing(kind, log, tables)]


def _differing(kind: str, log: dict[str, object], tables: dict[str, object]) -> list[str]:
    lines = []
    for name in sorted(log.keys() | tables.keys()):
        if name not in tables:
            lines.append(f"The log tells of {kind} {name}, which is not in its table.")
        elif name not in log:
            lines.append(f"The table has {kind} {name}, which the log does not tell of.")
        elif log[name] != tables[name]:
            lines.append(f"{kind.capitalize()} {name} {_what(log[name], tables[name])}.")
    return lines


def _what(log: object, table: object) -> str:
    if isinstance(log, list) and isinstance(table, list):
        for (*span, told), (*there, found) in zip(log, table, strict=False):
            if span != there:
                return f"is so from version {there[0]} to {there[1]}, but the log says from {span[0]} to {span[1]}"
            if told != found:
                return f"as of version {span[0]} {_what(told, found)}"
        return f"has {len(table)} states, but the log tells of {len(log)}"
    fields = type(log).model_fields if isinstance(log, Proposal | Experience | Version | Label) else {}
    for name in fields:
        if (told := getattr(log, name)) != (there := getattr(table, name)):
            return f"has {name} {there!r}, but the log says {told!r}"
    return "differs from what the log tells"
