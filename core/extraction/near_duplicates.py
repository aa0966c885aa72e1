"""Drafts of a batch that may say the same, or what a live experience nearly says: one call decides (DESIGN 2.6).

What the reply does not name stays as it was; what it drops is superseded, never gone. Similarity only decides what the
model is asked about. Texts that are surely opposite are not united, whatever the reply says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.experience import MAX_WORDS, Add, Experience, targets_of
from core.extraction import replies
from core.extraction.actions import Actions, read_actions
from core.extraction.asking import ask
from core.extraction.draft import Draft
from core.extraction.fitting import prompt_room, tokens_of
from core.extraction.reconcile import Table, groups_of
from core.extraction.template import fence, prompt
from core.extraction.wording import opposed
from core.injection import estimate_tokens
from core.ports import ChatModel
from core.record import canonical_json
from core.rollout import Message

Alike = Callable[[str, str], bool]
"""Whether two texts may say the same."""

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
    table: Table, model: ChatModel, seed: int, run_id: str | None, alike: Alike
) -> None:
    """Ask once about all near-duplicates, not at all where there are none, and carry out what is said.

    Raises:
        ModelUnavailableError, BudgetError, InputError, StoppedError: see `asking.ask`.
    """
    asked = _Prompt(table, _clusters(table, alike))
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


def _clusters(table: Table, alike: Alike) -> list[_Cluster]:
    """Near-duplicates within a domain, in the order of their first draft."""
    by_domain: dict[str, list[int]] = {}
    for i, draft in enumerate(table.drafts):
        if draft.text is not None:
            by_domain.setdefault(table.domain(draft), []).append(i)
    changed = {t for d in table.drafts for t in targets_of(d.operation)}
    free = [e for e in table.live.values() if e.id not in changed]
    found: list[_Cluster] = []
    for domain, places in by_domain.items():
        near_to: dict[int, list[str]] = {i: [] for i in places}
        # The experiences outside: what `alike` remembers of a text serves all drafts, and a library is long.
        for e in (e for e in free if e.domain == domain):
            for i in places:
                if _near(table.drafts[i], e, alike):
                    near_to[i].append(e.id)
        for cluster in _linked(places, table, alike):
            near = dict.fromkeys(experience_id for i in cluster for experience_id in near_to[i])
            if len(cluster) + len(near) > 1:
                found.append(_Cluster(tuple(cluster), tuple(near)))
    return sorted(found)


def _near(draft: Draft, experience: Experience, alike: Alike) -> bool:
    """Whether an add may say what a live experience says already, and not its opposite."""
    text = draft.text or ""
    return (
        isinstance(draft.operation, Add)
        and alike(text, experience.text)
        and not opposed(text, experience.text)
    )


def _linked(places: Sequence[int], table: Table, alike: Alike) -> list[list[int]]:
    """The places in parts, each holding what is alike directly or through others."""
    parts: list[list[int]] = []
    for i in places:
        text = table.drafts[i].text or ""
        mine = [part for part in parts if any(alike(table.drafts[j].text or "", text) for j in part)]
        parts = [part for part in parts if part not in mine]
        parts.append(sorted([*(j for part in mine for j in part), i]))
    return parts


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
