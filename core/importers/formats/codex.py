"""Sessions of Codex: `sessions/<year>/<month>/<day>/rollout-*.jsonl`, with or without `payload` around the items.

1. A session is one attempt; its task is the first message of a person. It has no reward: a side file names it by its
   session id (`own_id`).
2. Calls and messages are the `response_item`s; an `event_msg` repeats them for the screen, and is read only for what
   stands nowhere else: token counts, exit codes of commands, errors, interruptions, turns taken back.
3. Token counts are running totals, written several times over: the last one is what the session took.
4. What Codex wrote as the user's or developer's message (environment, instructions, AGENTS.md) is left out.
5. The exit code stands in the first lines of a command's output, in JSON in a string, or in an event.
6. Threads of sub-agents are no attempts. A fork or a sub-agent repeats the `session_meta` of the thread it came from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark
from core.importers.dialects import conversation, text_of_content
from core.importers.getting import as_dict, as_int, as_said, as_text, at
from core.importers.json_text import parsed
from core.importers.lines import objects_of, set_aside
from core.importers.opened import Opened
from core.importers.times import span_of
from core.rollout import Trajectory, Usage

_WRITTEN_BY_CODEX = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command|skill|permissions"
    r"|collaboration_mode|subagent_notification)\b|# AGENTS\.md instructions)"
)
_HEADER = re.compile(r"(?:Exit code: |Chunk ID: |Wall time: |Command: |Process exited )")
_EXIT_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})\s*$", re.MULTILINE)

_ITEMS = {"message", "reasoning", "function_call", "function_call_output"}
_SILENT_ITEMS = {"ghost_snapshot", "compaction", "compaction_summary", "other"}


class Codex:
    """The format."""

    name = "codex"
    title = "Codex session"
    brings = Brings(reward="side file", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        records = [r for r in opened.records if isinstance(r, dict)]
        if any(r.get("type") == "session_meta" and isinstance(r.get("payload"), dict) for r in records):
            return True
        return any(r.get("record_type") == "state" or _is_bare_meta(r) for r in records) and any(
            as_text(r.get("type")) in _ITEMS for r in records
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        session: _Session | None = None
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
                continue
            record = line.value
            kind, payload = _kind_of(record)
            if not kind:
                yield set_aside(line.place, "no record of a session: it has no type", as_said(record))
            elif kind == "session_meta" and (session is None or not session.goes_on_with(payload)):
                if session is not None:
                    yield session.found()
                session = _Session(line.place, payload)
            else:
                session = session or _Session(line.place, {})
                if remark := session.take(kind, payload):
                    yield Remark(text=remark)
            if session is not None:
                session.times.append(record.get("timestamp") or payload.get("timestamp"))
        if session is None:
            yield Remark(text="A file of Codex holds no session.")
        else:
            yield session.found()


def _is_bare_meta(record: dict[str, Any]) -> bool:
    """The first line of an old session: its items stand without `payload`."""
    return (
        "type" not in record
        and {"id", "timestamp"} <= record.keys()
        and not record.keys().isdisjoint({"instructions", "git"})
    )


def _kind_of(record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type of a record and what it holds; items that stand without `payload` are response items, too."""
    kind = as_text(record.get("type"))
    if isinstance(record.get("payload"), dict):
        return kind, record["payload"]
    if _is_bare_meta(record):
        return "session_meta", record
    if "record_type" in record:
        return "state", record
    return ("response_item" if kind else ""), record


