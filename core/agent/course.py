"""Course: one rollout under way. What was said, what was called, and what is left of its limits.

1. A tool call is a step. Those beyond `max_steps` are not run, and the agent is told so; they are in the messages,
   but are no steps.
2. What a limit ends is never an error: the agent gets one last turn without tools to give the best answer it has.
   The tools' share of the time ends `LAST_TURN` before the rollout's, so that this turn lies within the limit too; an
   answer that is not there when the whole time is up is not waited for.
3. A call that failed, for whatever reason, is told to the model as text, so that it can do better.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.agent.tool import MAX_ERROR, MAX_OUTPUT, Done, Tool, ToolError, bounded, clean
from core.errors import WinnowError
from core.rollout import Message, Step, Trajectory
from core.settings import AgentConfig
from core.trust import scrub

LAST_TURN = 0.1
"""Share of the time limit that is kept for the last turn."""

MIN_ROOM = 64
"""Tokens that a tool's output must have room for; with less, the context counts as full."""

_CHARACTERS = 2
"""Characters of output for one free token: few, since what tools give is not always prose."""

_MAX_NAME = 100

Limit = Literal["step limit", "time limit", "length"]

_WHY: dict[Limit, str] = {
    "step limit": "You may call no more tools: their number is limited.",
    "time limit": "You may call no more tools: the time is up.",
    "length": "You may call no more tools: the conversation is as long as it may be.",
}


@dataclass
class Call:
    """One tool call of the model."""

    id: str
    tool: str
    parameters: dict[str, Any]
    problem: str = ""
    """Why it cannot be run as it stands."""
    refused: str = ""
    """Why it is not run at all."""
    told: str | None = None
    """What the model was told about it."""
    step: Step | None = None


