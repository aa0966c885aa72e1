"""Sessions of OpenClaw and of the pi agent under it: JSONL of entries that form a tree.

1. A session is one attempt; its task is the first message of a person. It has no reward: a side file names it by its
   session id (`own_id`).
2. Every entry names the one before it. Where an entry goes on from an older one, what followed that was taken back:
   it is left out, but what it took counts.
3. `isError` says false also of commands that failed: an exit code or status in `details` is believed before it.
4. The usage of each reply of the model counts once; a reply that only mirrors what was sent is no reply of the model.
5. A last reply with the stop reason "error" is an infrastructure error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Remark,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.dialects import conversation, text_of_content
from core.importers.getting import as_dict, as_int, as_number, as_said, as_text, at
from core.importers.lines import objects_of, set_aside
from core.importers.opened import Opened
from core.importers.times import span_of
from core.rollout import Usage

_ROLES = {"user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary"}
_SILENT = {
    "branch_summary",
    "compaction",
    "custom",
    "custom_message",
    "label",
    "model_change",
    "session_info",
    "thinking_level_change",
}
_REASONS = {"toolUse": "interrupted", "aborted": "interrupted"}
_SUB_AGENTS = "subagent-artifacts"
"""Folder in which pi keeps what sub-agents did."""


class OpenClaw:
    """The format."""

    name = "openclaw"
    title = "OpenClaw or pi session"
    brings = Brings(reward="side file", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_head(r) or _is_message(r) for r in opened.records if isinstance(r, dict))

    def read(self, opened: Opened) -> Iterator[Found]:
        is_agent = opened.path.parent.name == _SUB_AGENTS
        session: _Session | None = None
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
                continue
            kind = as_text(line.value.get("type"))
            if not kind:
                yield set_aside(line.place, "no entry of a session: it has no type", as_said(line.value))
            elif kind == "session":
                if session is not None:
                    yield session.found(ends=not is_agent)
                session = _Session(line.place, line.value)
            elif kind == "message" or kind in _SILENT:
                session = session or _Session(line.place, {})
                session.take(kind, line.value)
            else:
                yield Remark(text=f"Entries of type {kind[:40]!r} are not known and were left out.")
        if session is None:
            yield Remark(text="A file of OpenClaw holds no session.")
        else:
            yield session.found(ends=not is_agent)


def _is_head(record: dict[str, Any]) -> bool:
    return record.get("type") == "session" and isinstance(record.get("id"), str) and "timestamp" in record


def _is_message(record: dict[str, Any]) -> bool:
    """An entry that holds a message: the head of a session may be damaged."""
    return (
        record.get("type") == "message"
        and as_text(at(record, "message", "role")) in _ROLES
        and "timestamp" in record
    )


def _begins_anew(entry: dict[str, Any]) -> bool:
    """Whether a person took back even the first message; other entries without one before them are damaged."""
    before = entry.get("parentId", "")
    return before is None and bool(entry.get("id")) and at(entry, "message", "role") == "user"


@dataclass
class _Session:
    """Takes the entries of one session."""

    place: str
    head: dict[str, Any]
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    """Ids of the entries from the first to the newest one."""
    compactions: int = 0
    taken_back: int = 0

    def take(self, kind: str, entry: dict[str, Any]) -> None:
        own = as_text(entry.get("id")) or f"#{len(self.entries)}"
        before = as_text(entry.get("parentId"))
        self.compactions += kind == "compaction"
        if own in self.entries:
            return  # the same entry once more
        if before and self.path and before != self.path[-1] and before in self.entries:
            self._go_back(before)
        elif _begins_anew(entry):
            self._leave(set(self.path), [])
        self.entries[own] = entry
        self.path.append(own)

    def _go_back(self, before: str) -> None:
        """Go on from an older entry, on this branch or on one that was left."""
        kept: list[str] = []
        while before in self.entries and before not in kept:
            kept.append(before)
            before = as_text(self.entries[before].get("parentId"))
        gone = set(self.path) - set(kept)
        if before in gone or not set(self.path) & set(kept):
            return  # the line between them is damaged
        self._leave(gone, kept[::-1])

    def _leave(self, gone: set[str], path: list[str]) -> None:
        self.taken_back += sum(at(self.entries[g], "message", "role") == "user" for g in gone)
        self.path = path

    def found(self, *, ends: bool) -> Attempt | Remark:
        turns = [t for e in self.path if (t := as_dict(self.entries[e].get("message")))]
        if turns:
            return self._attempt(turns, ends=ends)
        return Remark(text="A session in which nobody said anything was left out.")

    def _attempt(self, turns: list[dict[str, Any]], *, ends: bool) -> Attempt:
        told = conversation(item for t in turns if (item := _item_of(t)) is not None)
        replies = [t for e in self.entries.values() if _is_reply(t := as_dict(e.get("message")))]
        models = Counter(m for t in replies if (m := as_text(t.get("model"))))
        own, cwd = as_text(self.head.get("id")), as_text(self.head.get("cwd"))
        times = [self.head.get("timestamp"), *(e.get("timestamp") for e in self.entries.values())]
        seconds, begun = span_of(times)
        error, reason = _ending_of(turns)
        facts: dict[str, JsonValue] = {
            "session_id": own,
            "cwd": cwd,
            "started_at": begun,
            "compactions": self.compactions,
            "turns_taken_back": self.taken_back,
            "models": ", ".join(sorted(models)) if len(models) > 1 else "",
        }
        return new_attempt(
            place=self.place,
            namespace=PurePath(cwd.replace("\\", "/")).name,
            question=_question_of(turns) or f"OpenClaw session {own} (its prompt was not recorded)",
            model=models.most_common(1)[0][0] if models else "",
            agent="openclaw",
            own_id=own or None,
            trajectory=new_trajectory(
                messages=told.messages, steps=told.steps, answer=told.answer, finish_reason=reason
            ),
            ends=ends,
            error=error,
            usage=_usage_of(replies),
            duration_s=seconds,
            orphans=told.orphans,
            metadata={k: v for k, v in facts.items() if v},
        )


def _is_reply(message: dict[str, Any]) -> bool:
    """Whether a message is the model's own: OpenClaw mirrors what it sent under its own name."""
    return message.get("role") == "assistant" and message.get("provider") != "openclaw"


