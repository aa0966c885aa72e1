"""Sessions of Claude Code: the JSONL that it keeps (`projects/<folder>/<session>.jsonl`), and what
`claude -p --output-format stream-json` prints.

1. A session is one attempt; its task is the first thing that a person said. It has no reward: a side file names it by
   its session id (`own_id`).
2. The content of one message of the model is spread over several lines with the same `message.id`, each with the usage
   so far: the lines are put together, and the last usage of an id counts once, over sub-agents too. What is printed
   has the tokens of its messages in part or not at all; its last line has their sum, over all models.
3. What the program itself wrote as the user's turn (`isMeta`, slash commands and their output, reminders, summaries of
   a compacted history) is left out, and so are turns that the user took back (two prompts after the same turn).
4. Sub-agents (`isSidechain`) are no attempts. A call that the user interrupted or refused neither succeeded nor failed.
5. A last reply that is an error of the interface is an infrastructure error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Brings,
    Found,
    Remark,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.bundles import Bundles
from core.importers.dialects import conversation, text_of_content
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_text, at
from core.importers.lines import objects_of, set_aside
from core.importers.opened import Opened
from core.importers.times import span_of
from core.rollout import Usage

_SILENT = {
    "file-history-snapshot",
    "queue-operation",
    "progress",
    "summary",
    "system",
    "attachment",
    "last-prompt",
    "custom-title",
    "ai-title",
    "agent-name",
    "mode",
    "permission-mode",
    "pr-link",
    "stream_event",
    "rate_limit_event",
}
"""Types of records that are no turn."""

_WRITTEN_BY_THE_PROGRAM = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification|user-memory-input)>|Caveat: The messages below were generated)"
)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_INTERRUPTED = ("[Request interrupted by user", "The user doesn't want to proceed with this tool use")

_LIMITS = {"error_max_turns": "step limit", "error_max_budget_usd": "cost limit"}
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "interrupted"}


class ClaudeCode:
    """The format."""

    name = "claude_code"
    title = "Claude Code session"
    brings = Brings(reward="side file", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_record(r) for r in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        sessions, family = Bundles(), _Families()
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
            elif not isinstance(kind := line.value.get("type"), str):
                yield set_aside(line.place, "no record of a session: it has no type", as_said(line.value))
            elif kind in ("user", "assistant", "result") or line.value.get("subtype") == "init":
                sessions.add(family.of(line.value), line.place, (line.place, line.value), line.size)
            elif kind not in _SILENT:
                yield Remark(text=f"Records of type {as_text(kind)[:40]!r} are not known and were left out.")
        if not family.alias:
            yield Remark(text="A file of Claude Code holds no turn of anybody.")
        for session, _, records in sessions:
            yield from _attempts(session, records, opened)


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    if value.get("type") == "system" and value.get("subtype") == "init":
        return isinstance(value.get("session_id"), str)
    if value["type"] == "summary":
        return "leafUuid" in value
    return "parentUuid" in value or (
        isinstance(value.get("sessionId"), str) and value["type"] in _SILENT | {"user", "assistant"}
    )


@dataclass
class _Families:
    """Which session a record belongs to. A session that was resumed under a new id goes on with the old one."""

    newest: str = ""
    alias: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    """Record's uuid -> session."""

    def of(self, record: dict[str, Any]) -> str:
        own = as_text(record.get("sessionId") or record.get("session_id")) or self.newest
        if own not in self.alias:
            self.alias[own] = self.seen.get(as_text(record.get("parentUuid")), own)
        session = self.alias[own]
        if uuid := as_text(record.get("uuid")):
            self.seen[uuid] = session
        self.newest = own
        return session


def _attempts(session: str, records: list[tuple[str, Any]], opened: Opened) -> Iterator[Found]:
    """The attempt of a session, and its sub-agents, which are none."""
    main: list[tuple[str, dict[str, Any]]] = []
    agents: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    of_uuid: dict[str, str] = {}
    for place, record in records:
        if record.get("isSidechain") is not True and not record.get("parent_tool_use_id"):
            main.append((place, record))
            continue
        agent = as_text(record.get("agentId") or record.get("parent_tool_use_id"))
        uuid = as_text(record.get("uuid"))
        agent = agent or of_uuid.get(as_text(record.get("parentUuid")), uuid)
        of_uuid[uuid] = agent
        agents.setdefault(agent, []).append((place, record))
    if any(r["type"] in ("user", "assistant") for _, r in main):
        yield from _attempt(session, main, records, opened)
    for agent, turns in agents.items():
        yield from _attempt(session, turns, turns, opened, agent=agent)


