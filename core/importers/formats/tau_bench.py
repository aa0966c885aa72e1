"""Results of tau-bench: a JSON list of attempts, or one attempt a line. Source: its `EnvRunResult` and `run.py`.

1. Task ids count from 0 in each domain. The domain is read from the heading of the policy ("# Airline agent policy"),
   else from the file's name, as are the model and the agent: the records name none of them.
2. An attempt with `info.error`, or without any message, crashed. Its reward of 0.0 is no grade.
3. Results of tools say by their text alone whether they are errors ("Error: ...").
4. The agents "react" and "act" call tools in words; the calls and results are read out of these.
5. The reward is `reward`, by definition. `user_cost` is what the simulated user took, not the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Remark,
    Seen,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.dialects import conversation, text_of_content
from core.importers.getting import as_dict, as_int, as_json, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.lines import Piece, records_of, set_aside
from core.importers.opened import Opened
from core.importers.source import bounded

_KEYS = {"task_id", "reward", "info", "traj", "trial"}

_POLICY = re.compile(r"\s*#\s*(\w+) agent policy", re.IGNORECASE)
_WRITTEN_BY_RUN = re.compile(
    r"(?:(?P<strategy>tool-calling|few-shot|react|act)-)?(?P<model>.+?)-(?P<temperature>\d+(?:\.\d+)?)"
    r"_range_-?\d+--?\d+_user-(?P<user>.+)_\d+"
)
_DOMAIN = re.compile(r"(?:^|[-_ /])(airline|retail|telecom)(?=[-_ /.]|$)")
_RESPOND = "respond"
_TOOL_SAID = "API output: "
_STOP = "###STOP###"


class TauBench:
    """The format."""

    name = "tau_bench"
    title = "tau-bench results"
    brings = Brings(reward="yes", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(isinstance(r, dict) and r.keys() >= _KEYS for r in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        told = _Name.of(opened.name)
        reading = _Reading(opened, told, told.domain)
        for piece in records_of(opened):
            if isinstance(piece, Aside):
                yield piece
            elif not piece.value.keys() >= {"task_id", "traj"}:
                yield set_aside(piece.place, "no attempt: task_id or traj is missing", as_said(piece.value))
            else:
                yield reading.attempt(piece)
        guessed = [f"the model ({told.model})"] if told.model else []
        guessed += [f"the domain ({told.domain})"] if reading.domain_guessed else []
        if guessed:
            yield Remark(text=f"Read from the name of {opened.name}: {' and '.join(guessed)}.")
        if not told.model:
            yield Remark(text=f"Neither {opened.name} nor its name tells which model it is of.")


class _Name(NamedTuple):
    """What the name of a file tells: `run.py` writes the configuration into it."""

    model: str = ""
    agent: str = ""
    domain: str = ""

    @classmethod
    def of(cls, name: str) -> _Name:
        stem = re.split(r"[/\\]", re.sub(r"(\.jsonl?)?(\.gz)?$", "", name))[-1]
        domain = found[1] if (found := _DOMAIN.search(stem)) else ""
        if run := _WRITTEN_BY_RUN.match(stem):
            model = _DOMAIN.sub("", run["model"]).strip("-_")
            agent = f"{run['strategy'] or 'agent'}, temperature {run['temperature']}, user {run['user']}"
            return cls(model, agent, domain)
        return cls(stem[: found.start()].strip("-_") if found else "", "", domain)


@dataclass
class _Reading:
    """A file while its attempts are read."""

    opened: Opened
    told: _Name
    domain: str
    """Of the file: of attempts that have no policy."""
    domain_guessed: bool = False
    instructions: dict[str, str] = field(default_factory=dict)
    """Task id -> instruction, as far as it is known."""
    searched: bool = False

    def attempt(self, piece: Piece) -> Attempt:
        record = piece.value
        info, messages, task_id = (
            as_dict(record.get("info")),
            as_list(record.get("traj")),
            as_text(record["task_id"]),
        )
        task = as_dict(info.get("task"))
        domain = domain_of(messages)
        instruction = as_text(task.get("instruction"))
        if not domain or not instruction:
            self._search(task_id)
            self.domain_guessed |= not domain and bool(self.told.domain)
            domain, instruction = domain or self.domain, instruction or self.instructions.get(task_id, "")
        self.instructions.setdefault(task_id, instruction)
        self.domain = self.domain or domain
        talk = conversation(_in_calls(messages))
        namespace = f"tau-bench {domain}".rstrip()
        return new_attempt(
            place=piece.place,
            namespace=namespace,
            task_id=task_id or None,
            question=instruction.strip() or f"Task {task_id} of {namespace}",
            system=next((m.content for m in talk.messages[:1] if m.role == "system"), ""),
            task_metadata=_task_metadata(task),
            model=self.told.model,
            agent=self.told.agent,
            repeat=as_int(record.get("trial")),
            trajectory=new_trajectory(
                messages=talk.messages,
                steps=talk.steps,
                answer=talk.answer,
                finish_reason=_finish_reason(messages),
            ),
            scores=_scores(record, info),
            reward="reward",
            error=_error(info, messages),
            usage=new_usage(calls=sum(m.role == "assistant" for m in talk.messages)),
            orphans=talk.orphans,
            metadata={"user_cost": cost} if (cost := as_number(info.get("user_cost"))) is not None else {},
        )

    def _search(self, task_id: str) -> None:
        """Look through the file once for what a crashed attempt does not tell: the domain, and its task."""
        if self.searched or (self.domain and task_id in self.instructions):
            return
        self.searched = True
        for piece in records_of(self.opened):
            if isinstance(piece, Aside):
                continue
            self.domain = domain_of(as_list(piece.value.get("traj"))) or self.domain
            if instruction := as_text(at(piece.value, "info", "task", "instruction")):
                self.instructions.setdefault(as_text(piece.value.get("task_id")), instruction)


def domain_of(messages: list[Any]) -> str:
    """The domain that the agent's policy is of ("airline"); "" where it does not tell."""
    if at(messages, 0, "role") != "system":
        return ""
    content = at(messages, 0, "content")
    found = _POLICY.match(content if isinstance(content, str) else text_of_content(content))
    return found[1].lower() if found else ""


