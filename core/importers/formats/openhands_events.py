"""Events of OpenHands, of its version 0 (`action`, `observation`) and of its SDK (`kind`), as one conversation.

1. An action of the agent that does something is a step; its result is the observation that names it as its `cause`
   (version 0) or has the id of its call (SDK). Thoughts and the last message are messages; recalls and changes of state
   are none.
2. Actions that came in one reply of the model share a turn. The names and arguments are those that the model gave,
   where its reply is kept.
3. `success` is told for commands only; exit codes stand in the extras (-1: the command still runs, nothing is told).
4. Tokens are told as running totals: the last counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from core.importers.dialects import Conversation, conversation, text_of_content
from core.importers.formats.own_words import judged
from core.importers.getting import as_dict, as_int, as_list, as_number, as_text, at
from core.importers.times import span_of
from core.rollout import Usage

_SOURCES = ("agent", "user", "environment", "hook")
_SAYING = {"message", "finish", "think", "system", "reject"}
_SILENT = {
    "recall",
    "null",
    "start",
    "change_agent_state",
    "agent_state_changed",
    "condensation",
    "condensation_request",
    "condense",
    "loop_recovery",
    "pause",
    "resume",
    "stop",
    "think",
    "finish",
    "success",
    "system",
    "message",
}
"""Observations that answer no step, and actions that are none."""
_NO_STEP = _SAYING | _SILENT | {""}
_NO_ARGUMENT = {
    "thought",
    "blocking",
    "is_static",
    "is_input",
    "hidden",
    "confirmation_state",
    "security_risk",
    "impl_source",
    "cwd",
    "kind",
}
_SAYING_TOOLS = {"finish", "think"}
_SILENT_KINDS = {
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "ConversationErrorEvent",
    "ConversationStateUpdateEvent",
    "LLMCompletionLogEvent",
    "PauseEvent",
    "TokenEvent",
}
_KNOWN_KINDS = {
    *("ActionEvent", "AgentErrorEvent", "MessageEvent", "ObservationEvent", "SystemPromptEvent"),
    *("UserRejectObservation", *_SILENT_KINDS),
}
_FAILED = re.compile(
    r"\s*(?:ERROR:|\[?Error occurred|No replacement was performed|[\w./-]+: (?:line \d+: )?[\w./-]+: command not found)"
)
_DONE = re.compile(r"\s*(?:The file \S+ has been edited\.|File created successfully|I edited the file )")


class Told(NamedTuple):
    """What the events of one attempt tell."""

    talk: Conversation
    question: str
    system: str
    usage: Usage
    model: str
    duration_s: float | None
    finished: bool
    """Whether the agent said that it had come to its end."""
    error: str
    """What the conversation says that broke it off; "" where nothing did."""
    unknown: tuple[str, ...]
    """Kinds of events that were left out, since nothing is known of them."""


def is_event(value: Any) -> bool:
    """Whether it is an event of either version."""
    if at(value, "source") not in _SOURCES or not ("id" in value or "timestamp" in value):
        return False
    if isinstance(value.get("kind"), str):
        return (
            value["kind"].endswith("Event")
            or value["kind"] in _SILENT_KINDS
            or "Observation" in value["kind"]
        )
    return isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)


def told_by(events: Iterable[Any]) -> Told:
    """Read the events of one attempt, in order; the oldest files hold them in pairs."""
    flat = [
        e for event in events for e in (event if isinstance(event, list) else [event]) if isinstance(e, dict)
    ]
    acts = [e for e in flat if _acts(e)]
    acting = {id(e) for e in acts}
    others = {as_text(e.get("id")) for e in flat if _of_a_person(e)}
    talk = conversation(
        item for event in flat for item in ([_call(event)] if id(event) in acting else _said(event, others))
    )
    turns = _turns(acts)
    steps = tuple(
        judged(step if step.turn == turn else step.model_copy(update={"turn": turn}), _FAILED, _DONE)
        for step, turn in zip(talk.steps, turns, strict=True)
    )
    times = [e["timestamp"] for e in flat if "timestamp" in e]
    duration, _ = span_of([*times[:1], *times[-1:]])
    return Told(
        talk=talk._replace(steps=steps),
        question=next((m.content for m in talk.messages if m.role == "user"), ""),
        system="\n".join(m.content for m in talk.messages if m.role == "system"),
        usage=_usage(flat, len({r for e in flat if (r := _reply_of(e))}) or len(set(turns))),
        model=_model(flat),
        duration_s=duration,
        finished=any(_tool(e) == "finish" for e in flat),
        error=_broken(flat),
        unknown=tuple(sorted({as_text(e["kind"])[:60] for e in flat if _unknown(e)})),
    )


def usage_of(metrics: Any, calls: int) -> Usage:
    """What running totals say: `accumulated_cost`, `accumulated_token_usage`."""
    tokens = as_dict(at(metrics, "accumulated_token_usage"))
    return Usage(
        calls=calls,
        prompt_tokens=max(0, as_int(tokens.get("prompt_tokens")) or 0),
        completion_tokens=max(0, as_int(tokens.get("completion_tokens")) or 0),
        cost_usd=max(0.0, as_number(at(metrics, "accumulated_cost")) or 0.0),
    )


def _is_new(event: dict[str, Any]) -> bool:
    """Whether it is an event of the SDK."""
    return isinstance(event.get("kind"), str)


def _tool(event: dict[str, Any]) -> str:
    """What an action does: its kind (version 0), or the name of its tool (SDK); "" for what is no action."""
    if _is_new(event):
        return as_text(event.get("tool_name")) if event["kind"] == "ActionEvent" else ""
    return as_text(event.get("action"))


def _acts(event: dict[str, Any]) -> bool:
    """Whether it is an action of the agent that does something."""
    tool = _tool(event)
    if _is_new(event):
        return event["kind"] == "ActionEvent" and tool not in _SAYING_TOOLS
    return event.get("source") == "agent" and tool not in _NO_STEP


def _of_a_person(event: dict[str, Any]) -> bool:
    """Whether it is something that a person did in the agent's place (version 0)."""
    return event.get("source") == "user" and not _is_new(event) and _tool(event) not in _NO_STEP


