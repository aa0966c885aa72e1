"""Trajectories of SWE-agent: `<instance>/<instance>.traj`, and rows of data sets of them.

1. Steps are the `trajectory`: what was done and what was seen. Names and arguments of tools stand only in the
   `history`, where both tell the same number of actions; else the tool is the command that was given, or bash.
2. Demonstrations in the history are not the agent's. Without a history, what was said first stands in the `query`.
3. Whether an instance was resolved stands in no trajectory: a report of SWE-bench beside it says so. A row of a data
   set has its verdict with it (`target`).
4. A provider or environment that failed is an infrastructure error; limits of cost, context and time are none.
5. Several `attempts` of one file (an agent that tries again) are several attempts; the verdict is that of the one whose
   patch was submitted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Seen
from core.importers.dialects import Conversation, conversation, text_of_content
from core.importers.documents import documents_of
from core.importers.formats.own_words import judged
from core.importers.formats.swe_bench import Verdicts, id_of, instance_of, namespace_of, run_of, verdicts
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.opened import Opened
from core.rollout import Step, Trajectory, Usage

_COMMANDS = {
    "create",
    "edit",
    "exit_forfeit",
    "find_file",
    "goto",
    "insert",
    "open",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "str_replace_editor",
    "submit",
    "view_image",
}
"""Commands that SWE-agent brings; all others are given to bash."""

_REFUSED = re.compile(
    r"\s*(?:Your proposed edit has introduced new syntax error|Your edit was not applied|EXECUTION TIMED OUT"
    r"|COMMAND TIMED OUT|The command '.{1,2000}?' was cancelled because it took more|No replacement was performed"
    r"|Text not found|[\w./-]+: (?:line \d+: )?[\w./-]+: command not found)",
    re.DOTALL,
)
"""How its tools say that they did not do what was asked."""
_DONE = re.compile(
    r"\s*(?:File updated\.|Text replaced\.|The file \S+ has been edited\.|File created successfully)"
)
_OUTSIDE = ("exit_api", "exit_environment_error", "exit_error")
_FENCED = re.compile(r"```[^\n]*\n(.*?)\n?```", re.DOTALL)


class SweAgent:
    """The format of SWE-agent and of rows of its trajectories."""

    name = "swe_agent"
    title = "SWE-agent trajectory"
    brings = Brings(reward="SWE-bench report", repeats="by runs", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_traj(record) or _is_row(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        reports = verdicts(opened)
        yield from reports.remarks
        for document in documents_of(opened, lambda value: _is_traj(value) or _is_row(value)):
            if isinstance(document, Aside):
                yield document
            elif _is_row(document.value):
                yield _of_row(document.place, document.value)
            elif tries := [t for t in as_list(document.value.get("attempts")) if _is_traj(t)]:
                yield from _of_tries(document.place, document.value, tries, opened, reports)
            else:
                yield _of_traj(document.place, document.value, document.value, opened, reports)


def _is_traj(value: Any) -> bool:
    if not isinstance(value, dict) or "messages" in value:
        return False
    steps, history = value.get("trajectory"), value.get("history")
    if isinstance(steps, list):
        told = isinstance(history, list) or isinstance(value.get("info"), dict)
        return told and all(at(s, "observation") is not None or not isinstance(s, dict) for s in steps[:3])
    first = at(history, 0)
    return (
        set(value) <= {"history", "info", "environment"}
        and at(first, "role") is not None
        and "agent" in first
    )


def _is_row(value: Any) -> bool:
    first = at(value, "trajectory", 0)
    return at(first, "role") is not None and "text" in first and "instance_id" in value


class _Told(NamedTuple):
    """What a trajectory tells, put in order."""

    talk: Conversation
    question: str
    system: str


def _of_tries(
    place: str, value: dict[str, Any], tries: Sequence[dict[str, Any]], opened: Opened, reports: Verdicts
) -> Iterator[Attempt]:
    submitted = as_text(at(value, "info", "submission"))
    for number, one in enumerate(tries):
        chosen = bool(submitted) and as_text(at(one, "info", "submission")) == submitted
        known = reports if chosen else Verdicts({})
        yield _of_traj(f"{place}, attempt {number + 1}", one, value, opened, known, repeat=number)


def _of_traj(
    place: str,
    value: dict[str, Any],
    whole: dict[str, Any],
    opened: Opened,
    reports: Verdicts,
    repeat: int | None = None,
) -> Attempt:
    """One trajectory; `whole` is the file's object, which holds the configuration of all attempts in it."""
    config = _config(whole)
    problem = as_dict(config.get("problem_statement"))
    told = _told(value)
    info = as_dict(value.get("info"))
    status = as_text(info.get("exit_status"))
    instance = instance_of(opened) or as_text(problem.get("id")) or None
    scores = reports.scores(instance)
    return Attempt(
        place=place,
        namespace=namespace_of(instance),
        task_id=instance,
        question=as_text(problem.get("text"))
        or told.question
        or instance
        or "(the trajectory does not tell its task)",
        system=told.system,
        model=as_text(at(config, "agent", "model", "name")),
        agent=_agent(config),
        repeat=repeat,
        run=run_of(opened),
        own_id=id_of(told.talk, run_of(opened), as_said(info)),
        trajectory=Trajectory(
            messages=told.talk.messages,
            steps=told.talk.steps,
            answer=as_text(info.get("submission")) or told.talk.answer,
            finish_reason=status or None,
        ),
        scores=scores,
        reward="resolved" if reports.resolved else None,
        error=_error(status, scores),
        usage=_usage(as_dict(info.get("model_stats"))),
        orphans=told.talk.orphans,
        metadata=_facts(status),
    )