@dataclass
class _Session:
    """Takes the records of one session."""

    place: str
    meta: dict[str, Any]
    items: list[dict[str, Any]] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    models: Counter[str] = field(default_factory=Counter)
    cwd: str = ""
    prompts: list[int] = field(default_factory=list)
    """Places of the user's messages in `items`."""
    prompt: str = ""
    shown: str = ""
    """The first message of the user as an event tells it."""
    totals: list[tuple[int, int]] = field(default_factory=list)
    """Different running totals: tokens of prompts, tokens of replies."""
    codes: dict[str, int] = field(default_factory=dict)
    """Call id -> exit code, as events tell it."""
    reason: str | None = None
    error: str | None = None
    compactions: int = 0
    taken_back: int = 0

    def goes_on_with(self, meta: dict[str, Any]) -> bool:
        """Whether a further `session_meta` belongs to this session: the same once more, or where it came from."""
        own = as_text(self.meta.get("id"))
        return own == as_text(meta.get("id")) or bool(self.meta.get("forked_from_id")) or self._is_sub_agent()

    def _is_sub_agent(self) -> bool:
        source = self.meta.get("source")
        return self.meta.get("thread_source") == "subagent" or (
            isinstance(source, dict) and "subagent" in source
        )

    def take(self, kind: str, payload: dict[str, Any]) -> str:
        """Take a record; what is returned is a remark, "" for none."""
        if kind == "response_item":
            return self._item(payload)
        if kind == "event_msg":
            self._event(payload)
        elif kind == "turn_context":
            self.cwd = self.cwd or as_text(payload.get("cwd"))
            if model := as_text(payload.get("model")):
                self.models[model] += 1
        elif kind == "compacted":
            self.compactions += 1
        elif kind not in ("state", "session_meta"):
            return f"Records of type {kind[:40]!r} are not known and were left out."
        return ""

    def _item(self, item: dict[str, Any]) -> str:
        kind = as_text(item.get("type"))
        if kind in _SILENT_ITEMS:
            return ""
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self.items.append(item)
        elif kind.endswith("_call"):
            self.items.append(_call_of(kind, item))
            self.error = self.reason = None
        elif kind.endswith("_output"):
            self.items.append(_result_of(item, self.codes))
        else:
            return f"Items of type {kind[:40]!r} are not known and were left out."
        return ""

    def _message(self, item: dict[str, Any]) -> None:
        role = as_text(item.get("role"))
        words = text_of_content(item.get("content"))
        if role in ("system", "developer") or not words.strip() or _WRITTEN_BY_CODEX.match(words):
            return
        if role == "user":
            self.prompts.append(len(self.items))
            self.prompt = self.prompt or words
        self.items.append(item)
        self.error = self.reason = None

    def _event(self, event: dict[str, Any]) -> None:
        kind = as_text(event.get("type"))
        if kind == "token_count":
            total = as_dict(at(event, "info", "total_token_usage"))
            tokens = (_tokens(total.get("input_tokens")), _tokens(total.get("output_tokens")))
            if any(tokens) and (not self.totals or self.totals[-1] != tokens):
                self.totals.append(tokens)
        elif kind == "exec_command_end" and (code := as_int(event.get("exit_code"))) is not None:
            self.codes[as_text(event.get("call_id"))] = code
        elif kind == "user_message":
            self.shown = self.shown or as_text(event.get("message")).strip()
        elif kind == "error":
            self.error = as_text(event.get("message"))[:500] or "Codex broke off with an error"
        elif kind == "turn_aborted":
            self.reason = as_text(event.get("reason")) or "interrupted"
        elif kind == "thread_rolled_back":
            self._take_back(as_int(event.get("num_turns")) or 0)

    def _take_back(self, turns: int) -> None:
        turns = min(turns, len(self.prompts))
        if turns > 0:
            del self.items[self.prompts[-turns] :]
            del self.prompts[-turns:]
            self.taken_back += turns

    def found(self) -> Attempt | Remark:
        if self.items or self.shown:
            return self._attempt()
        return Remark(text="A session in which nobody said anything was left out.")

    def _attempt(self) -> Attempt:
        told = conversation(self.items)
        own = as_text(self.meta.get("id"))
        cwd = as_text(self.meta.get("cwd")) or self.cwd
        seconds, begun = span_of(self.times)
        prompt, completion = self.totals[-1] if self.totals else (0, 0)
        facts: dict[str, JsonValue] = {
            "session_id": own,
            "cwd": cwd,
            "git_branch": as_text(at(self.meta, "git", "branch")),
            "git_commit": as_text(at(self.meta, "git", "commit_hash")),
            "version": as_text(self.meta.get("cli_version")),
            "started_at": begun,
            "compactions": self.compactions,
            "turns_taken_back": self.taken_back,
            "models": ", ".join(sorted(self.models)) if len(self.models) > 1 else "",
        }
        return Attempt(
            place=self.place,
            namespace=PurePath(cwd.replace("\\", "/")).name,
            question=self.prompt or self.shown or f"Codex session {own} (its prompt was not recorded)",
            model=self.models.most_common(1)[0][0] if self.models else as_text(self.meta.get("model")),
            agent="codex",
            own_id=own or None,
            trajectory=Trajectory(
                messages=told.messages, steps=told.steps, answer=told.answer, finish_reason=self.reason
            ),
            ends=not self._is_sub_agent(),
            error=self.error,
            usage=Usage(calls=len(self.totals), prompt_tokens=prompt, completion_tokens=completion),
            duration_s=seconds,
            orphans=told.orphans,
            metadata={k: v for k, v in facts.items() if v},
        )


def _tokens(value: Any) -> int:
    return max(0, as_int(value) or 0)


def _call_of(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """A call as an item that names its tool; calls of a server's own tools are named after their type."""
    if item.get("name"):
        return item
    tool = kind.removesuffix("_call")
    return {
        "type": "function_call",
        "name": tool,
        "call_id": item.get("call_id") or item.get("id"),
        "arguments": item.get("action") if item.get("action") is not None else item.get("arguments"),
    }


def _result_of(item: dict[str, Any], codes: dict[str, int]) -> dict[str, Any]:
    """A result with its output as text and its exit code beside it."""
    output = item.get("output")
    result = {
        "type": "function_call_output",
        "call_id": item.get("call_id") or item.get("id"),
        "output": output,
    }
    if isinstance(output, dict) and "content" in output:
        result["output"] = output["content"]
        if isinstance(output.get("success"), bool):
            result["is_error"] = not output["success"]
    elif isinstance(output, str) and output.lstrip().startswith('{"output"'):
        held = _object_in(output)
        result["output"] = held.get("output", output)
        result["exit_code"] = at(held, "metadata", "exit_code")
    if isinstance(result["output"], str) and _HEADER.match(result["output"]):
        head = result["output"].split("\nOutput:", 1)[0]
        if code := _EXIT_CODE.search(head):
            result["exit_code"] = int(code[1])
    if result.get("exit_code") is None:
        result["exit_code"] = codes.get(as_text(item.get("call_id")))
    return result


def _object_in(text: str) -> dict[str, Any]:
    try:
        return as_dict(parsed(text))
    except (ValueError, RecursionError):
        return {}