def _id_of_call(event: dict[str, Any]) -> str:
    """What the result of an action names it by."""
    return as_text(event.get("tool_call_id") if _is_new(event) else event.get("id")) or "no id"


def _reply_of(event: dict[str, Any]) -> str:
    """The reply of the model that an action came in; "" where that is not told."""
    if _is_new(event):
        return as_text(event.get("llm_response_id"))
    return as_text(at(event, "tool_call_metadata", "model_response", "id"))


def _turns(acts: Sequence[dict[str, Any]]) -> list[int]:
    """The number of the turn of each action: those of one reply share it."""
    turns: list[int] = []
    seen: dict[str, int] = {}
    newest = -1
    for event in acts:
        reply = _reply_of(event)
        turn = seen.get(reply, newest + 1)
        newest = max(newest, turn)
        turns.append(turn)
        if reply:
            seen[reply] = turn
    return turns


def _said(event: dict[str, Any], others: set[str]) -> Iterator[dict[str, Any]]:
    """What is no action of the agent as messages; `others` are the ids of what persons did."""
    if _is_new(event):
        yield from _of_sdk(event)
    else:
        yield from _of_version_0(event, others)


def _call(event: dict[str, Any]) -> dict[str, Any]:
    """An action as a call, by the name and with the arguments that the model gave."""
    if _is_new(event):
        thought = text_of_content(as_list(event.get("thought")))
        name, given = event.get("tool_name"), event.get("tool_call")
        arguments = at(given, "arguments") or at(given, "function", "arguments")
        arguments = arguments or _without(as_dict(event.get("action")))
    else:
        thought = as_text(at(event, "args", "thought"))
        about = as_dict(event.get("tool_call_metadata"))
        name = as_text(about.get("function_name")) or event.get("action")
        arguments = _asked(about) or _without(as_dict(event.get("args")))
    call = {"id": _id_of_call(event), "name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": thought,
        "reasoning_content": event.get("reasoning_content"),
        "tool_calls": [call],
    }


def _without(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in arguments.items() if k not in _NO_ARGUMENT and v is not None}


def _asked(about: dict[str, Any]) -> Any:
    """The arguments of this call in the reply of the model."""
    for call in as_list(at(about, "model_response", "choices", 0, "message", "tool_calls")):
        if at(call, "id") == about.get("tool_call_id"):
            return at(call, "function", "arguments")
    return None


def _of_version_0(event: dict[str, Any], others: set[str]) -> Iterator[dict[str, Any]]:
    args, said = as_dict(event.get("args")), as_text(event.get("message"))
    match as_text(event.get("action")):
        case "system":
            yield {"role": "system", "content": args.get("content") or said}
        case "message":
            role = "user" if event.get("source") == "user" else "assistant"
            yield {"role": role, "content": args.get("content") or said}
        case "finish" | "reject":
            last = as_text(args.get("final_thought")) or as_text(at(args, "outputs", "content")) or said
            yield {"role": "assistant", "content": last or as_text(args.get("thought"))}
        case "think":
            yield {
                "role": "assistant",
                "content": "",
                "reasoning_content": as_text(args.get("thought")) or said,
            }
    if _of_a_person(event):
        yield {"role": "user", "content": said}
    kind = as_text(event.get("observation"))
    if kind and kind not in _SILENT:
        cause = as_text(event.get("cause")) or "no call"
        content = event.get("content") if event.get("content") is not None else said or None
        if cause in others:
            yield {"role": "user", "content": content}
        else:
            yield {"role": "tool", "tool_call_id": cause, "content": content} | _marks(event, kind)