def _attempt(
    session: str,
    own: list[tuple[str, dict[str, Any]]],
    family: list[tuple[str, Any]],
    opened: Opened,
    *,
    agent: str = "",
) -> Iterator[Found]:
    """
    Args:
        session: its id.
        own: the records of its own turns.
        family: those that its usage is counted from.
        opened: the file.
        agent: the id of the sub-agent; "" for the session itself.
    """
    turns = _Turns()
    for _, record in own:
        turns.take(record)
    if not turns.items and not turns.error:
        yield Remark(text="A session in which nobody said anything was left out.")
        return
    told = conversation(turns.items)
    head = next((r for _, r in own if r.get("cwd")), {})
    files = [] if agent else _files_of_agents(opened, session)
    usage = _usage([r for _, r in family], [r for f in files for r in _records_of(f)])
    seconds, begun = span_of(r.get("timestamp") for _, r in own)
    facts: dict[str, JsonValue] = {
        "session_id": session,
        "cwd": as_text(head.get("cwd")),
        "git_branch": as_text(head.get("gitBranch")),
        "version": as_text(head.get("version")),
        "started_at": begun,
        "subagent_files": len(files),
        "turns_taken_back": turns.taken_back,
        "compactions": turns.compactions,
        "models": ", ".join(sorted(turns.models)) if len(turns.models) > 1 else "",
    }
    yield new_attempt(
        place=own[0][0],
        namespace=PurePath(as_text(head.get("cwd")).replace("\\", "/")).name,
        question=turns.question(session),
        model=turns.models.most_common(1)[0][0] if turns.models else "",
        agent="claude-code",
        own_id=f"{session}/{agent}" if agent else session or None,
        trajectory=new_trajectory(
            messages=told.messages, steps=told.steps, answer=told.answer, finish_reason=turns.reason
        ),
        ends=not agent,
        error=turns.error,
        usage=usage,
        duration_s=turns.seconds if turns.seconds is not None else seconds,
        orphans=told.orphans,
        metadata={k: v for k, v in facts.items() if v},
    )


def _files_of_agents(opened: Opened, session: str) -> list[Opened]:
    """The files of a session's sub-agents: `<session>/subagents/agent-*.jsonl` beside its own."""
    if session != Path(opened.file_name).stem:
        return []
    folder = opened.path.parent / session / "subagents"
    inside = opened.root.resolve()
    found = (p for p in sorted(folder.glob("agent-*.jsonl*")) if p.is_file())
    return [Opened(p, root=opened.root) for p in found if p.resolve().is_relative_to(inside)]


def _records_of(opened: Opened) -> Iterator[Any]:
    """The records of a neighbouring file; what is damaged in it is set aside where the file itself is read."""
    return (line.value for line in objects_of(opened) if not isinstance(line, Aside))


