"""A trace of spans, put together into one conversation.

Tracing tools record what an agent did as calls of a model and runs of tools, each with a time. A call of a model
usually repeats all that was said before, so that the longest call holds the whole conversation; where it does not,
the calls and runs are told one after the other. A run of a tool says what the conversation cannot: whether it failed,
and how long it took.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from core.importers.dialects import (
    MAX_ERROR,
    Conversation,
    arguments_of,
    conversation,
    new_message,
    new_step,
    text_of_content,
    told,
)
from core.importers.getting import as_dict, as_list, as_said, as_text
from core.importers.json_text import parsed
from core.importers.source import bounded
from core.rollout import Message, Step


class Part(NamedTuple):
    """One part of a trace: a call of a model, a run of a tool, or what holds others."""

    own: str
    """Its id."""
    parent: str
    """The id of the part that it lies in; "" of a root."""
    kind: str
    """In the words of the file."""
    begun: float | None
    """Seconds since 1970."""
    ended: float | None
    told: dict[str, Any]
    """As it stands in the file."""

    @property
    def at(self) -> float:
        """When it began, in seconds; 0 where nothing tells."""
        return self.begun or 0.0

    @property
    def duration_s(self) -> float | None:
        """Seconds that it took, where its times tell."""
        begun, ended = self.begun, self.ended
        return round(ended - begun, 3) if begun and ended and ended >= begun else None


class ModelCall(NamedTuple):
    """One call of a model. Its messages are read only when they are asked for: every call repeats those before it."""

    at: float
    """When it began, in seconds; calls without a time stand in the order of the file."""
    size: int
    """How much went in, by any measure that the calls of a trace share."""
    heard: Callable[[], list[Any]]
    """The messages that went in, in any dialect."""
    said: Callable[[], list[Any]]
    """The messages that came out."""


class ToolRun(NamedTuple):
    """One run of a tool. What it took and gave is read only when it is asked for: the conversation mostly tells it."""

    at: float
    tool: str
    given: Any
    """Its parameters, as they are told."""
    returned: Any
    """What it returned, as it is told; None where nothing was recorded."""
    failed: bool | None = None
    """Whether the span is marked as an error, or (False) as gone well; None without a mark: it may have failed."""
    error: str = ""
    duration_s: float | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters; some tools wrap them once more."""
        given = arguments_of(unpacked(self.given))
        inner = given.get("input")
        return inner if len(given) == 1 and isinstance(inner, dict) else given

    @property
    def output(self) -> str | None:
        """What it returned, as text; None where no output was recorded, which is not an empty one."""
        return None if self.returned is None else output_in(self.returned)


class Told(NamedTuple):
    """A trace as one conversation."""

    conversation: Conversation
    apart: int = 0
    """Runs of tools that the model of the conversation did not ask for (of a sub-agent, of the program)."""

    @property
    def asked(self) -> str:
        """The first thing that a user said; "" where nobody did."""
        users = (m.content for m in self.conversation.messages if m.role == "user")
        return next((u for u in users if u.strip()), "")


def told_of(calls: Sequence[ModelCall], runs: Sequence[ToolRun]) -> Told:
    """The conversation that the calls and runs of one trace make up; its steps know what the runs tell."""
    calls = sorted(calls, key=lambda c: c.at)
    runs = sorted(runs, key=lambda r: r.at)
    longest = max(calls, key=lambda c: (c.size, c.at), default=None)
    heard = longest.heard() if longest is not None else []
    if longest is not None and (len(calls) == 1 or any(map(_is_turn_of_a_model, heard))):
        read = conversation([*heard, *longest.said()])
    else:
        read = _one_after_the_other(calls, runs)
    if not read.steps:
        return Told(read._replace(steps=tuple(_step_of(run) for run in runs)))
    steps, apart = _with_runs(read.steps, runs)
    return Told(Conversation(read.messages, tuple(steps), read.answer, read.orphans), apart)


def _is_turn_of_a_model(message: Any) -> bool:
    """Whether a message that went into a call was the model's own before: its words, or a call of a tool."""
    item = as_dict(message)
    role = as_text(item.get("role") or item.get("type")).lower()
    return role in ("assistant", "ai", "model", "aimessage") or role.endswith("_call")