def _marks(event: dict[str, Any], kind: str) -> dict[str, Any]:
    """What an observation says of success: its kind, an exit code, or a flag."""
    if kind == "error":
        return {"is_error": True}
    extras = as_dict(event.get("extras"))
    code = as_int(at(extras, "metadata", "exit_code"))
    code = as_int(extras.get("exit_code")) if code is None else code
    if code is not None:
        return _of_process(code)
    success, failed = event.get("success"), extras.get("error")
    if isinstance(success, bool):
        return {"is_error": not success}
    return {"is_error": failed} if isinstance(failed, bool) else {}


def _of_sdk(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match event["kind"]:
        case "SystemPromptEvent":
            yield {"role": "system", "content": event.get("system_prompt")}
        case "MessageEvent":
            role = "assistant" if event.get("source") == "agent" else "user"
            message = as_dict(event.get("llm_message"))
            thought = message.get("reasoning_content")
            yield {"role": role, "content": message.get("content"), "reasoning_content": thought}
        case "ActionEvent":
            words = as_text(at(event, "action", "message")) or as_text(at(event, "action", "thought"))
            thought = text_of_content(as_list(event.get("thought")))
            if _tool(event) == "think":
                yield {"role": "assistant", "content": "", "reasoning_content": words or thought}
            else:
                yield {"role": "assistant", "content": words or thought}
        case "ObservationEvent" if as_text(event.get("tool_name")) not in _SAYING_TOOLS:
            yield _result(event, as_dict(event.get("observation")))
        case "AgentErrorEvent":
            yield _result(event, {"content": event.get("error"), "is_error": True})
        case "UserRejectObservation":
            yield _result(event, {"content": f"Action rejected: {as_text(event.get('rejection_reason'))}"})


def _result(event: dict[str, Any], observation: dict[str, Any]) -> dict[str, Any]:
    """An observation of the SDK; older ones hold their text in `output`."""
    held = [observation.get(key) for key in ("content", "output", "text")]
    content = next((c for c in held if c), next((c for c in held if c is not None), None))
    code = as_int(observation.get("exit_code"))
    code = as_int(at(observation, "metadata", "exit_code")) if code is None else code
    item = {"role": "tool", "tool_call_id": _id_of_call(event), "content": content}
    if observation.get("is_error") is True or (code is None and observation.get("is_error") is False):
        item["is_error"] = observation["is_error"]
    return item | ({} if code is None else _of_process(code))


def _of_process(code: int) -> dict[str, Any]:
    """What an exit code says; below 0 the process still runs."""
    return {"status": "in_progress"} if code < 0 else {"exit_code": code}


def _unknown(event: dict[str, Any]) -> bool:
    return _is_new(event) and event["kind"] not in _KNOWN_KINDS


def _broken(events: Sequence[dict[str, Any]]) -> str:
    """The last error of the conversation itself (SDK)."""
    for event in reversed(events):
        if event.get("kind") == "ConversationErrorEvent":
            parts = (as_text(event.get("code")), as_text(event.get("detail"))[:1_000])
            return ": ".join(part for part in parts if part) or "the conversation broke off"
    return ""


def _usage(events: Sequence[dict[str, Any]], calls: int) -> Usage:
    for event in reversed(events):
        if (metrics := event.get("llm_metrics")) and at(metrics, "accumulated_token_usage"):
            return usage_of(metrics, calls)
        if event.get("kind") == "ConversationStateUpdateEvent" and (stats := stats_of(event)):
            total = Usage(calls=calls)
            for metrics in stats:
                total += usage_of(metrics, 0)
            return total
    return Usage(calls=calls)


def stats_of(event: dict[str, Any]) -> list[Any]:
    """The running totals of all models that an update of the state holds."""
    value = event.get("value")
    if event.get("key") != "stats":
        value = at(value, "stats")
    used = at(value, "usage_to_metrics") or at(value, "service_to_metrics")
    return [m for m in as_dict(used).values() if as_dict(at(m, "accumulated_token_usage"))]


def _model(events: Sequence[dict[str, Any]]) -> str:
    """The model of most events that name one."""
    names: list[Any] = []
    for event in events:
        if metrics := event.get("llm_metrics"):
            names.append(at(metrics, "accumulated_token_usage", "model"))
        if event.get("kind"):
            names += [at(m, "model_name") for m in stats_of(event)]
    named = Counter(name for n in names if (name := as_text(n)) and name != "default")
    return named.most_common(1)[0][0] if named else ""
