"""Stage 2: the rollouts of one group against each other (DESIGN 2.4).

1. Each rollout with a summary gets a semantic advantage. Its verdict is the sign of the measured advantage; where
   the model said otherwise, that is kept beside it.
2. At most `MAX_OPERATIONS` operations; what is more, and what does not fit, is quarantined with its reason. One
   bad operation takes no sibling along.
3. An operation may name only live experiences that the model was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from core.errors import AnswerError, InputError
from core.experience import GENERAL, KINDS, MAX_WORDS, Evidence, Experience, Quarantined, text_of
from core.extraction import replies
from core.extraction.draft import Draft
from core.extraction.summarise import (
    Summary,
    Unsummarised,
    Verdict,
    answer_shown,
    fitted,
    outcome_shown,
    prompt_room,
    verdict_of,
)
from core.injection import estimate_tokens
from core.ports import ChatModel, Completion, Sampling
from core.record import Record, canonical_json
from core.rollout import Group, Message, Rollout, Task
from core.words import normalise

MAX_OPERATIONS = 3
"""Most operations of one group (DESIGN 2.4)."""
WHOLE_LIBRARY = 50
"""A library of at most so many experiences is shown whole (DESIGN 2.4)."""
REPLY_TOKENS = 3_000
Nearest = Callable[[str, Sequence[Experience], int], Sequence[Experience]]
"""(query, experiences, k) -> the k that matter most for the query, best first."""

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
SCHEMA = canonical_json(
    replies.schema(
        {
            "semantic_advantages": {
                "type": "array",
                "items": replies.schema(
                    {
                        "rollout": _TEXT,
                        "verdict": {"type": "string", "enum": ["better", "worse", "par"]},
                        "why": _TEXT,
                        "deciding_step": _TEXT,
                    }
                ),
            },
            "operations": {
                "type": "array",
                "maxItems": MAX_OPERATIONS,
                "items": replies.schema(
                    {
                        "op": {"type": "string", "enum": ["add", "modify", "delete", "merge"]},
                        "ids": {"type": "array", "items": _TEXT},
                        "text": _TEXT_OR_NULL,
                        "kind": {"type": "string", "enum": list(KINDS)},
                        "rationale": _TEXT,
                    }
                ),
            },
        }
    )
)


class SemanticAdvantage(Record):
    """S_i: why one rollout out- or underperformed its group (TF-GRPO, semantic group advantage)."""

    rollout_id: str
    verdict: Verdict
    """The sign of the measured advantage."""
    why: str
    deciding_step: str = ""
    """The step or decision, in the model's words."""
    step: int | None = Field(default=None, ge=1)
    """The number of the deciding step, from 1, where one was named that there is."""
    said: str = ""
    """The model's own verdict; another one than `verdict` means that it misread the attempt."""

    @property
    def agrees(self) -> bool:
        """Whether the model's verdict is the measured one."""
        return self.said == self.verdict