def _one_after_the_other(calls: Sequence[ModelCall], runs: Sequence[ToolRun]) -> Conversation:
    messages: list[Message] = []
    steps: list[Step] = []
    answer = ""
    turn = -1
    events: list[ModelCall | ToolRun] = [*calls, *runs]
    for event in sorted(events, key=lambda e: e.at):
        if isinstance(event, ToolRun):
            messages.append(new_message(role="tool", content=event.output or "", name=event.tool))
            continue
        turn += 1
        if turn == 0:
            messages += conversation(event.heard()).messages
        part = conversation(event.said())
        messages += part.messages
        steps += [new_step(**(vars(s) | {"turn": turn})) for s in part.steps]
        answer = part.answer or answer
    return Conversation(tuple(messages), tuple(steps), answer, 0)


def _with_runs(steps: tuple[Step, ...], runs: Sequence[ToolRun]) -> tuple[list[Step], int]:
    """The steps with what the runs tell of them, and how many runs fit none."""
    found = list(steps)
    free = list(range(len(found)))
    apart = 0
    for run in runs:
        place = _place_of(run, free, found)
        if place is None:
            apart += 1
            continue
        free.remove(place)
        step = found[place]
        if run.failed is not None or (step.success is None and not step.output):
            found[place] = _step_of(run, step)
        elif run.duration_s is not None:
            found[place] = new_step(**(vars(step) | {"duration_s": run.duration_s}))
    return found, apart


def _place_of(run: ToolRun, free: list[int], steps: list[Step]) -> int | None:
    """The first free step of the same tool and parameters, else of the same tool."""
    same = [place for place in free if steps[place].tool == run.tool]
    if len(same) > 1:
        parameters = run.parameters
        return next((place for place in same if steps[place].parameters == parameters), same[0])
    return same[0] if same else None


def _step_of(run: ToolRun, asked: Step | None = None) -> Step:
    """A run as a step; where a step of the conversation asked for it, that knows the turn and the parameters."""
    own = run.output
    output = asked.output if asked and asked.output and not own else own
    outcome = told(output, run.failed)
    error = bounded(run.error, MAX_ERROR) if run.failed and run.error else outcome.error
    return new_step(
        tool=run.tool or "unknown",
        parameters=asked.parameters if asked else run.parameters,
        output=output or "",
        success=outcome.success,
        error=error,
        told_by=outcome.rung,
        duration_s=run.duration_s,
        turn=asked.turn if asked else None,
    )


def within(own: str, parents: Mapping[str, str], inner: Container[str]) -> bool:
    """Whether a span lies within one of some spans, at any depth.

    Args:
        own: its id.
        parents: the id of each span's parent; they may go round in circles.
        inner: the ids of the spans in question; its own does not count.
    """
    above = own
    for _ in parents:
        above = parents.get(above, "")
        if not above or above == own:
            return False
        if above in inner:
            return True
    return False


def most_frequent(names: Iterable[str]) -> str:
    """The name that occurs most often, of equals the first; "" where there is none."""
    counts: dict[str, int] = {}
    for name in filter(None, names):
        counts[name] = counts.get(name, 0) + 1
    return max(counts, key=counts.__getitem__, default="")


def size_of(given: Any) -> int:
    """How much went into a call: characters of text, or messages, wherever the input holds them."""
    if isinstance(given, dict):
        return sum(size_of(v) for v in given.values() if isinstance(v, str | list))
    if isinstance(given, list) and given and isinstance(given[0], list):
        return len(given[0])
    return len(given) if isinstance(given, str | list) else 0


def unpacked(value: Any) -> Any:
    """A value that may be JSON in a string, once or twice over; other strings stand as they are."""
    if not isinstance(value, str):
        return value
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            value = parsed(value)
        except (ValueError, RecursionError):
            break  # cut off by a limit on attributes, or plain text that looks like JSON
    return value


_DEPTH = 20
"""How deep an input may wrap its messages."""