@dataclass
class _Turns:
    """Takes the records of one conversation; what comes out are messages in Anthropic's form."""

    items: list[dict[str, Any]] = field(default_factory=list)
    prompt: str = ""
    command: str = ""
    """The first slash command, for a session that was begun with one."""
    models: Counter[str] = field(default_factory=Counter)
    reason: str | None = None
    error: str | None = None
    seconds: float | None = None
    taken_back: int = 0
    compactions: int = 0
    by_id: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The model's messages, by `message.id`."""
    uuids: set[str] = field(default_factory=set)
    prompts: dict[str, int] = field(default_factory=dict)
    """Turn before a prompt -> place of the prompt in `items`."""

    def take(self, record: dict[str, Any]) -> None:
        uuid = as_text(record.get("uuid"))
        if uuid and uuid in self.uuids:
            return  # a resumed session repeats what came before
        self.uuids.add(uuid)
        message = as_dict(record.get("message"))
        if record["type"] == "result":
            self._result(record)
        elif record["type"] == "assistant":
            self._assistant(record, message)
        elif record["type"] == "user":
            self._user(record, message)

    def question(self, session: str) -> str:
        return self.prompt or self.command or f"Claude Code session {session} (its prompt was not recorded)"

    def _user(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        if record.get("isCompactSummary") is True:
            self.compactions += 1
        if any(record.get(k) is True for k in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")):
            return
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        interrupted = at(record, "toolUseResult", "interrupted") is True
        blocks = [b for raw in as_list(content) if (b := self._block(raw, interrupted)) is not None]
        if not blocks:
            return
        words = text_of_content([b for b in blocks if b.get("type") != "tool_result"])
        if words.startswith(_INTERRUPTED[0]):
            self.reason = "interrupted"
        elif words:
            self._prompted(record, words)
        self.items.append({"role": "user", "content": blocks})

    def _block(self, block: Any, interrupted: bool) -> dict[str, Any] | None:
        """A block of a user's turn without what the program wrote into it; None where nothing is left."""
        if not isinstance(block, dict):
            return None
        if block.get("type") == "tool_result":
            said = text_of_content(block.get("content"))
            if interrupted or said.startswith(_INTERRUPTED):
                return {k: v for k, v in block.items() if k != "is_error"} | {"status": "incomplete"}
            return block
        text = block.get("text")
        if not isinstance(text, str):
            return block
        if _WRITTEN_BY_THE_PROGRAM.match(text):
            if not self.command and (name := _COMMAND.search(text)):
                given = _COMMAND_ARGUMENTS.search(text)
                self.command = as_text(f"{name[1]} {given[1] if given else ''}".strip())
            return None
        text = _REMINDER.sub("", text) if "<system-reminder>" in text else text
        return {**block, "text": text} if text.strip() else None

    def _prompted(self, record: dict[str, Any], words: str) -> None:
        """A prompt; where there was one after the same turn before, that one and what followed was taken back."""
        before = as_text(record.get("parentUuid"))
        place = self.prompts.get(before) if before else None
        if place is not None:
            self.taken_back += sum(i["role"] == "user" for i in self.items[place:])
            del self.items[place:]
            self.by_id.clear()
            self.prompts = {k: v for k, v in self.prompts.items() if v <= place}
            self.prompt = "" if place == 0 else self.prompt
        if before:
            self.prompts[before] = len(self.items)
        self.prompt = self.prompt or words
        self.reason = None

    def _assistant(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        content = message.get("content")
        blocks = as_list(content) if not isinstance(content, str) else [{"type": "text", "text": content}]
        if record.get("isApiErrorMessage") is True:
            self.error = text_of_content(blocks)[:500] or "an error of the model's interface"
        else:
            self.error = None
        model = as_text(message.get("model"))
        if model and model != "<synthetic>":
            self.models[model] += 1
        if reason := as_text(message.get("stop_reason")):
            self.reason = _REASONS.get(reason, reason)
        own = as_text(message.get("id"))
        if own and own in self.by_id:
            known = self.by_id[own]["content"]
            known += [b for b in blocks if b not in known]
            return
        item = {"role": "assistant", "content": list(blocks)}
        self.items.append(item)
        if own:
            self.by_id[own] = item

    def _result(self, record: dict[str, Any]) -> None:
        """The last line of stream-json: how it ended."""
        milliseconds = as_number(record.get("duration_ms"))
        self.seconds = milliseconds / 1000 if milliseconds is not None and milliseconds >= 0 else None
        kind = as_text(record.get("subtype"))
        if kind == "error_during_execution" or (kind == "success" and record.get("is_error") is True):
            said = as_text(record.get("result")) or "; ".join(map(as_text, as_list(record.get("errors"))))
            self.error = said[:500] or "Claude Code broke off with an error"
        elif kind.startswith("error_max"):
            self.reason = _LIMITS.get(kind, "limit")


def _usage(records: list[Any], of_agents: list[Any]) -> Usage:
    """What a session and its sub-agents took: the last usage of each message, once."""
    last: dict[str, dict[str, Any]] = {}
    cost: dict[str, float] = {}
    for place, record in enumerate([*records, *of_agents]):
        if as_dict(record).get("type") != "assistant":
            continue
        message = as_dict(record.get("message"))
        used = as_dict(message.get("usage"))
        if not used or message.get("model") == "<synthetic>":
            continue
        own = as_text(message.get("id")) or f"record {place}"
        last[own] = used
        cost[own] = as_number(record.get("costUSD")) or 0.0
    end: dict[str, Any] = next((r for r in reversed(records) if r["type"] == "result"), {})
    prompt, completion = max(_sums(last.values()), _sums_at_the_end(end), key=sum)
    whole = as_number(end.get("total_cost_usd"))
    return new_usage(
        calls=len(last),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=max(0.0, whole) if whole is not None else sum(cost.values(), 0.0),
    )


_PROMPT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_PROMPT_TOKENS_OF_A_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")


def _sums(usages: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """(prompt tokens, completion tokens) of usages in the form of the interface."""
    given = list(usages)
    prompt = sum(_tokens(u, k) for u in given for k in _PROMPT_TOKENS)
    return prompt, sum(_tokens(u, "output_tokens") for u in given)


def _sums_at_the_end(end: dict[str, Any]) -> tuple[int, int]:
    """The same, as the last line of what is printed tells them: by model, sub-agents included, or in one."""
    models = [as_dict(u) for u in as_dict(end.get("modelUsage")).values()]
    prompt = sum(_tokens(u, k) for u in models for k in _PROMPT_TOKENS_OF_A_MODEL)
    completion = sum(_tokens(u, "outputTokens") for u in models)
    return (prompt, completion) if prompt or completion else _sums([as_dict(end.get("usage"))])


def _tokens(usage: dict[str, Any], key: str) -> int:
    return max(0, as_int(usage.get(key)) or 0)
