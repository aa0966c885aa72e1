"""An attempt as text for a prompt: messages, steps with their outcome and what followed a failure, and how it ended.

A trajectory that does not fit is condensed step by step, head and tail of each, with visible marks; it is never cut
blindly and never dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from core.experience import Experience
from core.extraction import replies
from core.extraction.fitting import clip, fits, fitted, largest
from core.injection import render
from core.rollout import Message, Rollout, Step, Task, Trajectory


class _Part(NamedTuple):
    head: str
    body: tuple[str, ...]
    step: Step | None = None

    def shown(self, characters: int) -> str:
        return "\n".join([self.head, *(clip(text, characters) for text in self.body)])


LEAST_CHARACTERS = 60
"""What is shown of parameters, output and message at the least, before whole steps are left out and counted."""
ERROR_CHARACTERS = 300
"""What is shown of an error at the least: it says most about a failure."""


def condense(task: Task, rollout: Rollout, library: Sequence[Experience], tokens: int) -> str:
    """A trajectory as text of about `tokens` tokens at most.

    Whole where it fits. Else the middle of each step and message is left out, equally far for all; where that
    is not enough, whole steps of the middle are left out and counted, those that worked before those that
    failed. Each place is marked.
    """
    parts = _parts(task, rollout, library)
    longest = max((len(text) for p in parts for text in p.body), default=0)
    whole = _shown(parts, longest, set(range(len(parts))))
    if fits(whole, tokens):
        return whole
    everything = set(range(len(parts)))
    if fits(_shown(parts, LEAST_CHARACTERS, everything), tokens):
        shorter = largest(lambda n: _shown(parts, n + LEAST_CHARACTERS - 1, everything), longest, tokens)
    else:
        order = sorted(everything, key=lambda i: _rank(i, parts))
        shorter = largest(lambda n: _shown(parts, LEAST_CHARACTERS, set(order[:n])), len(parts), tokens)
    return fitted(shorter, tokens)


def _rank(i: int, parts: Sequence[_Part]) -> float:
    step = parts[i].step
    return min(i, len(parts) - 1 - i) / (3 if step is not None and failed(step) else 1)


def _parts(task: Task, rollout: Rollout, library: Sequence[Experience]) -> list[_Part]:
    trajectory = rollout.trajectory
    parts = [
        _Part(f"[{m.role}]", (content,))
        for m in trajectory.messages
        if (content := _worth_showing(m, task, rollout, library))
    ]
    steps = trajectory.steps
    parts += [
        _step_part(i, step, steps[i] if i < len(steps) else None) for i, step in enumerate(steps, start=1)
    ]
    return [*parts, _Part("[final answer]", (_answer(trajectory),))]


def _worth_showing(m: Message, task: Task, rollout: Rollout, library: Sequence[Experience]) -> str:
    """What of a message is not shown elsewhere in the prompt."""
    if m.role == "user" and m.content == task.question:
        return ""
    if m.role == "tool" and rollout.trajectory.steps:
        return ""
    if m.role == "assistant" and m.content == rollout.trajectory.answer:
        return ""
    if m.role == "system" and rollout.injected:
        by_id = {e.id: e for e in library}
        injected = render([by_id[i] for i in rollout.injected.values() if i in by_id])
        return m.content.removesuffix(injected.text).rstrip()
    return m.content


_ENDS = {
    "length": "cut off at the token limit",
    "step limit": "stopped at the step limit, before it had ended by itself",
    "time limit": "stopped at the time limit, before it had ended by itself",
    "gate": "the gate did not let this answer through",
}
"""What is said of an end that was not the attempt's own."""


def _answer(trajectory: Trajectory) -> str:
    reason = trajectory.finish_reason
    end = "" if reason in (None, "stop") else f"\n({_ENDS.get(reason or '', f'ended: {reason}')})"
    return (trajectory.answer or "(empty)") + end


def _step_part(number: int, step: Step, following: Step | None) -> _Part:
    took = "" if step.duration_s is None else f" after {step.duration_s:.3g} s"
    tries = f", {step.retries} of its own retries included" if step.retries else ""
    error = f": {clip(step.error, ERROR_CHARACTERS)}" if step.error else ""
    body = [f"parameters: {_parameters(step)}"]
    body += [f"output: {step.output}"] if step.output else []
    head = f"[step {number}] {step.tool}: {_result(step)}{took}{tries}{error}"
    return _Part(f"{head}\n{_recovery(step, following)}" if failed(step) else head, tuple(body), step)


def failed(step: Step) -> bool:
    """Whether a step did not do what it was called for."""
    return step.success is False or step.error is not None


def _result(step: Step) -> str:
    return "failed" if failed(step) else "worked" if step.success else "outcome not recorded"


def _parameters(step: Step) -> str:
    return replies.plain(json.dumps(step.parameters, ensure_ascii=False, default=str))


def _recovery(step: Step, following: Step | None) -> str:
    """What was done about a failure (Agent-GRPO's recovery patterns: retry, switch, give up)."""
    if following is None:
        return "then: it gave up, no further call"
    if following.tool != step.tool:
        return f"then: it switched to {following.tool}, which {_result(following)}"
    how = "the same call" if _parameters(following) == _parameters(step) else "the tool with other parameters"
    return f"then: it tried {how} again, which {_result(following)}"


def calls_shown(trajectory: Trajectory) -> str:
    """The calls of an attempt on one line, with what failed and how it ended; "" where there were none.

    >>> calls_shown(Trajectory(steps=(Step(tool="fetch", success=False, error="503"), Step(tool="ask", success=True))))
    'fetch failed (503) -> ask worked'
    """
    calls = [
        f"{s.tool} {_result(s)}" + (f" ({clip(' '.join(s.error.split()), 80)})" if s.error else "")
        for s in trajectory.steps
    ]
    end = _ENDS.get(trajectory.finish_reason or "") if calls else None
    return " -> ".join([*calls, *([end] if end else [])])


def _shown(parts: Sequence[_Part], characters: int, kept: set[int]) -> str:
    lines: list[str] = []
    gap: list[_Part] = []
    for i, part in enumerate(parts):
        if i not in kept:
            gap.append(part)
            continue
        lines += _gap_line(gap)
        gap = []
        lines.append(part.shown(characters))
    return "\n".join([*lines, *_gap_line(gap)])


def _gap_line(gap: Sequence[_Part]) -> list[str]:
    if not gap:
        return []
    steps = [p.step for p in gap if p.step is not None]
    tools = Counter(s.tool for s in steps).most_common(4)
    said = ", ".join(f"{tool} x{n}" for tool, n in tools)
    detail = f": {said}; {sum(map(failed, steps))} failed" if steps else ""
    return [f"[... {len(gap)} messages or steps left out{detail} ...]"]