_HOLDERS = ("messages", "input", "output", "choices", "contents", "inputs", "outputs", "generations")
_QUESTIONS = (
    "prompt",
    "question",
    "query",
    "input",
    "inputs",
    "task",
    "user_message",
    "user_input",
    "message",
    "text",
    "content",
)
_BLOCKS = {"text", "input_text", "output_text", "thinking", "tool_use", "tool_result", "toolCall", "image"}


def messages_in(value: Any, role: str, depth: int = _DEPTH) -> list[Any]:
    """The messages that the input or output of a model call holds.

    Args:
        value: a list of messages or items, an object that holds one, a message, or text; perhaps as JSON in a string.
        role: of a message that does not tell its own: "user" or "assistant".
        depth: how deep the messages may lie; what lies deeper is told as text.
    """
    if isinstance(value, str):
        value = unpacked(value)
    if isinstance(value, dict) and depth > 0:
        return _in_object(value, role, depth)
    if isinstance(value, list):
        return _in_list(value, role, depth)
    return [{"role": role, "content": as_said(value)}] if value is not None and value != "" else []


def _in_list(value: list[Any], role: str, depth: int) -> list[Any]:
    kinds = set(map(type, value))
    if kinds == {dict}:
        if depth > 0 and all("role" in v and "lc" not in v for v in value):
            return value
        if all("role" not in v and as_text(v.get("type")) in _BLOCKS for v in value):
            return [{"role": role, "content": value}]
    if depth <= 0:
        return [{"role": role, "content": as_said(value)}]
    if kinds == {list}:
        return messages_in(value[0], role, depth - 1)  # a batch of conversations, as LangChain writes it
    return [m for v in value for m in messages_in(v, role, depth - 1)]


def _in_object(value: dict[str, Any], role: str, depth: int) -> list[Any]:
    if "lc" in value and isinstance(inner := value.get("kwargs"), dict):
        return [_of_langchain(value, inner)]
    if "role" in value:
        return [value]
    if "parts" in value or isinstance(value.get("type"), str):
        return [value if "type" in value else {"role": role, **value}]
    return _held_in(value, role, depth - 1)


def _of_langchain(value: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """A message as LangChain serialises its objects: the class tells whose it is."""
    kind = (
        as_text((as_list(value.get("id")) or [""])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
    )
    return {"role": kind or as_text(inner.get("type")), **inner}


def _held_in(value: dict[str, Any], role: str, depth: int) -> list[Any]:
    for key in _HOLDERS:
        if key in value and isinstance(held := unpacked(value[key]), list):
            system = value.get("system") or value.get("instructions") if role == "user" else None
            first = [{"role": "system", "content": system}] if system else []
            return first + messages_in(held, role, depth)
    if isinstance(value.get("message"), dict):
        return messages_in(value["message"], role, depth)
    if "content" in value or "tool_calls" in value:
        return [{"role": role, **value}]
    return [{"role": role, "content": question_in(value, depth)}]


def question_in(value: Any, depth: int = _DEPTH) -> str:
    """What the input of a trace asks: the first message of a user, a prompt, or the input as text."""
    value = unpacked(value)
    if isinstance(value, list) and depth > 0:
        users = [
            m.content for m in conversation(messages_in(value, "user", depth)).messages if m.role == "user"
        ]
        return next((u for u in users if u.strip()), "")
    if not isinstance(value, dict) or depth <= 0:
        return as_said(value) if value is not None else ""
    for key in ("messages", *_QUESTIONS):
        held = unpacked(value.get(key))
        if isinstance(held, list | dict) and held:
            if (asked := question_in(held, depth - 1)) or key == "messages":
                return asked
        elif isinstance(held, str) and held.strip():
            return as_text(held)
    given = [*as_list(value.get("args")), *as_dict(value.get("kwargs")).values()]
    if texts := [g for g in given if isinstance(g, str) and g.strip()]:
        return as_text(texts[0])  # a traced function
    return as_said(value) if value else ""


def output_in(value: Any) -> str:
    """An output as text; what is none is ""."""
    value = unpacked(value)
    if isinstance(value, dict) and set(value) <= {"content", "role", "type", "isError", "is_error"} and value:
        return text_of_content(value.get("content"))
    return text_of_content(value)
