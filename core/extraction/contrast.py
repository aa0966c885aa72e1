"""Stage 2: the rollouts of one group against each other (DESIGN 2.4).

1. Each rollout has a semantic advantage afterwards (`core.extraction.semantic`).
2. At most `MAX_OPERATIONS` operations; what is more, and what does not fit, is quarantined with its reason. One
   bad operation takes no sibling along.
3. An operation may name only live experiences that the model was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from core.errors import AnswerError, InputError
from core.experience import KINDS, Evidence, Experience, Quarantined, text_of
from core.extraction import replies
from core.extraction.asking import ask
from core.extraction.contrast_prompt import MAX_OPERATIONS, ContrastPrompt
from core.extraction.draft import Draft
from core.extraction.operations import Known, read_operation
from core.extraction.relevant import Nearest, relevant
from core.extraction.semantic import SemanticAdvantage, measured, read_advantages
from core.extraction.summarise import Summary, Unsummarised, verdict_of
from core.ports import ChatModel, Completion
from core.record import Record, canonical_json
from core.rollout import Group, Task
from core.words import normalise

__all__ = ["MAX_OPERATIONS", "Contrast", "Nearest", "SemanticAdvantage", "contrast", "evidence_of"]

REPLY_TOKENS = 3_000

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


class Contrast(Record):
    """What one group taught."""

    group_id: str
    advantages: tuple[SemanticAdvantage, ...] = ()
    """S_i of every rollout, in their order."""
    drafts: tuple[Draft, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""
    """Why the group could not be contrasted; "" when it was."""
    operations_in: int = 0
    """Operations that the reply held, counted before any was read; an unreadable reply counts as one."""
    raw_reply: str = ""
    """The reply as it came."""


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
        ModelUnavailableError, BudgetError, InputError, StoppedError: see `asking.ask`.
    """
    usable = [s for s in summaries if isinstance(s, Summary)]
    gone = {s.rollout_id: s.reason for s in summaries if isinstance(s, Unsummarised)}
    notes = [
        f"Group {group.id}: rollout {i} has no summary and took no part: {reason}"
        for i, reason in gone.items()
    ]
    if len({s.verdict for s in usable}) < 2:
        why = next(iter(gone.values()), "all did equally well")
        error = f"{len(usable)} of {len(summaries)} rollouts have a summary, no two differ in outcome: {why}"
        return _failed(group, error, notes)
    candidates = relevant(task, group, library, nearest)
    prompt = cache(ContrastPrompt(task, group, usable, candidates, withhold_answer).fitted)
    answer = await ask(
        model,
        lambda room: prompt(room)[0],
        _read,
        stage="contrast",
        tokens=REPLY_TOKENS,
        schema=SCHEMA,
        seed=seed,
        calls=Counter() if calls is None else calls,
    )
    if answer.value is None:
        return _failed(group, answer.error, notes, answer.raw, replied=answer.replied)
    _, shown = prompt(answer.room)
    if left_out := sum(e.status == "live" for e in library) - len(shown):
        notes.append(f"Group {group.id}: {left_out} experiences of the library were not shown to the model.")
    unsummarised = {i: f"it has no summary: {reason}" for i, reason in gone.items()}
    found, more = read_advantages(answer.value.advantages, group, usable, unsummarised)
    known = Known(frozenset(e.id for e in shown), injected_labels(group), task.domain)
    drafts, quarantined = _drafts(answer.value.operations, known, task, group, answer.raw)
    return Contrast(
        group_id=group.id,
        advantages=tuple(found),
        drafts=tuple(drafts),
        quarantined=tuple(quarantined),
        notes=(*notes, *more),
        operations_in=len(answer.value.operations),
        raw_reply=answer.raw,
    )


def _failed(
    group: Group, error: str, notes: Sequence[str], raw: str = "", *, replied: bool = False
) -> Contrast:
    return Contrast(
        group_id=group.id,
        advantages=tuple(measured(group, f"the group could not be contrasted: {error}")),
        notes=tuple(notes),
        error=error,
        quarantined=_quarantine(group, error, raw) if replied else (),
        operations_in=int(replied),
        raw_reply=raw,
    )


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


def injected_labels(group: Group) -> dict[str, str]:
    """What each label stood for; without the labels that meant different things in different rollouts."""
    meant: dict[str, set[str]] = {}
    for rollout in group.rollouts:
        for label, experience_id in rollout.injected.items():
            meant.setdefault(label, set()).add(experience_id)
    return {label: ids.pop() for label, ids in meant.items() if len(ids) == 1}


def _drafts(
    items: Sequence[Any], known: Known, task: Task, group: Group, raw: str
) -> tuple[list[Draft], list[Quarantined]]:
    drafts: list[Draft] = []
    quarantined: list[Quarantined] = []
    for number, item in enumerate(items, start=1):
        try:
            operation, rationale = read_operation(item, known)
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
                learned_on=", ".join(sorted({r.model for r in group.rollouts if r.model})),
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
