"""One rollout, read a part at a time: an outline of its steps, one step, a few messages, where a text is.

A trajectory may hold 20 MB in one output. What leaves here is bounded: a line a step, and of a long text its beginning
and its end with its length.

1. A step *failed* where it says so or has an error (`core.evidence.recovery`); no recorded result is neither.
2. A *retry* is the very same call right after it failed: it folds under the first of its kind.
3. A failed step is *recovered* where the call after it, or after its retries, worked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from core.evidence.recovery import Recovery, error_signature, recoveries
from core.record import Record
from core.rollout import Ended, Message, Step, Trajectory
from core.store import Store

Which = Literal["all", "failed", "recovered"]
Kind = Literal["step", "message", "answer"]

SHOWN = 4_000
"""Characters of a long text that are read at its beginning, and at its end."""
PRETTY = 100_000
"""Characters up to which JSON is spaced out."""
GIST = 160
FIND = 200
"""Characters that can be looked for at most."""
LOOKED = 60_000_000
"""Characters that one search looks at."""
PLACES = 200
"""Places of a text that are told, each with how often it is there."""
AROUND = 60

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


class Excerpt(Record):
    """A text, or its beginning and its end."""

    head: str = ""
    tail: str = ""
    size: int = 0
    """Characters of the whole."""

    @property
    def hidden(self) -> int:
        """Characters between the two."""
        return self.size - len(self.head) - len(self.tail)


class Line(Record):
    """A step in the outline."""

    number: int
    """From 1."""
    tool: str
    gist: str
    """Its parameters, on one line."""
    result: Ended
    duration_s: float | None
    retries: int
    """How often the tool itself tried again."""
    characters: int
    """Of its output."""
    retry_of: int = 0
    """Number of the step that it repeats; 0 where it is no retry."""
    repeated: int = 0
    """Retries that are folded under it."""
    after: str = ""
    """Of a failed step: what followed, in words."""
    recovered: bool = False
    recovers: int = 0
    """Number of the failed step that it made good; 0 where it made good none."""


class Said(Record):
    """A message in the outline."""

    number: int
    role: str
    name: str
    gist: str
    characters: int


class StepView(Record):
    """One step, as far as it is read."""

    line: Line
    error: Excerpt
    signature: str
    """What kind of error it met; empty where none."""
    parameters: Excerpt
    output: Excerpt
    is_json: bool
    """Whether the output is JSON and short enough to be spaced out."""


class Place(Record):
    """A text that holds what was looked for."""

    kind: Kind
    number: int
    """Of the step or message, from 1."""
    part: str
    """ "tool", "parameters", "error", "output", "content" or "answer"."""
    count: int
    at: int
    """Character of the first one, from 0."""
    before: str
    match: str
    after: str


class Found(Record):
    """Where a text is in a rollout."""

    total: int = 0
    places: tuple[Place, ...] = ()
    complete: bool = True
    """Whether all was looked at, and every place is told."""


class Reading:
    """A trajectory that is open for reading; it is not changed, so several may read it."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self.lines = outline(trajectory)

    @property
    def answer_is_last(self) -> bool:
        """Whether the answer is the last message."""
        return _repeats(self._trajectory.messages, self._trajectory.answer)

    @property
    def messages(self) -> int:
        return len(self._trajectory.messages)

    @property
    def failed(self) -> list[int]:
        """Numbers of the failed steps."""
        return [line.number for line in self.lines if line.result == "failed"]

    def only(self, which: Which = "all", tool: str = "") -> list[Line]:
        """The lines of some steps, retries among them."""
        return [
            line
            for line in self.lines
            if (not tool or line.tool == tool)
            and (which != "failed" or line.result == "failed")
            and (which != "recovered" or line.recovered or line.recovers)
        ]

    def step(self, number: int, *, head: int = SHOWN, spaced: bool = True) -> StepView:
        """One step.

        Args:
            number: from 1.
            head: characters of its output that are read at the beginning.
            spaced: whether output that is short JSON is spaced out.
        """
        step = self._trajectory.steps[number - 1]
        pretty = indented(step.output)
        return StepView(
            line=self.lines[number - 1],
            error=excerpt(step.error or ""),
            signature=error_signature(step) or "",
            parameters=excerpt(_parameters(step)),
            output=excerpt(pretty if pretty is not None and spaced else step.output, head),
            is_json=pretty is not None,
        )

    def said(self, first: int, last: int) -> list[Said]:
        """Lines of messages, from one number up to another."""
        return [
            Said(
                number=number,
                role=message.role,
                name=message.name or "",
                gist=_one_line(message.content, GIST),
                characters=len(message.content),
            )
            for number, message in enumerate(self._trajectory.messages[first - 1 : last], first)
        ]

    def message(self, number: int, *, head: int = SHOWN, tail: int = SHOWN) -> Excerpt:
        """One message, from 1."""
        return excerpt(self._trajectory.messages[number - 1].content, head, tail)

    def answer(self, *, head: int = SHOWN) -> Excerpt:
        """The final answer."""
        return excerpt(self._trajectory.answer, head)

    def find(self, text: str) -> Found:
        """Where a text is; case does not count."""
        wanted, found, total, looked, told = text[:FIND].casefold(), list[Place](), 0, 0, True
        if not wanted.strip():
            return Found()
        for kind, number, part, own in _texts(self._trajectory):
            looked += len(own)
            if looked > LOOKED:
                return Found(total=total, places=tuple(found), complete=False)
            if count := own.casefold().count(wanted):
                total += count
                told = len(found) < PLACES
                if told:
                    found.append(_place(kind, number, part, own, count, text[:FIND]))
        return Found(total=total, places=tuple(found), complete=told)


