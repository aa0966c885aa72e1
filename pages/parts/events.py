"""The log in words, and where each of its lines leads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.rollout import Event
from pages.parts import frame, safe, words
from pages.parts.safe import Markup, joined, markup

WORDS = {
    "tasks.imported": "imported tasks from",
    "tasks.answered": "gave tasks their answers from",
    "rollouts.imported": "imported rollouts into",
    "rollout.went_on": "brought in how it went on:",
    "run.created": "wrote down run",
    "run.done": "finished run",
    "run.failed": "gave up run",
    "run.reopened": "reopened failed groups of",
    "run.rescored": "made the rewards anew of",
    "run.stopped_early": "found nothing left to learn in",
    "run.cancelled": "cancelled run",
    "run.discarded": "discarded what was made by run",
    "run.accepted": "said what became of",
    "job.paused": "paused job",
    "job.resumed": "resumed job",
    "job.cancelled": "cancelled job",
    "job.requeued": "requeued job",
    "evaluation.created": "wrote down evaluation",
    "evaluation.done": "finished evaluation",
    "evaluation.cancelled": "cancelled evaluation",
    "evaluation.stopped_early": "stopped decided arms of",
    "final.used": "used the final split in",
    "effect.measured": "measured",
    "rollback.proposed": "proposed to roll back version",
    "gate.tried": "tried the proposals of",
    "gate.decided": "let the trial gate decide for",
    "gate.held_back": "left to a person proposals of",
    "prior.kept": "kept token prior",
    "prior.exported": "exported token prior",
    "proposal.made": "proposed",
    "proposal.kept": "kept proposal",
    "proposal.joined": "added evidence to",
    "proposal.approved": "approved",
    "proposal.rejected": "rejected",
    "proposal.deferred": "put off",
    "proposal.edited": "edited",
    "proposal.rebased": "rebased",
    "proposal.set_aside": "set aside",
    "proposal.undone": "took back the decision on",
    "proposal.published": "published",
    "quarantine.set_aside": "set aside as no operation",
    "quarantine.adopted": "made a proposal of",
    "claim.taken": "took up",
    "claim.taken_over": "took over",
    "claim.renewed": "went on with",
    "claim.ended": "put down",
    "version.published": "published library version",
    "version.rolled_back": "rolled back to make version",
    "version.kept": "kept version",
    "label.set": "pointed label",
    "label.removed": "took away label",
    "credits.folded": "took earned confidence into version",
    "endpoint.saved": "saved endpoint",
    "endpoint.removed": "removed endpoint",
    "role.set": "changed who has the role",
    "setting.changed": "changed the",
    "pack.exported": "exported",
    "pack.imported": "imported",
    "usage.imported": "read usage from",
    "workspace.restored": "restored the workspace from",
    "workspace.redacted": "redacted",
    "log.completed": "completed the",
}
THEMES = {
    "tasks": "Tasks",
    "run": "Runs",
    "job": "Jobs",
    "evaluation": "Evaluations",
    "final": "Final split",
    "effect": "Measured effects",
    "rollback": "Rollbacks proposed",
    "gate": "Trial gate",
    "prior": "Token priors",
    "proposal": "Proposals",
    "quarantine": "Quarantine",
    "claim": "Claims",
    "version": "Versions",
    "label": "Labels",
    "credits": "Confidence",
    "pack": "Packs",
    "usage": "Usage",
    "endpoint": "Endpoints",
    "role": "Roles of endpoints",
    "setting": "Settings",
    "workspace": "Care",
    "log": "Log",
}
"""First words of kinds."""

LONG_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
MONTHS = tuple(name[:3] for name in LONG_MONTHS)
WHY = ("reason", "message", "note", "rationale")
"""What of an event's data says why."""
HIDDEN = {*WHY, "revision", "base", "edited", "evidence", "group_ids", "raw_reply", "by_domain"}
"""Data that a reader of the log does not look for; the export has it."""
SAID = {
    "op": "to {}",
    "run": "run {}",
    "experience": "{}",
    "version": "version {}",
    "parent": "on version {}",
    "library_version": "library version {}",
    "added": "{} added",
    "known": "{} known already",
    "refused": "{} refused",
}
"""How the most frequent data is said; other data stands after its name."""
COUNTED = {"size": "lesson", "groups": "group"}
"""Data that is a number of things."""

PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"R\d+"), "pages/learn/run.py"),
    (re.compile(r"R\d+-\d+(\+\d+)?"), "pages/learn/group.py"),
    (re.compile(r"R\d+-\d+(\+\d+)?-\d+"), "pages/learn/rollout.py"),
    (re.compile(r"P-\d+"), "pages/review/review.py"),
    (re.compile(r"E-\d+"), "pages/review/experience.py"),
    (re.compile(r"EV\d+"), "pages/prove/evaluation.py"),
    (re.compile(r"PR-\d+"), "pages/prove/priors.py"),
)
"""Pages by the ids that they are about."""

