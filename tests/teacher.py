"""An extraction model for tests that knows nothing but its prompt: what it says is made of what it was shown.

Its summaries quote the attempt, its contrasts are computed from summaries, signs and rewards, its ids are those of the
library that it was shown: a part of a prompt that is missing or wrong changes what is learned, or makes it complain
(`UnpromptedError`). With `with_manners` it answers as models do on a bad day: good content, badly wrapped or worded.

    reply(system, user, seed)        one reply to one prompt
    answer(asked)                    the same for what `tests.stub_server` hands over, second tries included
    with_manners(rate, *names)       an `answer` that misbehaves at this rate, chosen by seed and prompt
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class UnpromptedError(AssertionError):
    """The prompt lacks something that the stage cannot do without."""


class Question(Protocol):
    """What of `tests.stub_server.Asked` is needed."""

    @property
    def messages(self) -> list[dict[str, Any]]: ...

    @property
    def seed(self) -> int: ...


def reply(system: str, user: str, seed: int = 0) -> str:
    """The reply to one prompt, as JSON; the same for the same prompt and seed.

    Raises:
        UnpromptedError: a part of the prompt is missing.
    """
    stage = next((stage for mark, stage in _STAGES.items() if mark in system), None)
    if stage is None:
        raise UnpromptedError("the system prompt names none of the three stages")
    return json.dumps(stage(system, user, random.Random(f"{seed} {system} {user}")), ensure_ascii=False)


def answer(asked: Question) -> str:
    """The reply to a request; a second try gets what the first one should have been, if it says what was wrong."""
    users = [str(m["content"]) for m in asked.messages if m["role"] == "user"]
    system = "\n".join(str(m["content"]) for m in asked.messages if m["role"] == "system")
    try:
        if len(users) > 1 and not re.match(r"That reply could not be used: \S", users[-1]):
            raise UnpromptedError("the second try does not say what was wrong with the first")
        return reply(system, users[0], asked.seed)
    except UnpromptedError as e:
        return f"I cannot answer: {e}."


# ---- reading the prompt ---------------------------------------------------------------------------------

_FENCE = re.compile(r'<data id="(\w+)">\n(.*?)\n</data id="\1">', re.DOTALL)


def section(user: str, heading: str) -> str:
    """What stands below a heading of a prompt: the fenced text, or the one line in its place.

    Raises:
        UnpromptedError: the heading is missing, or nothing stands below it.
    """
    _, found, rest = user.partition(f"{heading}\n")
    if not found:
        raise UnpromptedError(f"the prompt has no {heading!r}")
    if fenced := _FENCE.match(rest):
        return fenced[2]
    line = rest.split("\n", 1)[0].strip()
    if not line:
        raise UnpromptedError(f"nothing stands below {heading!r}")
    return line


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if not found:
        raise UnpromptedError(f"the prompt does not say {pattern!r}")
    return int(found[1])


def _words(text: str, most: int) -> str:
    return " ".join(text.split()[:most])


_DID = {"better": "better", "worse": "worse", "as well": "par"}


class _Outcome(NamedTuple):
    reward: float
    verdict: str
    reasons: str


def _outcome(text: str) -> _Outcome:
    found = re.match(r"reward (-?[\d.e+-]+); it did (better|worse|as well)\b", text)
    if not found:
        raise UnpromptedError("the outcome of an attempt is missing")
    said = text.partition("The verifiers said:\n")[2]
    fenced = _FENCE.match(said)
    return _Outcome(float(found[1]), _DID[found[2]], fenced[2] if fenced else "")


# ---- stage 1 --------------------------------------------------------------------------------------------


def _summarise(system: str, user: str, rng: random.Random) -> dict[str, Any]:
    limit = min(_number(r"in at most (\d+) words", user), _number(r'"at most (\d+) words"', system))
    outcome = _outcome(user.partition("Its outcome: ")[2])
    question, right = section(user, "The task:"), section(user, "The right answer:")
    lessons = re.findall(r"^\[(G\d+)\] (.*)$", section(user, "Lessons that the attempt was given:"), re.M)
    attempt = section(user, "The attempt:")
    failed = re.findall(r"^\[step (\d+)\] (\S+): failed.*?(?:: (.*))?$", attempt, re.M)
    said = _words(attempt.rpartition("[final answer]\n")[2], 6)
    asked, wanted = _words(" ".join(question.split()[-3:]), 3), _words(right, 3)
    summary = f"{outcome.verdict} with {said!r} on {asked!r}, right: {wanted!r}"
    if tools := re.findall(r"^\[step \d+\] (\S+):", attempt, re.M):
        summary += f"; called {', '.join(tools[:8])}"
    if recovered := re.search(r"^then: (.*)$", attempt, re.M):
        summary += f"; {_words(recovered[1], 8)}"
    cause = f"{failed[0][1]} failed: {failed[0][2]}" if failed else outcome.reasons or "unknown"
    return {
        "summary": _words(summary, limit),
        "key_decision": f"step {failed[0][0]}" if failed else f"said {said!r}",
        "root_cause": _words(cause, limit) if outcome.verdict == "worse" else "",
        "used_experiences": [label for label, text in lessons if _shares(text, attempt)],
        "domain": section(user, "The domain of the task:"),
    }


def _shares(lesson: str, attempt: str) -> bool:
    """Whether the attempt seems to follow a lesson: a long word of it turns up, or the lesson asks for few words."""
    final = attempt.rpartition("[final answer]\n")[2]
    short = re.search(r"\b(only|alone|one word|briefly)\b", lesson) is not None and len(final.split()) <= 2
    return short or any(word in final.lower() for word in re.findall(r"[a-z_]{7,}", lesson.lower()))


# ---- stage 2 --------------------------------------------------------------------------------------------


class _Attempt(NamedTuple):
    label: str
    outcome: _Outcome
    lines: Mapping[str, str]
    """The summary under "", and the lines with a name under theirs."""


def _attempts(user: str) -> list[_Attempt]:
    found = []
    for part in re.split(r"^(?=R\d+: reward )", user, flags=re.M)[1:]:
        label, _, rest = part.partition(": ")
        body = section(part, "Its summary:")
        lines = {"": body.split("\n")[0]}
        lines |= dict(
            re.findall(r"^(Key decision|Root cause|Calls|Lessons(?: not)? followed): (.*)$", body, re.M)
        )
        found.append(_Attempt(label, _outcome(rest), lines))
    if len(found) < 2:
        raise UnpromptedError("there are no two attempts to contrast")
    return found


def _contrast(system: str, user: str, rng: random.Random) -> dict[str, Any]:
    most = min(
        _number(r"at most (\d+) operations, as JSON", user), _number(r"at most (\d+) operations on", system)
    )
    words = _number(r"A lesson has at most (\d+) words", system)
    wanted = re.search(r"semantic advantage for each of (R\d+(?:, R\d+)*)", user)
    if not wanted:
        raise UnpromptedError("the prompt does not say which attempts are to be judged")
    attempts = [a for a in _attempts(user) if a.label in wanted[1].split(", ")]
    if len(attempts) < len(wanted[1].split(", ")):
        raise UnpromptedError("it asks about an attempt that is not shown")
    mean = sum(a.outcome.reward for a in attempts) / len(attempts)
    advantages = [
        {
            "rollout": a.label,
            "verdict": a.outcome.verdict,
            "why": f"{a.lines['']} ({a.outcome.reward - mean:+.2f})",
            "deciding_step": a.lines.get("Key decision", ""),
        }
        for a in attempts
    ]
    operations = _operations(attempts, user, words, rng)
    return {"semantic_advantages": advantages, "operations": operations[:most]}


def _operations(
    attempts: Sequence[_Attempt], user: str, words: int, rng: random.Random
) -> list[dict[str, Any]]:
    best = max(attempts, key=lambda a: a.outcome.reward)
    worst = min(attempts, key=lambda a: a.outcome.reward)
    library = dict(re.findall(r"^\[(E-\d+)\] \([^)]*\) (.*)$", section(user, _LIBRARY), re.M))
    domain = section(user, "The domain of the task:")
    question, right = section(user, "The task:"), section(user, "The right answer:")
    about = f"{best.label} against {worst.label} on {_words(question, 4)!r} (right: {_words(right, 2)!r})"

    def operation(op: str, ids: Sequence[str], text: str | None, kind: str = "strategy") -> dict[str, Any]:
        short = None if text is None else _words(text, words)
        return {"op": op, "ids": list(ids), "text": short, "kind": kind, "rationale": about}

    said = re.search(r"with '(.*?)'", best.lines[""])
    length = len(said[1].split()) if said else 0
    manner = "the bare answer alone" if length <= 1 else "the answer in a short sentence"
    polite = rng.choice(["", " and nothing else", " every time"])
    convention = operation("add", [], f"For {domain} tasks, reply with {manner}{polite}.", "convention")
    found = []
    followed = {a.label: re.findall(r"E-\d+", a.lines.get("Lessons followed", "")) for a in (best, worst)}
    for i in followed[worst.label]:
        if i not in followed[best.label] and i in library:
            found.append(operation("delete", [i], None))
    for i in followed[best.label]:
        if i in library:
            found.append(operation("modify", [i], f"{library[i].rstrip('.')}, and check it once."))
    if error := re.search(r"(\w+) failed \((.*?)\)", worst.lines.get("Calls", "")):
        text = f"On {_words(error[2], 4)} from {error[1]}, look at its parameters before calling it again."
        found.append(operation("add", [], text, "failure_pattern"))
    if calls := best.lines.get("Calls"):
        text = f"For {domain} tasks, call {calls.split()[0]} first."
        found.append(operation("add", [], text, "tool_selection"))
    if len(library) > 1 and rng.random() < 0.3:
        first, second = list(library)[:2]
        found.append(operation("merge", [first, second], f"{library[first].rstrip('.')}. {library[second]}"))
    return [convention, *rng.sample(found, len(found))]


_LIBRARY = "The library as far as it matters here:"


# ---- stage 3 --------------------------------------------------------------------------------------------


def _consolidate(system: str, user: str, rng: random.Random) -> dict[str, Any]:
    words = _number(r"at most (\d+) words", system)
    drafts = re.findall(
        r"^\[(D\d+)\] \((\w+).*?, domain (.*?), from \d+ groups\) (.*)$", section(user, "The drafts:"), re.M
    )
    wanted = re.search(r"Which of (D\d+(?:, D\d+)*) should", user)
    if not wanted:
        raise UnpromptedError("the prompt does not say which drafts are to be reconciled")
    near = re.findall(
        r"^\[(E-\d+)\] \(\w+, domain (.*?)\) ",
        section(user, "Lessons of the library that are near to them:"),
        re.M,
    )
    groups: dict[str, list[tuple[str, str]]] = {}
    for label, op, domain, text in drafts:
        if op == "add" and label in wanted[1].split(", "):
            groups.setdefault(domain, []).append((label, text))
    actions: list[dict[str, Any]] = []
    for domain, members in groups.items():
        shortest = min((text for _, text in members), key=len)
        live = next((i for i, d in near if d == domain), None)
        reason = f"{len(members)} drafts for {domain}"
        action = {"drafts": [label for label, _ in members], "keep": live, "reason": reason}
        if live and rng.random() < 0.6:
            actions.append(action | {"action": "modify", "text": _words(shortest, words)})
        elif len(members) > 2 and rng.random() < 0.5:
            gone = action["drafts"][1:]
            actions.append(action | {"action": "drop", "drafts": gone, "keep": members[0][0], "text": None})
        elif len(members) > 1:
            actions.append(action | {"action": "merge", "text": _words(shortest, words)})
    return {"actions": actions}


def _compress(system: str, user: str, rng: random.Random) -> dict[str, Any]:
    words = _number(r'"at most (\d+) words"', system)
    found = re.search(r"This lesson has (\d+) words:", user)
    if not found or int(found[1]) <= words:
        raise UnpromptedError("the prompt does not say that the lesson is too long")
    return {"text": _words(section(user, found[0]), min(words, _number(r"in at most (\d+) words", user)))}


_STAGES: Mapping[str, Callable[[str, str, random.Random], dict[str, Any]]] = {
    '{"summary":': _summarise,
    '{"semantic_advantages":': _contrast,
    '{"actions":': _consolidate,
    '{"text":': _compress,
}

# ---- bad manners ----------------------------------------------------------------------------------------

LONG = "Take care to look at every single thing twice and then once more " * 16
"""More than 200 words."""


def _each(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The value with each operation or action changed."""
    if not isinstance(value, dict):
        return value
    return {
        k: [change(i) if isinstance(i, dict) else i for i in v] if k in ("operations", "actions") else v
        for k, v in value.items()
    }


