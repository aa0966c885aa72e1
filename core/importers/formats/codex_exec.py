"""What `codex exec --json` prints: events of threads, turns and items, one a line.

1. A thread is one attempt. What it was asked stands nowhere in it: the folder and the name of the file are kept in the
   metadata, so that `--task-field folder` can tell tasks apart. It has no reward: a side file names the thread.
2. An item is told when it starts, changes and ends; the last word counts. A command that never ended has no result;
   "completed" is said only of what went well.
3. The tokens at the end of a turn are those of the whole thread so far: the last ones count.
4. A turn that failed last is an infrastructure error; a single `error` is only a notice of a new try.
5. A thread that was resumed goes on, though its items are numbered from 0 again.

Source: `ThreadEvent` of openai/codex (`codex-rs/exec/src/exec_events.rs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark
from core.importers.dialects import conversation
from core.importers.getting import as_dict, as_int, as_said, as_text, at
from core.importers.lines import objects_of, set_aside
from core.importers.opened import Opened
from core.rollout import Trajectory, Usage

_ITEMS = ("item.started", "item.updated", "item.completed")
_EVENTS = {
    *("thread.started", "turn.started", "turn.completed", "turn.failed", "error", "item.plan.delta"),
    *_ITEMS,
}
_NO_STEPS = {"todo_list", "error"}


class CodexExec:
    """The format."""

    name = "codex_exec"
    title = "Codex exec events"
    brings = Brings(reward="side file", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        records = [r for r in opened.records if isinstance(r, dict)]
        return any(r.get("type") == "thread.started" and isinstance(r.get("thread_id"), str) for r in records)

    def read(self, opened: Opened) -> Iterator[Found]:
        thread: _Thread | None = None
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
                continue
            kind = as_text(line.value.get("type"))
            if not kind:
                yield set_aside(line.place, "no event: it has no type", as_said(line.value))
            elif kind not in _EVENTS:
                yield Remark(text=f"Events of type {kind[:40]!r} are not known and were left out.")
            elif kind == "thread.started":
                own = as_text(line.value.get("thread_id"))
                if thread is not None and own and own == thread.own:
                    thread.parts += 1
                    continue
                if thread is not None:
                    yield thread.attempt(opened)
                thread = _Thread(line.place, own)
            else:
                thread = thread or _Thread(line.place)
                thread.take(kind, line.value)
        if thread is None:
            yield Remark(text="A file of Codex holds no thread.")
        else:
            yield thread.attempt(opened)


@dataclass
class _Thread:
    """Takes the events of one thread."""

    place: str
    own: str = ""
    parts: int = 1
    """How often it was started or resumed."""
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last word of each item, in the order in which they started."""
    used: dict[str, Any] = field(default_factory=dict)
    turns: int = 0
    error: str | None = None

    def take(self, kind: str, event: dict[str, Any]) -> None:
        if kind in _ITEMS:
            item = as_dict(event.get("item"))
            self.items[f"{self.parts}/{as_text(item.get('id')) or len(self.items)}"] = item
        elif kind == "turn.started":
            self.turns += 1
            self.error = None
        elif kind == "turn.completed":
            self.used = as_dict(event.get("usage")) or self.used
            self.error = None
        elif kind == "turn.failed":
            self.error = as_text(at(event, "error", "message"))[:500] or "the turn failed"

    def attempt(self, opened: Opened) -> Attempt:
        told = conversation(part for item in self.items.values() for part in _parts_of(item))
        return Attempt(
            place=self.place,
            question=f"Codex thread {self.own or opened.file_name} (its prompt was not recorded)",
            agent="codex",
            own_id=self.own or None,
            trajectory=Trajectory(messages=told.messages, steps=told.steps, answer=told.answer),
            error=self.error,
            usage=Usage(
                calls=self.turns,
                prompt_tokens=max(0, as_int(self.used.get("input_tokens")) or 0),
                completion_tokens=max(0, as_int(self.used.get("output_tokens")) or 0),
            ),
            orphans=told.orphans,
            metadata={"thread_id": self.own, "folder": opened.path.parent.name, "file": opened.path.stem},
        )


def _parts_of(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An item as items of a response: a message, a thought, or a call with its result."""
    kind, own, status = (as_text(item.get(k)) for k in ("type", "id", "status"))
    if kind in ("agent_message", "plan"):
        yield {"type": "message", "role": "assistant", "content": item.get("text")}
    elif kind == "reasoning":
        yield {"type": "reasoning", "content": [{"type": "reasoning", "text": as_text(item.get("text"))}]}
    elif kind and kind not in _NO_STEPS:
        tool, given, output = _call_of(kind, item)
        yield {"type": "function_call", "call_id": own, "name": tool, "arguments": given}
        if status not in ("in_progress", "declined") and (output is not None or status):
            result = {"type": "function_call_output", "call_id": own, "output": output or ""}
            failed = status == "failed" or bool(item.get("error"))
            flag = True if failed else False if status == "completed" else None
            yield {**result, "exit_code": item.get("exit_code"), "is_error": flag}


def _call_of(kind: str, item: dict[str, Any]) -> tuple[str, Any, Any]:
    """(tool, arguments, output) of an item that is a call."""
    if kind == "command_execution":
        return "shell", {"command": item.get("command")}, item.get("aggregated_output")
    if kind == "mcp_tool_call":
        result = item.get("result")
        output = at(result, "content") or result or at(item, "error", "message")
        return as_text(item.get("tool")), item.get("arguments"), output
    if kind == "file_change":
        return "apply_patch", {"changes": item.get("changes")}, ""
    if kind == "collab_tool_call":  # of a sub-agent: its own thread is not in the file
        given = {k: item.get(k) for k in ("prompt", "receiver_thread_ids")}
        return as_text(item.get("tool")), given, item.get("agents_states")
    given = {k: v for k, v in item.items() if k not in ("id", "type", "status")}
    return kind, given, None