LISTS = {
    "tasks": "pages/learn/tasks.py",
    "version": "pages/review/versions.py",
    "label": "pages/review/versions.py",
    "pack": "pages/ship/packs.py",
    "endpoint": "pages/admin/settings.py",
    "role": "pages/admin/settings.py",
    "setting": "pages/admin/settings.py",
}
"""Pages of subjects that have none of their own, by the first word of the kind."""


@dataclass(frozen=True)
class Way:
    """Where a line leads."""

    page: str
    query: Mapping[str, str]


def way(event: Event) -> Way | None:
    """The page about what happened; None where there is none."""
    theme = event.kind.partition(".")[0]
    subject = str(event.data.get("run") or "") if theme in ("job", "quarantine") else event.subject
    for pattern, page in PLACES:
        if pattern.fullmatch(subject):
            return Way(page, {"id": subject})
    if theme in LISTS:
        return Way(LISTS[theme], {"id": subject} if theme == "version" else {})
    return None


def when(at: str) -> str:
    """`2026-11-29T18:30:00Z` as `29 Nov 18:30`; other text as it is."""
    if at < "1971":
        return ""  # version 0 was always there
    try:
        return f"{day(at)} {at[11:16]}"
    except (ValueError, IndexError):
        return at


def day(at: str) -> str:
    """`29 Nov`."""
    return f"{int(at[8:10])} {MONTHS[int(at[5:7]) - 1]}"


def day_words(at: str) -> str:
    """`29 November 2026`; other text as it is."""
    try:
        return f"{int(at[8:10])} {LONG_MONTHS[int(at[5:7]) - 1]} {at[:4]}"
    except (ValueError, IndexError):
        return at


def kinds_and_themes(kinds: Sequence[str]) -> list[str]:
    """Entries of a filter: each first word before the kinds that begin with it."""
    found: dict[str, None] = {}
    for kind in sorted(
        kinds, key=lambda k: (list(THEMES).index(t) if (t := k.partition(".")[0]) in THEMES else 99, k)
    ):
        found.setdefault(kind.partition(".")[0])
        found.setdefault(kind)
    return list(found)


def kind_words(kind: str) -> str:
    """A kind, or its first word alone, as an entry of a filter."""
    theme, _, rest = kind.partition(".")
    name = THEMES.get(theme, theme)
    return f"{name}: {rest.replace('_', ' ')}" if rest else name


def sentence(event: Event) -> Markup:
    """`ann approved P-0003`, without the time."""
    return markup(
        '<span class="who">{actor}</span> {verb} <b>{subject}</b>',
        actor=event.actor,
        verb=WORDS.get(event.kind, event.kind),
        subject=safe.short(event.subject.removeprefix("setting ").replace("_", " "), 120)
        if event.kind == "setting.changed"
        else safe.short(event.subject, 120),
    )


def why(event: Event) -> str:
    """The reason or the message that was given; empty where there was none."""
    return next((str(event.data[name]) for name in WHY if event.data.get(name)), "")


def details(event: Event) -> str:
    """What else a reader may want to know, on one line."""
    told = {k: v for k, v in event.data.items() if k not in HIDDEN and v not in (None, "", False, [], {})}
    return safe.short(", ".join(_said(k, v) for k, v in told.items()), 200)


def _said(name: str, value: object) -> str:
    if name in COUNTED and isinstance(value, int):
        return words.plural(value, COUNTED[name])
    if name in SAID and isinstance(value, str | int):
        return SAID[name].format(value)
    return f"{name.replace('_', ' ')} {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{k} {_value(v)}" for k, v in value.items() if v is not None) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_value, value))
    text = str(value)
    return f"{text[:12]}…" if re.fullmatch(r"[0-9a-f]{64}", text) else text


def gathered(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Neighbours that tell the same of different things, together."""
    for _, same in groupby(events, key=lambda e: (e.actor, e.kind)):
        yield list(same)


def lines(events: Sequence[Event]) -> None:
    """The log, short: what was done to many things in a row is one line."""
    if not events:
        frame.note("Nothing has happened yet.")
        return
    safe.html('<table class="w-table">{rows}</table>', rows=joined(map(_line, gathered(events))))


def _line(same: Sequence[Event]) -> Markup:
    newest = same[0]
    more = (
        markup(' <span class="w-note">and {more}</span>', more=words.plural(len(same) - 1, "other"))
        if len(same) > 1
        else Markup()
    )
    return markup(
        '<tr><td class="num" title="{at}">{when}</td><td>{sentence}{more}</td></tr>',
        at=newest.at,
        when=when(newest.at),
        sentence=sentence(newest),
        more=more,
    )