def _of_row(place: str, row: dict[str, Any]) -> Attempt:
    """A row of a data set of trajectories: messages with fenced commands, and a verdict."""
    steps, messages = 0, list[Any]()
    for turn in as_list(row.get("trajectory")):
        role, text = (
            as_text(at(turn, "role")),
            as_text(at(turn, "text")) or as_text(at(turn, "system_prompt")),
        )
        commands = _FENCED.findall(text) if role == "ai" else []
        answered = bool(messages) and messages[-1].get("tool_calls") and role == "user"
        if answered:
            messages.append({"role": "tool", "tool_call_id": str(steps), "content": text})
            continue
        steps += len(commands) == 1
        call = [_command(commands[0].strip(), str(steps))] if len(commands) == 1 else []
        messages.append({"role": role, "content": text, "tool_calls": call})
    talk = _judged(conversation(messages), [])
    status = as_text(row.get("exit_status"))
    instance = as_text(row.get("instance_id"))[:200]
    users = [m.content for m in talk.messages if m.role == "user"]
    verdict = row.get("target", row.get("resolved"))
    scores = {} if verdict is None else {"resolved": as_seen(verdict)}
    return Attempt(
        place=place,
        namespace=namespace_of(instance),
        task_id=instance or None,
        question="".join(users[:1]) or instance or "(the row does not tell its task)",
        system="\n".join(m.content for m in talk.messages if m.role == "system"),
        model=as_text(row.get("model_name")),
        agent="SWE-agent",
        trajectory=Trajectory(
            messages=talk.messages,
            steps=talk.steps,
            answer=as_text(row.get("generated_patch")) or talk.answer,
            finish_reason=status or None,
        ),
        scores=scores,
        reward="resolved" if scores else None,
        error=_error(status, scores),
        orphans=talk.orphans,
        metadata=_facts(status),
    )