def raw(store: Store, rollout_id: str, kind: Kind, number: int = 1) -> str:
    """The whole of one output, message or answer, for a download."""
    trajectory = store.trajectories.get(rollout_id)
    if kind == "step":
        return trajectory.steps[number - 1].output
    return trajectory.messages[number - 1].content if kind == "message" else trajectory.answer


def whole(store: Store, rollout_id: str) -> str:
    """A rollout with all that is known of it, as JSON."""
    return store.groups.rollout(rollout_id).model_dump_json(indent=2)


def excerpt(text: str, head: int = SHOWN, tail: int = SHOWN) -> Excerpt:
    """A text, or the beginning and the end of a long one."""
    if len(text) <= head + tail:
        return Excerpt(head=text, size=len(text))
    return Excerpt(head=text[:head], tail=text[len(text) - tail :], size=len(text))


def outline(trajectory: Trajectory) -> list[Line]:
    """A line for every step."""
    after = {one.step: one for one in recoveries(trajectory)}
    heads = _heads(after)
    good = _made_good(after)
    recovers = {end: first for first, end in sorted(good.items(), reverse=True)}
    repeated: dict[int, int] = {}
    for head in heads.values():
        repeated[head] = repeated.get(head, 0) + 1
    return [
        Line(
            number=i + 1,
            tool=step.tool,
            gist=_gist(step),
            result=step.ended,
            duration_s=step.duration_s,
            retries=step.retries,
            characters=len(step.output),
            retry_of=heads[i] + 1 if i in heads else 0,
            repeated=repeated.get(i, 0),
            after=after[i].words if i in after else "",
            recovered=i in good,
            recovers=recovers[i] + 1 if i in recovers else 0,
        )
        for i, step in enumerate(trajectory.steps)
    ]


def _heads(after: dict[int, Recovery]) -> dict[int, int]:
    """The first of its kind for every retry, by their places."""
    found: dict[int, int] = {}
    for place, one in after.items():
        if one.habit == "retry_same":
            found[place + 1] = found.get(place, place)
    return found


def _made_good(after: dict[int, Recovery]) -> dict[int, int]:
    """The step that made good every failed one that was recovered, by their places."""
    found: dict[int, int] = {}
    for place in sorted(after, reverse=True):
        one = after[place]
        if one.worked:
            found[place] = place + 1
        elif one.habit == "retry_same" and place + 1 in found:
            found[place] = found[place + 1]
    return found


def indented(text: str) -> str | None:
    """JSON on many lines: only white space between its parts is another one; None for other and for long texts."""
    if len(text) > PRETTY or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    made, depth, tokens = list[str](), 0, _TOKEN.findall(text)
    for before, token in zip(["", *tokens], tokens, strict=False):
        closing = token in "]}"
        depth -= closing
        if (closing and before not in "[{") or (not closing and before and before in "[{,"):
            made.append("\n" + "  " * depth)
        made.append(": " if token == ":" else token)
        depth += token in "[{"
    return "".join(made)


def _parameters(step: Step) -> str:
    if not step.parameters:
        return ""
    flat = json.dumps(step.parameters, ensure_ascii=False, default=str)
    return flat if len(flat) > PRETTY else indented(flat) or flat


def _gist(step: Step) -> str:
    """`path=reports/q2.json, key=total`: as much of the parameters as one line takes."""
    parts, room = list[str](), GIST
    for name, value in step.parameters.items():
        said = value[: room * 2] if isinstance(value, str) else _flat(value, room)
        parts.append(f"{name[:room]}={said}")
        room -= len(parts[-1])
        if room <= 0:
            break
    return _one_line(", ".join(parts), GIST)


def _flat(value: object, room: int) -> str:
    if isinstance(value, dict | list) and len(value) > room:
        return f"{len(value):,} entries"
    return json.dumps(value, ensure_ascii=False, default=str)[: room * 2]


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _texts(trajectory: Trajectory) -> Iterator[tuple[Kind, int, str, str]]:
    """Every text with where it is: kind, number, part."""
    for number, step in enumerate(trajectory.steps, 1):
        yield "step", number, "tool", step.tool
        yield "step", number, "parameters", _parameters(step)
        yield "step", number, "error", step.error or ""
        yield "step", number, "output", step.output
    for number, message in enumerate(trajectory.messages, 1):
        yield "message", number, "content", message.content
    if not _repeats(trajectory.messages, trajectory.answer):
        yield "answer", 1, "answer", trajectory.answer


def _repeats(messages: Sequence[Message], answer: str) -> bool:
    return bool(messages) and messages[-1].role == "assistant" and messages[-1].content == answer


def _place(kind: Kind, number: int, part: str, own: str, count: int, text: str) -> Place:
    exact = re.search(re.escape(text), own, re.IGNORECASE)
    at, end = exact.span() if exact else (0, 0)
    return Place(
        kind=kind,
        number=number,
        part=part,
        count=count,
        at=at,
        before=own[max(0, at - AROUND) : at],
        match=own[at:end],
        after=own[end : end + AROUND],
    )