class Course:
    """The record of a rollout, and its limits."""

    def __init__(
        self, config: AgentConfig, tools: Sequence[Tool], messages: Sequence[Message], context_length: int
    ) -> None:
        """Start the clock.

        Args:
            config: its limits.
            tools: all that may be called.
            messages: the prompt.
            context_length: tokens of prompt and reply together.
        """
        self.limit: Limit | None = None
        """Which limit was reached."""
        self.fatal: WinnowError | None = None
        """What ends the whole run."""
        self.answer = ""
        """The last text of the model."""
        self.answered = False
        """Whether the model replied at all: if not, there is nothing to judge."""
        self.cut = False
        """Whether that text ended at its limit of tokens."""
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._config = config
        self._context_length = context_length
        self._messages = list(messages)
        self._calls: list[Call] = []
        self._unsettled: list[Call] = []
        self._output_limit = MAX_OUTPUT
        self._now: Callable[[], float] = asyncio.get_running_loop().time
        self._started = self._now()
        self.ends_at = self._started + config.time_limit_s
        """On the event loop's clock."""
        self._tools_until = self._started + config.time_limit_s * (1 - LAST_TURN)

    def ask(self, text: str) -> None:
        """Something is said to the model."""
        self._settle()
        self._messages.append(Message(role="user", content=text))

    def last_word(self) -> str | None:
        """What to say before a turn without tools; None while there may be others."""
        if self.limit is None and self._calls and self._now() >= self._tools_until:
            self.limit = "time limit"
        if self.limit is None:
            return None
        return f"{_WHY[self.limit]} Give your final answer now, as well as you can."

    def reply(
        self, text: str, calls: Sequence[tuple[str, str]], *, tokens: int, next_tokens: int, cut: bool
    ) -> list[Call]:
        """The model replied.

        Args:
            text: what it said.
            calls: name and arguments (JSON text) of each call, in order.
            tokens: of the conversation so far.
            next_tokens: most tokens of the next reply.
            cut: whether the reply ended at its limit of tokens.

        Returns:
            The calls, numbered, each to be given to `work`.
        """
        self._settle()
        self.answered = True
        self.cut = cut
        if text or not calls:
            self.answer = text
        room = (self._context_length - tokens - 2 * next_tokens) // max(len(calls), 1)
        self._output_limit = min(MAX_OUTPUT, max(room, MIN_ROOM) * _CHARACTERS)
        made = [self._call(name, arguments, room) for name, arguments in calls]
        shown = [f"[calls {c.tool} with {json.dumps(c.parameters, ensure_ascii=False)}]" for c in made]
        self._messages.append(
            Message(role="assistant", content="\n".join([*([text] if text else []), *shown]))
        )
        self._unsettled = made
        return made

    def call(self, call_id: str) -> Call:
        """The call of that id."""
        return next(c for c in self._unsettled if c.id == call_id)

    async def work(self, call: Call) -> str:
        """Run a call, and give what the model is told about it.

        Raises:
            WinnowError: what ends the whole run (code that cannot be confined here, ...); it is in `fatal` too.
        """
        if call.refused:
            call.told = call.refused
            return call.told
        began = self._now()
        error: str | None = None
        try:
            async with asyncio.timeout_at(self._tools_until):
                done = await self._run(call)
            output, retries = done.output, done.retries
        except TimeoutError:
            self.limit = self.limit or "time limit"
            output, retries, error = (
                "",
                0,
                "TimeoutError: stopped, because the time of the whole attempt is up",
            )
        except ToolError as e:
            output, retries, error = e.output, e.retries, str(e)
        except WinnowError as e:
            self.fatal = e
            raise
        except Exception as e:  # noqa: BLE001  whatever a tool meets is for the model to deal with, not for the run
            output, retries, error = "", 0, f"{type(e).__name__}: {e}"
        secrets = self._tools[call.tool].secrets if call.tool in self._tools else ()
        output = scrub(bounded(clean(output), self._output_limit), secrets)
        error = None if error is None else scrub(bounded(clean(error), MAX_ERROR), secrets)
        call.step = _step(call, output, error, self._now() - began, retries)
        call.told = output if error is None else f"Error: {error}" + (f"\n{output}" if output else "")
        return call.told

    def trajectory(self, finish_reason: str | None) -> Trajectory:
        """All of it."""
        self._settle()
        steps = tuple(c.step for c in self._calls if c.step is not None)
        return Trajectory(
            messages=tuple(self._messages), steps=steps, answer=self.answer, finish_reason=finish_reason
        )

    @property
    def duration_s(self) -> float:
        """Seconds since it began."""
        return self._now() - self._started

    def _call(self, name: str, arguments: str, room: int) -> Call:
        parameters, problem = _read(arguments)
        call = Call(f"call_{len(self._calls)}", clean(name)[:_MAX_NAME] or "(no name)", parameters, problem)
        reached: Limit | None = None
        if sum(not c.refused for c in self._calls) >= self._config.max_steps:
            reached = "step limit"
        elif self._now() >= self._tools_until:
            reached = "time limit"
        elif room < MIN_ROOM:
            reached = "length"
        if reached:
            self.limit = self.limit or reached
            call.refused = f"Not run. {_WHY[reached]}"
        self._calls.append(call)
        return call

    async def _run(self, call: Call) -> Done:
        tool = self._tools.get(call.tool)
        if tool is None:
            names = ", ".join(self._tools) or "none at all"
            raise ToolError(f"there is no tool {call.tool!r}; there are: {names}")
        if call.problem:
            raise ToolError(call.problem)
        return await tool.call(call.parameters, self._tools_until - self._now())

    def _settle(self) -> None:
        """Write down what the model was told about its calls, in their order."""
        for call in self._unsettled:
            if call.told is None:  # given up in the middle, or never begun
                call.told = "Error: stopped, because the time of the whole attempt is up"
                call.step = _step(call, "", "TimeoutError: stopped before it had ended", None, 0)
            self._messages.append(Message(role="tool", name=call.tool, content=call.told))
        self._unsettled = []


def _step(call: Call, output: str, error: str | None, duration_s: float | None, retries: int) -> Step:
    return Step(
        tool=call.tool,
        parameters=call.parameters,
        output=output,
        success=error is None,
        error=error,
        duration_s=duration_s,
        retries=retries,
    )


def _read(arguments: str) -> tuple[dict[str, Any], str]:
    """The parameters of a call, and what is wrong with them; what is no JSON object is kept as it came."""
    text = clean(arguments)
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        return {"unreadable": text}, f"the arguments are no JSON: {str(e)[:200]}"
    if not isinstance(value, dict):
        return {"unreadable": text}, "the arguments are no JSON object"
    # Half surrogates may have come as escapes, which only now have become characters.
    return json.loads(clean(json.dumps(value, ensure_ascii=False))), ""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
