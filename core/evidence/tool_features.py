"""What an agent did: tools and their order, parameters, errors, what it did after one, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

from core.evidence.features import Feature, stands_in
from core.evidence.recovery import HABITS, call_key, error_signature, recoveries
from core.rollout import Step, Trajectory

MAX_VALUE_LENGTH = 24
"""Longer parameter values are content, not a setting."""

MAX_VALUES = 5
"""A parameter that takes more values than this in one rollout is content, too: the pages of a list."""

_READS = re.compile(
    r"(?i)^(get|list|read|search|find|check|view|look|show|query|fetch|inspect|describe|open|count|"
    r"ls|cat|grep|head|validate|verify)(?![a-z])"
)
_WRITES = re.compile(
    r"(?i)^(write|update|delete|create|send|book|cancel|set|post|submit|modify|edit|save|add|remove|"
    r"insert|move|pay|transfer|refund|apply|commit|replace|append|buy|order|drop)(?![a-z])"
)
_SECRET = re.compile(r"(?i)passw|secret|token|api_?key|auth|credential|cookie")
_STOPS: Mapping[str, tuple[str, str]] = {
    "step limit": ("step_limit", "ran into the step limit"),
    "time limit": ("time_limit", "ran into the time limit"),
    "gate": ("gated", "had the answer held back by a gate"),
}
"""By finish reason: how a rollout ended that was not let finish."""


def tool_features(question: str, trajectory: Trajectory, masked: Set[str] = frozenset()) -> list[Feature]:
    """The features of a tool trajectory; of one without a call, only how it was stopped.

    Args:
        question: of the task; parameter values that stand in it are content, not settings.
        trajectory: what was done.
        masked: lower-case words that must not become features (`masked_words`).
    """
    steps = trajectory.steps
    stop = _STOPS.get(trajectory.finish_reason or "")
    found = [Feature(stop[0], stop[1], "cut", 91)] if stop else []
    if not steps:
        return found
    return [
        *found,
        *_tools(steps),
        *_order(steps),
        *_parameters(steps, question.lower(), masked),
        *_counts(steps),
        *_errors(trajectory),
        *_habits(steps),
    ]


def _tools(steps: Sequence[Step]) -> list[Feature]:
    found = [Feature(f"tool={t}", f"called {t}", "tool", 51, t) for t in sorted({s.tool for s in steps})]
    first, last = steps[0].tool, steps[-1].tool
    found.append(Feature(f"first_tool={first}", f"called {first} first", "tool", 50, first))
    found.append(Feature(f"last_tool={last}", f"called {last} last", "tool", 58, last))
    return found


def _order(steps: Sequence[Step]) -> list[Feature]:
    bigrams = sorted({(a.tool, b.tool) for a, b in pairwise(steps) if a.tool != b.tool})
    found = [
        Feature(f"order={a}>{b}", f"called {b} right after {a}", "order", 56, f"{a}>{b}") for a, b in bigrams
    ]
    firsts: dict[str, int] = {}
    for i, step in enumerate(steps):
        firsts.setdefault(step.tool, i)
    ordered = sorted((a, b) for a in firsts for b in firsts if firsts[a] < firsts[b])
    return found + [
        Feature(f"before={a}>{b}", f"called {a} before {b}", "order", 55, f"{a}>{b}") for a, b in ordered
    ]


def _parameters(steps: Sequence[Step], asked: str, masked: Set[str]) -> list[Feature]:
    values: dict[tuple[str, str], set[str]] = {}
    for step in steps:
        for key, value in step.parameters.items():
            shown = None if _SECRET.search(key) else _setting(value)
            own = values.setdefault((step.tool, key), set())
            if shown is not None and shown.lower() not in masked and not stands_in(shown.lower(), asked):
                own.add(shown)
    found = []
    for (tool, key), own in sorted(values.items()):
        name = f"{tool}.{key}"
        found.append(Feature(f"param={name}", f"passed {key} to {tool}", "parameter", 57, name))
        for shown in sorted(own) if len(own) <= MAX_VALUES else ():
            full = f"{name}={shown}"
            found.append(Feature(f"param={full}", f"called {tool} with {key}={shown}", "parameter", 56, full))
    return found


def _setting(value: object) -> str | None:
    """A parameter value that may be a setting (true, "json", 10), or None for content."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value) and len(value) <= MAX_VALUE_LENGTH:
        return value
    return None


def _counts(steps: Sequence[Step]) -> list[Feature]:
    failed = [error_signature(s) is not None for s in steps]
    table = [
        (len(steps) == 1, Feature("one_step", "made a single call", "steps", 60)),
        (len(steps) <= 3, Feature("up_to_3_steps", "needed at most three calls", "steps", 61)),
        (len(steps) > 5, Feature("over_5_steps", "made more than five calls", "steps", 62)),
        (len(steps) > 10, Feature("over_10_steps", "made more than ten calls", "steps", 63)),
        (any(failed), Feature("any_failed", "had a call that failed", "steps", 66)),
        (
            any(s.retries for s in steps),
            Feature("tool_retried", "had a tool try again by itself", "steps", 69),
        ),
        # a step without a recorded result is not a success
        (
            all(s.success is True for s in steps),
            Feature("all_succeeded", "had every call succeed", "steps", 67),
        ),
        (steps[-1].success is True, Feature("last_succeeded", "had the last call succeed", "steps", 68)),
        (
            len({call_key(s) for s in steps}) < len(steps),
            Feature("repeated_call", "repeated an identical call", "steps", 54),
        ),
    ]
    return [feature for holds, feature in table if holds]


def _errors(trajectory: Trajectory) -> list[Feature]:
    found: dict[str, Feature] = {}
    for one in recoveries(trajectory):
        key = f"{one.error}|{one.tool}|{one.habit}|{one.then}"
        did = HABITS[one.habit]
        for feature in (
            Feature(f"error={one.error}", f"ran into {one.error}", "error", 65, one.error),
            Feature(f"failed={one.tool}", f"had {one.tool} fail", "error", 64, one.tool),
            Feature(f"recovery={one.habit}", f"{did} after an error", "recovery", 46, one.habit),
            Feature(f"recovery={key}", f"{did} after {one.error} from {one.tool}", "recovery", 45, key),
        ):
            found[feature.name] = feature
    return [found[name] for name in sorted(found)]


def _habits(steps: Sequence[Step]) -> list[Feature]:
    reads = [i for i, s in enumerate(steps) if _READS.match(s.tool)]
    writes = [i for i, s in enumerate(steps) if _WRITES.match(s.tool)]
    found = []
    if writes and reads and reads[0] < writes[0]:
        found.append(Feature("checked_before_acting", "looked before changing anything", "order", 53))
    if writes and reads and reads[-1] > writes[-1]:
        found.append(Feature("checked_after_acting", "checked the result after the last change", "order", 54))
    return found
