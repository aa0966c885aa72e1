"""All that is known of one experience: its origin, what it earned, where it is, and what is proposed about it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from core.credit import Credit, credited
from core.experience import PENDING, Experience, Proposal
from core.record import Record
from core.store import Store
from core.workspace.provenance import Provenance, provenance


class Brought(Record):
    """A library that it was imported from, or that said the same."""

    into: str
    """Its proposal, or its own id where it was there already."""
    joined: bool
    """Whether it was there already."""
    source: str
    """Name of the file."""
    form: str
    sha256: str
    name: str
    """What the library calls itself."""
    version: int | None
    their_id: str
    place: str
    claimed: dict[str, JsonValue]
    """Confidence, uses, wins, model and heading, as the file says; nothing of it was taken over but the model."""
    actor: str
    imported_at: str


class Earning(Record):
    """What one group, or one entry of a usage log, says of it."""

    source: str
    followers: int
    """Rollouts that followed it, and..."""
    others: int
    """... rollouts that did not: the size of the contrast."""
    better: bool | None
    in_sample: bool
    """Whether the task is one that it was learned from: that proves nothing."""
    folded_in: int | None
    """The version that counts it; None = pending."""


class Earned(Record):
    """All its contrasts together."""

    uses: int = 0
    wins: int = 0
    """Uses whose followers earned more than their siblings."""
    losses: int = 0
    undecided: int = 0
    """Uses that had nothing to be compared with, or equal means."""
    followers: int = 0
    others: int = 0
    """Rollouts on both sides, over all uses."""
    in_sample: int = 0
    """Uses on tasks that it was learned from."""
    pending: int = 0
    """Uses that no version counts yet."""

    @classmethod
    def of(cls, earnings: Sequence[Earning]) -> Earned:
        used = [e for e in earnings if e.followers]
        return cls(
            uses=len(used),
            wins=sum(e.better is True for e in used),
            losses=sum(e.better is False for e in used),
            undecided=sum(e.better is None for e in used),
            followers=sum(e.followers for e in used),
            others=sum(e.others for e in used),
            in_sample=sum(e.in_sample for e in used),
            pending=sum(e.folded_in is None for e in used),
        )


class Span(Record):
    """It is live from one version up to before another."""

    from_version: int
    to_version: int | None = None
    """None: until now."""
    labels: tuple[str, ...] = ()
    """Labels that point at one of these versions, each as `production (3)`."""


class Dossier(Provenance):
    """An experience with all that is known of it."""

    pending: Experience
    """As it will be with all that it earned, when the next version is made."""
    earned: Earned
    earnings: tuple[Earning, ...]
    """In the order of their sources; a lesson that was merged into it brings its uses, not its contrasts."""
    in_sample_tasks: tuple[str, ...]
    """Tasks that it was learned from, and those of the same text: what is measured on them is in-sample."""
    live_in: tuple[Span, ...]
    """The oldest first; empty where it never was."""
    waiting: tuple[Proposal, ...]
    """What would change it and is not published: open, or approved."""
    imported: tuple[Brought, ...]
    """The first import first; empty where it was made here."""


def dossier(store: Store, experience_id: str, *, trajectories: bool = False) -> Dossier:
    """Look up all that is known of an experience; see `provenance`.

    Raises:
        NotFoundError: there never was such an experience.
    """
    known = provenance(store, experience_id, trajectories=trajectories)
    credits = store.credits.of(experience_id)
    earnings = tuple(_earning(credit, version) for credit, version in credits)
    head, now = store.versions.head(), known.experience
    pending = store.credits.pending(of=experience_id)
    own = [origin.proposal.id for origin in known.origins]
    return Dossier(
        **{name: getattr(known, name) for name in Provenance.model_fields},
        pending=credited(now, pending) if now.status == "live" else now,
        earned=Earned.of(earnings),
        earnings=earnings,
        in_sample_tasks=tuple(sorted(store.credits.tasks_behind(head, experience_id).get(experience_id, ()))),
        live_in=_spans(store, known),
        waiting=tuple(store.proposals.about(experience_id, PENDING)),
        imported=tuple(one for i in [*reversed(own), experience_id] for one in _brought(store, i)),
    )


def _earning(credit: Credit, version: int | None) -> Earning:
    return Earning(folded_in=version, **credit.model_dump(exclude={"experience_id"}))


def _spans(store: Store, known: Provenance) -> tuple[Span, ...]:
    """States that follow each other without a gap are one span."""
    spans: list[tuple[int, int | None]] = []
    for said in known.history:
        if said.state.status != "live":
            continue
        if spans and spans[-1][1] == said.from_version:
            spans[-1] = (spans[-1][0], said.to_version)
        else:
            spans.append((said.from_version, said.to_version))
    labels = store.labels.all()

    def pointing(start: int, end: int | None) -> tuple[str, ...]:
        there = [x for x in labels if start <= x.version and (end is None or x.version < end)]
        return tuple(f"{x.name} ({x.version})" for x in there)

    return tuple(Span(from_version=a, to_version=b, labels=pointing(a, b)) for a, b in spans)


def _brought(store: Store, became: str) -> list[Brought]:
    return [
        Brought(
            into=lesson.became,
            **made.model_dump(exclude={"key"}),
            **lesson.model_dump(include={"joined", "their_id", "place", "claimed"}),
        )
        for made, lesson in store.imports.origin(became)
    ]