def _scores(record: dict[str, Any], info: dict[str, Any]) -> dict[str, Seen]:
    parts = as_dict(at(info, "reward_info", "info"))
    scores = {
        name: as_seen(parts[name]) for name in ("r_actions", "r_outputs") if parts.get(name) is not None
    }
    return {"reward": as_seen(record.get("reward")), **scores}


def _error(info: dict[str, Any], messages: list[Any]) -> str | None:
    if info.get("error"):
        return bounded(as_said(info["error"]).strip(), 1_000) or "the attempt crashed"
    return None if messages else "no message was recorded: the attempt never began"


def _task_metadata(task: dict[str, Any]) -> dict[str, JsonValue]:
    """What is right in this task: the calls that lead to the right data, and what the user must be told."""
    return {name: as_json(task[name]) for name in ("user_id", "actions", "outputs") if task.get(name)}


def _finish_reason(messages: list[Any]) -> str | None:
    """The user ends a conversation, or the agent hands it over; else nothing is told (it may be the step limit)."""
    last = as_dict(at(messages, -1))
    handed_over = last.get("role") == "tool" and last.get("name") == "transfer_to_human_agents"
    return "stop" if handed_over or _STOP in text_of_content(last.get("content")) else None


def _in_calls(messages: list[Any]) -> Iterator[Any]:
    """The messages, with calls in words ("Action: {...}", "API output: ...") as calls and results."""
    called = ""
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            yield message
            continue
        role, content, call, called = message.get("role"), message.get("content"), called, ""
        if call and role == "user" and isinstance(content, str) and content.startswith(_TOOL_SAID):
            yield {"role": "tool", "tool_call_id": call, "content": content.removeprefix(_TOOL_SAID)}
            continue
        action = _action(content) if role == "assistant" and not message.get("tool_calls") else None
        if action is None:
            yield message
            continue
        thought = text_of_content(content).rpartition("Action:")[0].strip().removeprefix("Thought:").strip()
        turn: dict[str, Any] = {"role": "assistant", "reasoning": thought}
        if action.get("name") == _RESPOND:
            yield turn | {"content": as_said(at(action, "arguments", "content"))}
        else:
            called = f"in words {place}"
            yield turn | {"tool_calls": [{"id": called, **action}]}


def _action(content: Any) -> dict[str, Any] | None:
    """The call that an agent of the strategy "react" or "act" writes after "Action:"; None where it writes none."""
    if not isinstance(content, str) or "Action:" not in content:
        return None
    try:
        action = json.loads(content.rpartition("Action:")[2])
    except (ValueError, RecursionError):
        return None
    return action if isinstance(action, dict) and isinstance(action.get("name"), str) else None