def _item_of(message: dict[str, Any]) -> dict[str, Any] | None:
    """A message as it is read; None for what was not said in the conversation."""
    role = message.get("role")
    if role == "bashExecution" and message.get("excludeFromContext") is not True:
        said = f"$ {as_text(message.get('command'))}\n{as_text(message.get('output'))}"
        return {"role": "user", "content": said}
    if role == "toolResult" and as_text(at(message, "details", "status")).lower() in ("error", "failed"):
        return {**message, "isError": True}
    return message if role in ("user", "toolResult") or _is_reply(message) else None


def _question_of(turns: list[dict[str, Any]]) -> str:
    said = (text_of_content(t.get("content")) for t in turns if t.get("role") == "user")
    return next((s for s in said if s.strip()), "")


def _ending_of(turns: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """(why it broke off, why it ended), as the last reply tells."""
    last: dict[str, Any] = next((t for t in reversed(turns) if _is_reply(t)), {})
    reason = as_text(last.get("stopReason"))
    if reason == "error":
        return as_text(last.get("errorMessage"))[:500] or "the model's last reply is an error", None
    return None, _REASONS.get(reason, reason) or None


def _usage_of(replies: list[dict[str, Any]]) -> Usage:
    uses = [as_dict(r.get("usage")) for r in replies]
    return new_usage(
        calls=len(uses),
        prompt_tokens=sum(
            max(0, as_int(u.get(k)) or 0) for u in uses for k in ("input", "cacheRead", "cacheWrite")
        ),
        completion_tokens=sum(max(0, as_int(u.get("output")) or 0) for u in uses),
        cost_usd=max(0.0, sum(as_number(at(u, "cost", "total")) or 0.0 for u in uses)),
    )