class Contrast(Record):
    """What one group taught."""

    group_id: str
    advantages: tuple[SemanticAdvantage, ...] = ()
    drafts: tuple[Draft, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""
    """Why the group could not be contrasted; "" when it was."""
    operations_in: int = 0
    """Operations that the reply held, counted before any was read; an unreadable reply counts as one."""


class _Read(NamedTuple):
    advantages: list[Any]
    operations: list[Any]


async def contrast(
    task: Task,
    group: Group,
    summaries: Sequence[Summary | Unsummarised],
    library: Sequence[Experience],
    model: ChatModel,
    *,
    seed: int = 0,
    withhold_answer: bool = False,
    nearest: Nearest | None = None,
    calls: Counter[str] | None = None,
) -> Contrast:
    """Contrast the rollouts of one group: one call, one more where the reply could not be read.

    Args:
        task: what was tried.
        group: its rollouts, with rewards and advantages.
        summaries: of its scored rollouts; without two that differ in sign there is no call, and an error.
        library: the version that the rollouts were made with.
        model: who contrasts.
        seed: of the sampling.
        withhold_answer: keep the right answer from the model (self-contrast).
        nearest: see `relevant`.
        calls: is counted up under "contrast" and "retry".

    Raises:
        ModelUnavailableError, BudgetError, InputError: see `replies.ask`.
    """
    counter = Counter[str]() if calls is None else calls
    usable = [s for s in summaries if isinstance(s, Summary)]
    notes = [
        f"Group {group.id}: rollout {s.rollout_id} has no summary and took no part: {s.reason}"
        for s in summaries
        if isinstance(s, Unsummarised)
    ]
    if len({s.verdict for s in usable}) < 2:
        why = next((s.reason for s in summaries if isinstance(s, Unsummarised)), "all did equally well")
        error = f"{len(usable)} of {len(summaries)} rollouts have a summary, no two differ in outcome: {why}"
        return Contrast(group_id=group.id, notes=tuple(notes), error=error)
    shown, messages = _prompt(
        task, group, usable, relevant(task, group, library, nearest), model, withhold_answer
    )
    if left_out := sum(e.status == "live" for e in library) - len(shown):
        notes.append(f"Group {group.id}: {left_out} experiences of the library were not shown to the model.")
    sampling = Sampling(
        temperature=0.0,
        top_p=1.0,
        max_tokens=replies.reply_tokens(model.context_length, REPLY_TOKENS),
        seed=seed,
        json_schema=SCHEMA,
    )
    answer = await replies.ask(model, messages, sampling, _read, stage="contrast", calls=counter)
    if answer.value is None:
        unread = _quarantine(group, answer.error, answer.raw) if answer.replied else ()
        return Contrast(
            group_id=group.id,
            notes=tuple(notes),
            error=answer.error,
            quarantined=unread,
            operations_in=int(answer.replied),
        )
    found, more = _advantages(answer.value.advantages, group, usable)
    known = replies.Known(frozenset(e.id for e in shown), injected_labels(group), task.domain)
    drafts, quarantined = _drafts(answer.value.operations, known, task, group, answer.raw)
    return Contrast(
        group_id=group.id,
        advantages=tuple(found),
        drafts=tuple(drafts),
        quarantined=tuple(quarantined),
        notes=(*notes, *more),
        operations_in=len(answer.value.operations),
    )


# ---- the prompt -----------------------------------------------------------------------------------------


def relevant(
    task: Task, group: Group, library: Sequence[Experience], nearest: Nearest | None = None
) -> list[Experience]:
    """The live experiences to show: all of a small library, else at most `WHOLE_LIBRARY` of it.

    First those that the rollouts were given (retrieval chose them for this task), then those of the task's domain
    and the general ones, then the rest, each part in the order of `nearest`.

    Args:
        task: its question is the query, with the errors that the attempts met (DESIGN 2.7).
        group: the attempts.
        library: to choose from.
        nearest: None compares words (`by_words`).
    """
    live = [e for e in library if e.status == "live"]
    if len(live) <= WHOLE_LIBRARY:
        return live
    errors = dict.fromkeys(s.error for r in group.rollouts for s in r.trajectory.steps if s.error)
    query = "\n".join([task.question, *errors])
    injected = {i for r in group.rollouts for i in r.injected.values()}
    chosen = [e for e in live if e.id in injected][:WHOLE_LIBRARY]
    for own in (True, False):
        part = [e for e in live if e.id not in injected and (e.domain in (task.domain, GENERAL)) is own]
        if part and (room := WHOLE_LIBRARY - len(chosen)):
            chosen += list((nearest or by_words)(query, part, room))[:room]
    return chosen


def by_words(query: str, experiences: Sequence[Experience], k: int) -> list[Experience]:
    """A `Nearest` without a model: by the share of an experience's words that the query holds, then by confidence."""
    asked = words_of(query)

    def order(e: Experience) -> tuple[float, float, str]:
        own = words_of(e.text)
        return -len(own & asked) / max(1, len(own)), -e.confidence, e.id

    return sorted(experiences, key=order)[:k]


def injected_labels(group: Group) -> dict[str, str]:
    """What each label stood for; without the labels that meant different things in different rollouts."""
    meant: dict[str, set[str]] = {}
    for rollout in group.rollouts:
        for label, experience_id in rollout.injected.items():
            meant.setdefault(label, set()).add(experience_id)
    return {label: ids.pop() for label, ids in meant.items() if len(ids) == 1}


def _prompt(
    task: Task,
    group: Group,
    summaries: Sequence[Summary],
    candidates: Sequence[Experience],
    model: ChatModel,
    withhold_answer: bool,
) -> tuple[list[Experience], list[Message]]:
    rollouts = {r.id: r for r in group.rollouts}
    attempts = "\n\n".join(
        _attempt(i, s, rollouts[s.rollout_id], withhold_answer) for i, s in enumerate(summaries, start=1)
    )

    def filled(question: str, experiences: Sequence[Experience]) -> list[Message]:
        return replies.prompt(
            "contrast",
            max_operations=str(MAX_OPERATIONS),
            max_words=str(MAX_WORDS),
            domain=replies.fence(task.domain),
            question=replies.fence(question),
            answer=answer_shown(task, withhold_answer),
            library=_library_shown(experiences),
            attempts=attempts,
            labels=", ".join(f"R{i}" for i in range(1, len(summaries) + 1)),
        )

    room = prompt_room(model, REPLY_TOKENS)
    question = fitted(task.question, room // 4)
    left = room - sum(estimate_tokens(m.content) for m in filled(question, ()))
    shown: list[Experience] = []
    for experience in candidates:
        left -= estimate_tokens(_line(experience)) + 1
        if left < 0:
            break
        shown.append(experience)
    return shown, filled(question, shown)


def words_of(text: str) -> set[str]:
    """The words of a text, without case and punctuation."""
    return {w.strip(".,;:!?\"'`()") for w in normalise(text).split()} - {""}


def _line(experience: Experience) -> str:
    return f"[{experience.id}] ({experience.kind}, confidence {experience.confidence:.2f}) {experience.text}"


def _library_shown(experiences: Sequence[Experience]) -> str:
    return (
        replies.fence("\n".join(map(_line, experiences))) if experiences else "(empty: only add is possible)"
    )


def _attempt(number: int, summary: Summary, rollout: Rollout, withhold_answer: bool) -> str:
    lines = [summary.text]
    lines += [f"Key decision: {summary.key_decision}"] if summary.key_decision else []
    lines += [f"Root cause: {summary.root_cause}"] if summary.root_cause else []
    lines += [f"Lessons followed: {', '.join(summary.used)}"] if summary.used else []
    lines += [f"Lessons not followed: {', '.join(summary.ignored)}"] if summary.ignored else []
    outcome = outcome_shown(rollout, withhold_answer)
    return f"R{number}: {outcome}\nIts summary:\n" + replies.fence("\n".join(lines))


# ---- the reply ------------------------------------------------------------------------------------------


def _read(reply: Completion) -> tuple[_Read, str]:
    value = replies.read_json(reply, ("semantic_advantages", "operations"))
    if isinstance(value, list):
        return _sorted_out(value, reply), ""
    entry = replies.lowered(value)
    if {"op", "operation"} & set(entry):  # one operation, without anything around it
        return _Read([], [value]), ""
    if not {"semantic_advantages", "operations"} & set(entry):
        raise AnswerError('the object holds neither "semantic_advantages" nor "operations"', reply.text)
    said = entry.get("semantic_advantages")
    if isinstance(said, Mapping) and "rollout" not in replies.lowered(said):  # {"R1": {...}, "R2": {...}}
        said = [
            {"rollout": k, **v} if isinstance(v, Mapping) else {"rollout": k, "why": v}
            for k, v in said.items()
        ]
    return _Read(replies.listed(said), replies.listed(entry.get("operations"))), ""


def _sorted_out(items: Sequence[Any], reply: Completion) -> _Read:
    """A bare list: what names a rollout is a semantic advantage, everything else stands for an operation."""
    if items and not any(isinstance(i, Mapping) for i in items):
        raise AnswerError("the list holds no objects", reply.text)
    read = _Read([], [])
    for item in items:
        about = isinstance(item, Mapping) and "rollout" in replies.lowered(item)
        (read.advantages if about else read.operations).append(item)
    return read


_VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("better", "above", "good", "outperformed", "+"), "better"),
    **dict.fromkeys(("worse", "below", "bad", "underperformed", "-"), "worse"),
    **dict.fromkeys(("par", "equal", "same", "neutral", "average", "0"), "par"),
}


