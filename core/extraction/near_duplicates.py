"""Drafts of a batch that may say the same, or what a live experience nearly says: one call decides (DESIGN 2.6).

What the reply does not name stays as it was; what it drops is superseded, never gone. Similarity only decides what the
model is asked about. Texts that are surely opposite are not united, whatever the reply says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.experience import MAX_WORDS, Add, Experience, targets_of
from core.extraction import replies
from core.extraction.actions import Actions, read_actions
from core.extraction.asking import ask
from core.extraction.fitting import prompt_room, tokens_of
from core.extraction.reconcile import Table, groups_of
from core.extraction.template import fence, prompt
from core.extraction.wording import opposed
from core.injection import estimate_tokens
from core.ports import ChatModel
from core.record import canonical_json
from core.rollout import Message

Near = Callable[[Sequence[str], Sequence[str]], tuple[Sequence[Sequence[int]], str]]
"""(texts, others) -> for each text the places of those of the others that may say the same; and what is to be noted of
how they were compared. Is called in a thread of its own: it may compute, or ask another model."""

REPLY_TOKENS = 3_000

_TEXT_OR_NULL = {"type": ["string", "null"]}
SCHEMA = canonical_json(
    replies.schema(
        {
            "actions": {
                "type": "array",
                "items": replies.schema(
                    {
                        "action": {"type": "string", "enum": ["merge", "drop", "modify"]},
                        "drafts": {"type": "array", "items": {"type": "string"}},
                        "keep": _TEXT_OR_NULL,
                        "text": _TEXT_OR_NULL,
                        "reason": {"type": "string"},
                    }
                ),
            }
        }
    )
)


async def merge_near_duplicates(
    table: Table, model: ChatModel, seed: int, run_id: str | None, near: Near
) -> None:
    """Ask once about all near-duplicates, not at all where there are none, and carry out what is said.

    Raises:
        ModelUnavailableError, BudgetError, InputError, StoppedError: see `asking.ask`.
    """
    asked = _Prompt(table, await asyncio.to_thread(_clusters, table, near))
    total = sum(len(c.places) for c in asked.clusters)
    if total and len(asked.shown(prompt_room(model, REPLY_TOKENS)).labels) < min(2, total):
        table.notes.append(f"{total} near-duplicates did not fit the model's context.")
    elif total:
        await _ask(asked, total, table, model, seed, run_id)


async def _ask(
    asked: _Prompt, total: int, table: Table, model: ChatModel, seed: int, run_id: str | None
) -> None:
    answer = await ask(
        model,
        asked.made,
        read_actions,
        stage="consolidate",
        tokens=REPLY_TOKENS,
        schema=SCHEMA,
        seed=seed,
        calls=table.calls,
    )
    shown = asked.shown(answer.room)
    if left_out := total - len(shown.labels):
        table.notes.append(f"{left_out} near-duplicates did not fit the model's context.")
    table.raw_reply = answer.raw
    if answer.value is None:
        table.notes.append(f"The consolidation call failed, the drafts are left as they were: {answer.error}")
        if answer.replied:
            table.refuse(f"the consolidation reply could not be read: {answer.error}", answer.raw, run_id)
        return
    Actions(table, shown.labels, shown.live, answer.raw, run_id).carry_out(answer.value)


class _Cluster(NamedTuple):
    """Drafts that are alike, directly or through others, and the live experiences that an add of them is like."""

    places: tuple[int, ...]
    live: tuple[str, ...]


def _clusters(table: Table, near: Near) -> list[_Cluster]:
    """Near-duplicates within a domain, in the order of their first draft."""
    by_domain: dict[str, list[int]] = {}
    for i, draft in enumerate(table.drafts):
        if draft.text is not None:
            by_domain.setdefault(table.domain(draft), []).append(i)
    changed = {t for d in table.drafts for t in targets_of(d.operation)}
    found: list[_Cluster] = []
    for domain, places in by_domain.items():
        texts = [table.drafts[i].text or "" for i in places]
        adds = [i for i, place in enumerate(places) if isinstance(table.drafts[place].operation, Add)]
        live = [e for e in table.live.values() if e.domain == domain and e.id not in changed]
        near_to = _near_live([texts[i] for i in adds], live, near, table)
        for cluster in _linked(_said(near(texts, texts), table)):
            there = dict.fromkeys(e for i in cluster if i in adds for e in near_to[adds.index(i)])
            if len(cluster) + len(there) > 1:
                found.append(_Cluster(tuple(places[i] for i in cluster), tuple(there)))
    return sorted(found)


def _near_live(texts: Sequence[str], live: Sequence[Experience], near: Near, table: Table) -> list[list[str]]:
    """Ids of the live experiences that may say what each text says, and not its opposite."""
    found = _said(near(texts, [e.text for e in live]), table)
    return [
        [live[j].id for j in sorted(own) if not opposed(text, live[j].text)]
        for text, own in zip(texts, found, strict=True)
    ]


def _said(compared: tuple[Sequence[Sequence[int]], str], table: Table) -> Sequence[Sequence[int]]:
    found, note = compared
    if note and note not in table.notes:
        table.notes.append(note)
    return found


def _linked(near: Sequence[Sequence[int]]) -> list[list[int]]:
    """Places in parts, each holding what is near directly or through others; `near` of each place."""
    parts: list[list[int]] = []
    for i, own in enumerate(near):
        mine = [p for p in parts if any(j in own or i in near[j] for j in p)]
        parts = [p for p in parts if p not in mine]
        parts.append(sorted([*(j for part in mine for j in part), i]))
    return parts


def pairwise(alike: Callable[[str, str], bool]) -> Near:
    """A `Near` that looks at one pair of texts after the other."""

    def near(texts: Sequence[str], others: Sequence[str]) -> tuple[list[list[int]], str]:
        found: list[list[int]] = [[] for _ in texts]
        # The others outside: what `alike` remembers of a text serves all texts, and a library is long.
        for j, other in enumerate(others):
            for i, text in enumerate(texts):
                if alike(text, other):
                    found[i].append(j)
        return found, ""

    return near


# ---- the prompt -----------------------------------------------------------------------------------------


class _Shown(NamedTuple):
    labels: dict[str, int]
    """Place of each draft by its label."""
    live: dict[str, Experience]


class _Prompt(NamedTuple):
    table: Table
    clusters: Sequence[_Cluster]

    def made(self, room: int) -> list[Message]:
        return self._filled(self.shown(room))

    def shown(self, room: int) -> _Shown:
        """What fits, near-duplicates side by side: one alone tells nothing."""
        shown = _Shown({}, {})
        left = room - tokens_of(self._filled(shown))
        for what in self._things():
            label = f"D{len(shown.labels) + 1}"
            line = _live_line(self.table.live[what]) if isinstance(what, str) else self._line(label, what)
            left -= estimate_tokens(line) + 8  # its label stands at the end of the prompt, too
            if left < 0:
                break
            if isinstance(what, str):
                shown.live[what] = self.table.live[what]
            else:
                shown.labels[label] = what
        return shown

    def _things(self) -> Iterator[int | str]:
        for cluster in self.clusters:
            yield from cluster.places
            yield from cluster.live

    def _filled(self, shown: _Shown) -> list[Message]:
        lines = [self._line(label, place) for label, place in shown.labels.items()]
        return prompt(
            "consolidate",
            max_words=str(MAX_WORDS),
            drafts=fence("\n".join(lines)),
            library=fence("\n".join(map(_live_line, shown.live.values())))
            if shown.live
            else "(none is near)",
            labels=", ".join(shown.labels),
        )

    def _line(self, label: str, place: int) -> str:
        draft = self.table.drafts[place]
        what = " ".join([draft.operation.op, *targets_of(draft.operation)])
        groups = len(groups_of(draft))
        return f"[{label}] ({what}, domain {self.table.domain(draft)}, from {groups} groups) {draft.text}"


def _live_line(experience: Experience) -> str:
    return f"[{experience.id}] ({experience.kind}, domain {experience.domain}) {experience.text}"
