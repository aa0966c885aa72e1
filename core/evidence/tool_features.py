"""What an agent did: tools and their order, parameters, errors, and what it did after one."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import pairwise

from core.evidence.features import Feature
from core.record import canonical_json
from core.rollout import Rollout, Step, Task

MAX_VALUE_LENGTH = 24
"""Longer parameter values are content, not a setting."""

_READS = re.compile(
    r"(?i)^(get|list|read|search|find|check|view|look|show|query|fetch|inspect|describe|open|count|"
    r"ls|cat|grep|head|validate|verify)(?![a-z])"
)
_WRITES = re.compile(
    r"(?i)^(write|update|delete|create|send|book|cancel|set|post|submit|modify|edit|save|add|remove|"
    r"insert|move|pay|transfer|refund|apply|commit|replace|append|buy|order|drop)(?![a-z])"
)
_SECRET = re.compile(r"(?i)passw|secret|token|api_?key|auth|credential|cookie")
_CLASS = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Timeout|Warning|Interrupt))\b")


def tool_features(task: Task, rollout: Rollout, masked: Set[str] = frozenset()) -> list[Feature]:
    """The features of a tool trajectory; none where no tool was called."""
    steps = rollout.trajectory.steps
    if not steps:
        return []
    return [
        *_tools(steps),
        *_order(steps),
        *_parameters(steps, task.question, masked),
        *_counts(steps),
        *_errors(steps),
        *_habits(steps),
    ]


def error_signature(step: Step) -> str | None:
    """What kind of error a failed step met: the exception's class, else its message without particulars.

    None for a step that did not fail. A step whose success is unknown failed only if it has an error.
    """
    if step.success is not False and not step.error:
        return None
    message = step.error or step.output
    named = _CLASS.search(message)
    if named:
        return named[1]
    plain = re.sub(r"(['\"`]).*?\1|\S*[/\\]\S+", "…", message.split("\n")[0])
    # whatever is not a plain word is a particular: a number, an id, a key
    words = [
        w if re.fullmatch(r"[^\W\d_]{1,20}", w) else "…"
        for w in re.sub(r"[.,:;!?()]+(?=\s|$)", "", plain).split()
    ]
    return " ".join(words[:6]).lower() or "an error without a message"


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


def _parameters(steps: Sequence[Step], question: str, masked: Set[str]) -> list[Feature]:
    found: dict[str, Feature] = {}
    asked = question.lower()
    for step in steps:
        for key, value in step.parameters.items():
            name = f"{step.tool}.{key}"
            found[name] = Feature(f"param={name}", f"passed {key} to {step.tool}", "parameter", 57, name)
            shown = None if _SECRET.search(key) else _setting(value)
            if shown is None or shown.lower() in masked or _stands_in(shown.lower(), asked):
                continue
            full = f"{name}={shown}"
            found[full] = Feature(
                f"param={full}", f"called {step.tool} with {key}={shown}", "parameter", 56, full
            )
    return [found[name] for name in sorted(found)]


def _setting(value: object) -> str | None:
    """A parameter value that may be a setting (true, "json", 10), or None for content."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value) and len(value) <= MAX_VALUE_LENGTH:
        return value
    return None


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _counts(steps: Sequence[Step]) -> list[Feature]:
    calls = [(s.tool, canonical_json(_plain(s.parameters))) for s in steps]
    failed = any(error_signature(s) is not None for s in steps)
    table = [
        (len(steps) == 1, Feature("one_step", "made a single call", "steps", 60)),
        (len(steps) <= 3, Feature("up_to_3_steps", "needed at most three calls", "steps", 61)),
        (len(steps) > 5, Feature("over_5_steps", "made more than five calls", "steps", 62)),
        (len(steps) > 10, Feature("over_10_steps", "made more than ten calls", "steps", 63)),
        (failed, Feature("any_failed", "had a call that failed", "steps", 66)),
        # a step without a recorded result is not a success
        (
            all(s.success is True for s in steps),
            Feature("all_succeeded", "had every call succeed", "steps", 67),
        ),
        (len(set(calls)) < len(calls), Feature("repeated_call", "repeated an identical call", "steps", 54)),
    ]
    return [feature for holds, feature in table if holds]


def _plain(parameters: dict[str, object]) -> dict[str, str]:
    return {key: repr(value) for key, value in parameters.items()}


def _errors(steps: Sequence[Step]) -> list[Feature]:
    found: dict[str, Feature] = {}

    def add(name: str, label: str, theme: str, rank: int, value: str) -> None:
        found[name] = Feature(name, label, "error" if theme == "error" else "recovery", rank, value)

    for i, step in enumerate(steps):
        signature = error_signature(step)
        if signature is None:
            continue
        add(f"error={signature}", f"ran into {signature}", "error", 65, signature)
        add(f"failed={step.tool}", f"had {step.tool} fail", "error", 64, step.tool)
        habit, label, after = _recovery(step, steps[i + 1] if i + 1 < len(steps) else None)
        add(f"recovery={habit}", label, "recovery", 46, habit)
        key = f"{signature}|{step.tool}|{habit}|{after}"
        where = f" after {signature} from {step.tool}"
        add(f"recovery={key}", label.replace(" after an error", where), "recovery", 45, key)
    return [found[name] for name in sorted(found)]


def _recovery(failed: Step, following: Step | None) -> tuple[str, str, str]:
    """Habit, label and the tool called next."""
    if following is None:
        return "give_up", "gave up after an error", ""
    if following.tool != failed.tool:
        return "switch_tool", "switched to another tool after an error", following.tool
    if _plain(following.parameters) == _plain(failed.parameters):
        return "retry_same", "repeated the same call after an error", following.tool
    return "fix_parameters", "called the tool again with other parameters after an error", following.tool


def _habits(steps: Sequence[Step]) -> list[Feature]:
    reads = [i for i, s in enumerate(steps) if _READS.match(s.tool)]
    writes = [i for i, s in enumerate(steps) if _WRITES.match(s.tool)]
    found = []
    if writes and reads and reads[0] < writes[0]:
        found.append(Feature("checked_before_acting", "looked before changing anything", "order", 53))
    if writes and reads and reads[-1] > writes[-1]:
        found.append(Feature("checked_after_acting", "checked the result after the last change", "order", 54))
    return found