def _advantages(
    items: Sequence[Any], group: Group, summaries: Sequence[Summary]
) -> tuple[list[SemanticAdvantage], list[str]]:
    rollouts = {r.id: r for r in group.rollouts}
    named: dict[str, str] = {}
    for i, s in enumerate(summaries, start=1):
        named |= {f"R{i}": s.rollout_id, str(i): s.rollout_id, s.rollout_id.upper(): s.rollout_id}
    found: dict[str, SemanticAdvantage] = {}
    for item in items:
        entry = replies.lowered(item) if isinstance(item, Mapping) else {}
        label = next(iter(replies.labels_in(replies.first_of(entry, "rollout", "id", "label"))), "")
        rollout_id = named.get(label.upper())
        if rollout_id is not None and rollout_id not in found:
            found[rollout_id] = _advantage(entry, rollouts[rollout_id])
    missing = [s.rollout_id for s in summaries if s.rollout_id not in found]
    notes = [f"Group {group.id}: the model gave no semantic advantage for {m}." for m in missing]
    notes += [
        f"Group {group.id}: the model called {a.rollout_id} {a.said!r}, but it was measured as {a.verdict}."
        for a in found.values()
        if a.said and not a.agrees
    ]
    return [found[s.rollout_id] for s in summaries if s.rollout_id in found], notes


