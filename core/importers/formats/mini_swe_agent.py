"""Trajectories of mini-swe-agent: `<instance>/<instance>.traj.json`, with `info` and `messages`, or bare messages.

1. Its one tool is bash. A command stands in a call, among the parsed `actions`, or in the only fenced block of a reply;
   the message after it is its result. A reply that could not be read has none.
2. The exit code (`returncode`, in the message or in its text) tells whether a command went well.
3. Whether an instance was resolved stands in a report of SWE-bench beside it.
4. An exception that ended the run is an infrastructure error; limits of steps, cost, time and context are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from core.importers.attempt import Aside, Attempt, Brings, Found, Seen, new_attempt, new_trajectory, new_usage
from core.importers.dialects import conversation, text_of_content
from core.importers.documents import documents_of
from core.importers.formats.own_words import judged
from core.importers.formats.swe_bench import Verdicts, id_of, instance_of, namespace_of, run_of, verdicts
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_text, at
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.rollout import Usage

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_CODE = re.compile(r"\s*<returncode>(-?\d{1,6})</returncode>")
_TIMED_OUT = re.compile(r"The last command <command>.*timed out and has been killed", re.DOTALL)
_ITS_OWN = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT", "mswea_bash_command")
_LIMITS = ("LimitsExceeded", "TimeExceeded", "ContextWindow", "RepeatedFormatError", "UserInterruption")


class MiniSweAgent:
    """The format of mini-swe-agent 1 and 2."""

    name = "mini_swe_agent"
    title = "mini-swe-agent trajectory"
    brings = Brings(reward="SWE-bench report", repeats="by runs", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_traj(record) for record in opened.records) or _is_bare(opened)

    def read(self, opened: Opened) -> Iterator[Found]:
        around = _Around(verdicts(opened), run_of(opened), instance_of(opened))
        yield from around.reports.remarks
        if _is_bare(opened):
            messages = as_list(opened.whole)
            if opened.not_utf8:
                yield set_aside("the file", "bytes of it are not UTF-8", as_said(messages))
            else:
                yield _attempt("the file", {"messages": messages}, around)
            return
        for document in documents_of(opened, _is_traj):
            if isinstance(document, Aside):
                yield document
            else:
                yield _attempt(document.place, document.value, around)


class _Around(NamedTuple):
    """What the name of a file and what stands beside it tell of every attempt in it."""

    reports: Verdicts
    run: str
    instance: str | None


def _is_traj(value: Any) -> bool:
    if not isinstance(at(value, "messages"), list):
        return False
    info = as_dict(value.get("info"))
    said = as_text(value.get("trajectory_format")).startswith("mini-swe-agent") or "mini_version" in info
    return said or ("exit_status" in info and ("submission" in info or "model_stats" in info))


def _is_bare(opened: Opened) -> bool:
    """Whether it is a list of messages in which commands are answered as mini-swe-agent answers them."""
    messages = opened.records if opened.head.lstrip()[:1] == b"[" else []
    if not messages or not all(at(m, "role") is not None and "content" in m for m in messages):
        return False
    said = [text_of_content(m["content"]) for m in messages]
    return any(_CODE.match(text) for text in said) or any(mark in said[0] for mark in _ITS_OWN)


def _attempt(place: str, value: dict[str, Any], around: _Around) -> Attempt:
    messages = [m for m in as_list(value.get("messages")) if isinstance(m, dict)]
    talk = conversation(_items(messages))
    info = as_dict(value.get("info"))
    ended = as_dict(messages[-1].get("extra")) if messages and messages[-1].get("role") == "exit" else {}
    status = as_text(info.get("exit_status")) or as_text(ended.get("exit_status"))
    submitted = as_text(info.get("submission")) or as_text(ended.get("submission"))
    model, stats = as_text(at(info, "config", "model", "model_name")), as_dict(info.get("model_stats"))
    instance = as_text(value.get("instance_id"))[:200] or around.instance
    scores = around.reports.scores(instance)
    return new_attempt(
        place=place,
        namespace=namespace_of(instance),
        task_id=instance,
        question=next((m.content for m in talk.messages if m.role == "user"), "")
        or instance
        or "(the trajectory does not tell its task)",
        system="\n".join(m.content for m in talk.messages if m.role == "system"),
        model=model,
        agent=" ".join(t for t in ("mini-swe-agent", as_text(info.get("mini_version"))) if t),
        run=around.run,
        own_id=id_of(talk, around.run, as_said(info)),
        trajectory=new_trajectory(
            messages=talk.messages,
            steps=tuple(judged(step, _TIMED_OUT) for step in talk.steps),
            answer=submitted or talk.answer,
            finish_reason=status or None,
        ),
        scores=scores,
        reward="resolved" if around.reports.resolved else None,
        error=_error(status, info, scores),
        usage=_usage(stats, messages),
        orphans=talk.orphans,
        metadata={"exit_status": status} if status else {},
    )


def _items(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages with their commands as calls, and what answers them as results."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        role, extra = message.get("role"), as_dict(message.get("extra"))
        if isinstance(message.get("output"), list):  # a response of the Responses API
            yield from (item for item in message["output"] if isinstance(item, dict))
        elif role == "assistant":
            calls = _calls(message, extra, str(number))
            waiting = [] if message.get("tool_calls") else [call["id"] for call in calls]
            yield {
                "role": role,
                "content": message.get("content"),
                "reasoning_content": message.get("reasoning_content"),
                "tool_calls": calls,
            }
        elif role == "user" and waiting and extra.get("interrupt_type") is None:
            item = {"role": "tool", "tool_call_id": waiting.pop(0), "content": message.get("content")}
            yield _result(item, message, extra)
        elif role in ("system", "user"):
            yield message
        elif role != "exit":
            yield _result(message, message, extra)


def _calls(message: dict[str, Any], extra: dict[str, Any], turn: str) -> list[Any]:
    """The calls of a reply; commands that were parsed out of its text get ids of their own."""
    if calls := as_list(message.get("tool_calls")):
        return calls
    actions = [as_text(at(a, "command")) for a in as_list(extra.get("actions"))] if extra else []
    if not any(actions):
        found = _BLOCK.findall(text_of_content(message.get("content")))
        actions = [found[0].strip()] if len(found) == 1 else []
    return [
        {"id": f"{turn}.{n}", "name": "bash", "arguments": {"command": command}}
        for n, command in enumerate(actions)
    ]


def _result(item: dict[str, Any], message: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """A result with its exit code; other messages stay as they are."""
    code = as_int(extra.get("returncode"))
    if code is None:
        content = message.get("content") if "content" in message else message.get("output")
        told = _CODE.match(content if isinstance(content, str) else text_of_content(content))
        code = int(told[1]) if told else None
    return item if code is None else item | {"exit_code": code}


def _error(status: str, info: dict[str, Any], scores: dict[str, Seen]) -> str | None:
    """The exception that ended the run, unless it was a limit, or the patch made so far resolved the instance."""
    broke = "traceback" in info or status.endswith(("Error", "Exception"))
    limit = any(name in status for name in _LIMITS)
    resolved = "resolved" in scores and scores["resolved"].value == 1.0
    return status if status and status != "Submitted" and broke and not limit and not resolved else None


def _usage(stats: dict[str, Any], messages: Sequence[dict[str, Any]]) -> Usage:
    extras = [as_dict(m["extra"]) for m in messages if m.get("extra")]
    used = [as_dict(at(extra, "response", "usage")) for extra in extras]
    costs = [as_number(extra.get("cost")) or 0.0 for extra in extras]
    calls = as_int(stats.get("api_calls"))
    if calls is None:
        calls = sum(m.get("role") == "assistant" for m in messages)
    cost = as_number(stats.get("instance_cost"))
    return new_usage(
        calls=max(0, calls),
        prompt_tokens=sum(max(0, as_int(u.get("prompt_tokens")) or 0) for u in used),
        completion_tokens=sum(max(0, as_int(u.get("completion_tokens")) or 0) for u in used),
        cost_usd=max(0.0, sum(costs) if cost is None else cost),
    )