def _operation_manner(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[str], str]:
    return lambda good: json.dumps(_each(json.loads(good), change), ensure_ascii=False)


def _long_texts(good: str) -> str:
    value = {k: LONG if k in ("summary", "text") else v for k, v in json.loads(good).items()}
    return json.dumps(_each(value, lambda item: item | {"text": LONG} if item.get("text") else item))


def _wrong_types(good: str) -> str:
    value = json.loads(good)
    return json.dumps({k: 7 if isinstance(v, str) else [3, None, "x", {}, *v][:5] for k, v in value.items()})


def _other_keys(good: str) -> str:
    return json.dumps({k.replace("_", " ").title(): v for k, v in json.loads(good).items()})


def _more(good: str) -> str:
    value = json.loads(good)
    more = [{"op": "add", "ids": [], "text": f"Surplus lesson {n}.", "kind": "strategy"} for n in range(5)]
    return json.dumps(
        value | {"operations": [*value["operations"], *more]} if "operations" in value else value
    )


def _ids(item: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return item | {
        k: [change(i) for i in item[k]] for k in ("ids", "drafts") if isinstance(item.get(k), list)
    }


MANNERS: Mapping[str, Callable[[str], str]] = {
    "fenced": lambda good: f"```json\n{good}\n```",
    "fenced without a tag": lambda good: f"Here you are:\n```\n{good}\n```\nI hope that it helps!",
    "thinking aloud": lambda good: f"<think>Perhaps {{this}}?</think>\nMy answer: {good} That is all.",
    "trailing commas": lambda good: re.sub(r"([\]}])$", r",\1", good),
    "other keys": _other_keys,
    "upper-case names": _operation_manner(
        lambda i: i | {k: str(i[k]).upper() for k in ("op", "action") if k in i}
    ),
    "other names": _operation_manner(lambda i: i | ({"op": "UPDATE"} if i.get("op") == "modify" else {})),
    "bracketed ids": _operation_manner(lambda i: _ids(i, lambda name: f"[{name}]")),
    "unknown ids": _operation_manner(lambda i: _ids(i, lambda name: f"{name[0]}-9999")),
    "delete without text": _operation_manner(
        lambda i: {k: v for k, v in i.items() if k != "text"} if i.get("op") == "delete" else i
    ),
    "delete all": _operation_manner(lambda i: {"op": "delete", "ids": i.get("ids", [])}),
    "merge with one id": _operation_manner(
        lambda i: i | {"op": "merge", "ids": i["ids"][:1]} if i.get("ids") else i
    ),
    "without names": _operation_manner(lambda i: {k: v for k, v in i.items() if k not in ("op", "action")}),
    "200 words": _long_texts,
    "too many": _more,
    "wrong types": _wrong_types,
    "a list": lambda good: json.dumps([json.loads(good)]),
    "prose": lambda good: "I would rather say it in my own words: all went well.",
    "empty": lambda good: "",
    "null": lambda good: "null",
    "truncated": lambda good: good[: len(good) * 2 // 3],
    "half a surrogate": lambda good: good.replace(': "', ': "\\ud800 '),
}
"""What models do to a good reply, by name."""


def with_manners(rate: float, *names: str) -> Callable[[Question], str]:
    """An `answer` that misbehaves in this share of its replies; how is drawn from the seed and the whole request.

    Args:
        rate: in [0, 1].
        names: of the manners to draw from; none means all.
    """
    drawn_from = names or tuple(MANNERS)

    def misbehaving(asked: Question) -> str:
        rng = random.Random(f"{asked.seed} {json.dumps(asked.messages, sort_keys=True)}")
        good = answer(asked)
        return MANNERS[rng.choice(drawn_from)](good) if rng.random() < rate else good

    return misbehaving