def _advantage(entry: Mapping[str, Any], rollout: Rollout) -> SemanticAdvantage:
    deciding = replies.plain(replies.first_of(entry, "deciding_step", "step"))
    said = replies.plain(entry.get("verdict")).casefold()
    digits = re.search(r"\d{1,6}", deciding)
    number = int(digits[0]) if digits else 0
    return SemanticAdvantage(
        rollout_id=rollout.id,
        verdict=verdict_of(rollout),
        why=replies.plain(replies.first_of(entry, "why", "reason", "explanation")),
        deciding_step=deciding,
        step=number if 1 <= number <= len(rollout.trajectory.steps) else None,
        said=_VERDICTS.get(said, said[:40]),
    )


def _drafts(
    items: Sequence[Any], known: replies.Known, task: Task, group: Group, raw: str
) -> tuple[list[Draft], list[Quarantined]]:
    drafts: list[Draft] = []
    quarantined: list[Quarantined] = []
    for number, item in enumerate(items, start=1):
        try:
            operation, rationale = replies.read_operation(item, known)
            if len(drafts) == MAX_OPERATIONS:
                raise InputError(f"the group had its {MAX_OPERATIONS} operations already")
        except InputError as e:
            quarantined += _quarantine(group, f"operation {number}: {e}", raw)
            continue
        remark = _leak(text_of(operation) or "", task)
        drafts.append(
            Draft(
                operation=operation,
                evidence=evidence_of(group),
                rationale=" ".join(filter(None, (rationale, remark))),
                learned_on=next((r.model for r in group.rollouts if r.model), ""),
                extractor="llm",
                raw_reply=raw,
                group_ids=(group.id,),
            )
        )
    return drafts, quarantined


def evidence_of(group: Group) -> Evidence:
    """Which rollouts stand behind what the group taught: the best first, the worst next; nothing is counted."""
    scored = [r for r in group.rollouts if r.advantage is not None]
    winners = sorted((r for r in scored if verdict_of(r) == "better"), key=lambda r: -(r.advantage or 0))
    losers = sorted((r for r in scored if verdict_of(r) == "worse"), key=lambda r: r.advantage or 0)
    return Evidence(
        group_ids=(group.id,),
        rollout_ids=tuple(r.id for r in (*winners, *losers)),
        sentence=f"{len(winners)} rollouts above the mean of their group, {len(losers)} below",
    )


def _leak(text: str, task: Task) -> str:
    """A warning where a lesson quotes the answer of the task that it was learned from."""
    answer = normalise(task.answer or "")
    if len(answer) < 3 or not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", normalise(text)):
        return ""
    return f"(Check: it holds the answer of its own task, {task.answer!r}.)"


def _quarantine(group: Group, reason: str, raw: str) -> tuple[Quarantined, ...]:
    return (Quarantined(reason=reason, raw=raw, run_id=group.run_id, group_ids=(group.id,)),)