def _config(value: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the run; some files hold it as JSON in a string."""
    config = value.get("replay_config")
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            return {}
    return as_dict(config)


def _agent(config: dict[str, Any]) -> str:
    """SWE-agent with the tools that it was given: runs with other tools are not compared with each other."""
    paths = [as_text(at(b, "path")) for b in as_list(at(config, "agent", "tools", "bundles"))]
    tools = ", ".join(path.rstrip("/").rsplit("/")[-1] for path in paths if path)
    return f"SWE-agent ({tools[:300]})" if tools else "SWE-agent"


def _told(value: dict[str, Any]) -> _Told:
    history = [
        h for h in as_list(value.get("history")) if isinstance(h, dict) and h.get("is_demo") is not True
    ]
    steps = [s for s in as_list(value.get("trajectory")) if isinstance(s, dict)]
    first = steps[0] if steps else {}
    said = history or as_list(first.get("query")) or as_list(first.get("messages"))
    opening = _opening(said)
    if steps:
        acting = [h for h in history if h.get("role") == "assistant"]
        calls = [at(h, "tool_calls", 0) for h in acting] if len(acting) == len(steps) else [None] * len(steps)
        items = [i for n, (s, c) in enumerate(zip(steps, calls, strict=True)) for i in _items(s, c, str(n))]
    else:
        items = [_of_history(h) for h in history[len(opening) :]]
    talk = _judged(conversation([*opening, *items]), steps)
    users = [text_of_content(m.get("content")) for m in opening if m.get("role") == "user"]
    systems = [text_of_content(m.get("content")) for m in opening if m.get("role") == "system"]
    return _Told(talk, "".join(users[:1]), "\n".join(systems))


def _opening(said: list[Any]) -> list[dict[str, Any]]:
    """What was said before the agent spoke."""
    found = []
    for message in said:
        if not isinstance(message, dict) or message.get("is_demo") is True:
            continue
        if message.get("role") not in ("system", "user"):
            break
        found.append({"role": message["role"], "content": message.get("content")})
    return found


def _items(step: dict[str, Any], call: Any, call_id: str) -> Iterator[dict[str, Any]]:
    """A step as messages; without an action (a reply that could not be read) nothing was called."""
    action = as_text(step.get("action")).strip()
    seen = step.get("observation") if step.get("observation") is None else as_text(step["observation"])
    seen = seen and seen.replace("\r\n", "\n")
    spoken = as_text(step.get("thought")) or as_text(step.get("response"))
    if not action:
        yield {"role": "assistant", "content": spoken or as_text(step.get("response"))}
        yield {"role": "user", "content": seen}
        return
    named = isinstance(call, dict) and as_dict(call.get("function"))
    yield {
        "role": "assistant",
        "content": spoken,
        "tool_calls": [call | {"id": call_id} if named else _command(action, call_id)],
    }
    yield {"role": "tool", "tool_call_id": call_id, "content": seen}


def _command(action: str, call_id: str) -> dict[str, Any]:
    words = action.split(maxsplit=1)
    tool = words[0] if words and words[0] in _COMMANDS else "bash"
    return {"id": call_id, "function": {"name": tool, "arguments": {"command": action}}}


def _of_history(entry: dict[str, Any]) -> dict[str, Any]:
    ids = as_list(entry.get("tool_call_ids"))
    item = {k: entry.get(k) for k in ("role", "content", "tool_calls")}
    return item | ({"tool_call_id": ids[0]} if ids else {})


def _judged(talk: Conversation, steps: Sequence[dict[str, Any]]) -> Conversation:
    """With what the tools of SWE-agent say in their own words, and how long each took."""
    durations = iter(as_number(s.get("execution_time")) for s in steps if as_text(s.get("action")).strip())
    return talk._replace(steps=tuple(_judged_step(s, next(durations, None)) for s in talk.steps))


def _judged_step(step: Step, duration_s: float | None) -> Step:
    known = duration_s if duration_s is not None and duration_s >= 0 else None
    return judged(step, _REFUSED, _DONE).model_copy(update={"duration_s": known})


def _error(status: str, scores: dict[str, Seen]) -> str | None:
    resolved = "resolved" in scores and scores["resolved"].value == 1.0
    return status if any(reason in status for reason in _OUTSIDE) and not resolved else None


def _usage(stats: dict[str, Any]) -> Usage:
    return Usage(
        calls=max(0, as_int(stats.get("api_calls")) or 0),
        prompt_tokens=max(0, as_int(stats.get("tokens_sent")) or 0),
        completion_tokens=max(0, as_int(stats.get("tokens_received")) or 0),
        cost_usd=max(0.0, as_number(stats.get("instance_cost")) or 0.0),
    )


def _facts(status: str) -> dict[str, JsonValue]:
    return {"exit_status": status} if status else {}
