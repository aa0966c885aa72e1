"""Trajectories in the Agent Trajectory Interchange Format (ATIF 1.0-1.7), as Harbor and agents run in it write them.

1. A trajectory is one attempt. Its continuations (`continued_trajectory_ref`) are read with it; the context that a
   continuation copies from what stood before is left out, and never counted again.
2. Sub-agents, embedded or in files of their own, are no attempts.
3. It has no reward. In a folder of a Harbor trial the trial's `result.json` is what is read (`harbor`); without one,
   `verifier/reward.txt` or `reward.json`.
4. Whether a tool failed is no part of the format; what writers say of it in `extra` is read, else the text tells.
5. A result without the id of its call belongs to the call in its place; a single one, to the last call that did
   something. A result without content is none, unless it is marked as an error or as gone well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.dialects import Conversation, conversation, text_of_content
from core.importers.documents import beside, documents_of, neighbour, whole_of
from core.importers.getting import as_dict, as_int, as_list, as_number, as_seen, as_text, at
from core.importers.json_text import parsed
from core.importers.opened import Opened
from core.importers.times import span_of
from core.rollout import Trajectory, Usage

_CONTINUED = re.compile(r"\.cont-\d+(?=\.|$)")
_TRIAL = re.compile(r"(.+)__[A-Za-z0-9]{7}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ASKED_OF_TERMINUS = re.compile(r"Task Description:\n(.*?)\n+Current terminal state:", re.DOTALL)
_SAYS_THAT_IT_IS_DONE = "mark_task_complete"
MOST_PARTS = 200
"""Continuations of one trajectory that are followed."""


class Atif:
    """The format of single trajectories."""

    name = "atif"
    title = "ATIF trajectory"
    brings = Brings(reward="from the trial beside it", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(is_trajectory(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        helps, belongs, scores = _is_referred_to(opened), _belongs_to(opened), _rewards(opened)
        for document in documents_of(opened, is_trajectory):
            if isinstance(document, Aside):
                yield document
            elif helps or _says_that_it_helps(document.value):
                yield _attempt(document.place, story([document.value])).model_copy(update={"ends": False})
            elif belongs:
                yield Remark(
                    text="Trajectories that belong to a trial or continue another one were read with it."
                )
            else:
                parts, remarks = chain(opened, document.value)
                yield from remarks
                yield _graded(opened, _attempt(document.place, story(parts)), scores)
                yield from sub_agents(document.place, parts)


class Story(NamedTuple):
    """What the parts of one trajectory tell together."""

    talk: Conversation
    question: str
    system: str
    model: str
    agent: str
    own_id: str | None
    session: str
    usage: Usage
    duration_s: float | None


def is_trajectory(value: Any) -> bool:
    return as_text(at(value, "schema_version")).startswith("ATIF-") and "steps" in value


def chain(opened: Opened, first: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Found]]:
    """A trajectory and what continues it, in order, and what is to be said of a continuation that is not there."""
    parts, seen = [first], {opened.file_name}
    while (ref := as_text(parts[-1].get("continued_trajectory_ref"))) and len(parts) < MOST_PARTS:
        found = whole_of(beside(opened, ref)) if ref not in seen else None
        if not isinstance(found, dict) or not is_trajectory(found):
            return parts, [
                Remark(
                    text=f"The continuation {ref[:100]!r} of a trajectory is not there: its end is missing."
                )
            ]
        seen.add(ref)
        parts.append(found)
    return parts, []


def story(parts: Sequence[dict[str, Any]]) -> Story:
    """Read the parts of one trajectory: at least one."""
    agent = as_dict(parts[0].get("agent"))
    steps = list(_steps(parts))
    terminus = as_text(agent.get("name")).startswith("terminus")
    talk = conversation(item for step in steps for item in _items(step, terminus=terminus))
    times = [step["timestamp"] for step in steps if "timestamp" in step]
    duration, _ = span_of([*times[:1], *times[-1:]])
    return Story(
        talk=talk,
        question=_question(steps, terminus=terminus),
        system=_system(steps),
        model=as_text(agent.get("model_name")) or _most_used(step.get("model_name") for step in steps),
        agent=" ".join(t for k in ("name", "version") if (t := as_text(agent.get(k)))),
        own_id=_own_id(parts[0]),
        session=as_text(parts[0].get("session_id")),
        usage=_usage(parts, steps),
        duration_s=duration,
    )


def sub_agents(place: str, parts: Sequence[dict[str, Any]]) -> Iterator[Attempt]:
    """The sub-agents that are embedded in a trajectory: they are counted, and are no attempts."""
    for part in parts:
        for number, sub in enumerate(as_list(part.get("subagent_trajectories"))):
            if isinstance(sub, dict):
                found = _attempt(f"{place}, sub-agent {number + 1}", story([sub]))
                yield found.model_copy(update={"ends": False})


def reward_of(scores: dict[str, Seen]) -> str | None:
    """Which of a verifier's rewards is the reward: the one of that name, or the only one."""
    return "reward" if "reward" in scores else next(iter(scores)) if len(scores) == 1 else None


def _attempt(place: str, told: Story) -> Attempt:
    return Attempt(
        place=place,
        question=told.question or "(the trajectory does not tell its task)",
        system=told.system,
        model=told.model,
        agent=told.agent,
        own_id=told.own_id,
        trajectory=Trajectory(messages=told.talk.messages, steps=told.talk.steps, answer=told.talk.answer),
        usage=told.usage,
        duration_s=told.duration_s,
        orphans=told.talk.orphans,
        metadata={"session_id": told.session} if told.session else {},
    )


def _graded(opened: Opened, attempt: Attempt, scores: dict[str, Seen]) -> Attempt:
    """With the reward of the trial's folder, and with the task that the folder is named after."""
    if not scores:
        return attempt
    trial = _TRIAL.fullmatch(opened.path.parent.parent.name)
    known = {"task_id": as_text(trial[1])} if trial else {}
    return attempt.model_copy(update={"scores": scores, "reward": reward_of(scores), **known})


def _rewards(opened: Opened) -> dict[str, Seen]:
    """What a verifier wrote into the folder of the trial."""
    for folder in ("../verifier", "verifier"):
        found = beside(opened, f"{folder}/reward.json", f"{folder}/reward.txt")
        if found is not None:
            value = whole_of(found)
            named = value if isinstance(value, dict) else {"reward": value}
            return {as_text(k)[:100]: as_seen(v) for k, v in named.items()}
    return {}


def _says_that_it_helps(trajectory: dict[str, Any]) -> bool:
    """Whether it says itself that it is a sub-agent's."""
    extras = (at(trajectory, "agent", "extra"), trajectory.get("extra"))
    return any(at(e, "parent_session_id") or at(e, "parent_trajectory_id") for e in extras)


def _is_referred_to(opened: Opened) -> bool:
    """Whether the trajectory that a file is named after refers to it as a sub-agent's."""
    main = opened.file_name.split(".")[0] + ".json"
    path = neighbour(opened, main) if main != opened.file_name else None
    if path is None or _CONTINUED.search(opened.file_name):
        return False
    parts, _ = chain(Opened(path, root=opened.root), as_dict(whole_of(Opened(path))))
    return any(opened.file_name == ref.rsplit("/")[-1] for part in parts for ref in _references(part))


def _references(trajectory: dict[str, Any]) -> Iterator[str]:
    for step in as_list(trajectory.get("steps")):
        for result in as_list(at(step, "observation", "results")):
            refs = at(result, "subagent_trajectory_ref")
            for ref in refs if isinstance(refs, list) else [refs]:
                if path := as_text(at(ref, "trajectory_path")):
                    yield path


def _belongs_to(opened: Opened) -> bool:
    """Whether another file is read with this one in it: the result of its trial, or what it continues."""
    if opened.path.parent.name == "agent":
        of_step = opened.path.parent.parent.parent.name == "steps"
        for place in ("../result.json", "../../../result.json" if of_step else ""):
            result = as_dict(whole_of(Opened(path))) if place and (path := neighbour(opened, place)) else {}
            if result.get("trial_name") and "task_name" in result:
                return True
    first = _CONTINUED.sub("", opened.file_name)
    return first != opened.file_name and neighbour(opened, first) is not None


def _steps(parts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All steps in order; what a continuation copies from before is left out."""
    for number, part in enumerate(parts):
        for step in as_list(part.get("steps")):
            if isinstance(step, dict) and not (number and step.get("is_copied_context") is True):
                yield step


def _items(step: dict[str, Any], *, terminus: bool) -> Iterator[dict[str, Any]]:
    """A step as messages: what was said, what was called, and what came of it."""
    source, message = as_text(step.get("source")), step.get("message")
    observed = [r for r in as_list(at(step, "observation", "results")) if isinstance(r, dict)]
    results = [r for r in observed if r.get("content") is not None]
    if source != "agent":
        yield {"role": "system" if source == "system" else "user", "content": message}
        yield from ({"role": "user", "content": r.get("content")} for r in results)
        return
    calls = [call for call in as_list(step.get("tool_calls")) if isinstance(call, dict)]
    calls = calls or (_commands(message) if terminus else [])
    alone = step if len(calls) == 1 else {}
    results = [r for r in observed if r.get("content") is not None or (calls and _marks(r, alone))]
    ids = [
        as_text(c.get("tool_call_id")) or f"{as_text(step.get('step_id'))}.{n}" for n, c in enumerate(calls)
    ]
    yield {
        "role": "assistant",
        "content": message,
        "reasoning_content": step.get("reasoning_content"),
        "tool_calls": [
            {"id": call_id, "name": call.get("function_name"), "arguments": call.get("arguments")}
            for call_id, call in zip(ids, calls, strict=True)
        ],
    }
    if not calls and not any(as_text(r.get("source_call_id")) for r in results):
        yield from ({"role": "user", "content": r.get("content")} for r in results)
        return
    for call_id, result in zip(_owners(calls, ids, results), results, strict=True):
        item = {"role": "tool", "tool_call_id": call_id, "content": result.get("content")}
        yield item | _marks(result, alone)


def _marks(result: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """What writers put into `extra` beyond the format: whether a result is an error, and its exit code.

    Harbor tells it of the step, where the step has one call.
    """
    flags = (at(result, "extra", "is_error"), at(step, "extra", "tool_result_is_error"))
    flag = next((f for f in flags if isinstance(f, bool)), None)
    code = as_int(at(result, "extra", "exit_code"))
    return ({} if flag is None else {"is_error": flag}) | ({} if code is None else {"exit_code": code})


def _owners(calls: list[dict[str, Any]], ids: list[str], results: list[dict[str, Any]]) -> Iterator[str]:
    """The id of the call that each result belongs to; "" lets it go to the first that has none."""
    if len(results) == 1 and len(calls) > 1 and not as_text(results[0].get("source_call_id")):
        acting = [
            i for i, c in zip(ids, calls, strict=True) if c.get("function_name") != _SAYS_THAT_IT_IS_DONE
        ]
        yield (acting or ids)[-1]
        return
    yield from (as_text(result.get("source_call_id")) for result in results)


def _commands(message: Any) -> list[dict[str, Any]]:
    """The commands that terminus-2 asks for in JSON, as the calls that it otherwise writes them as."""
    try:
        commands = as_list(at(parsed(message), "commands")) if isinstance(message, str) else []
    except (ValueError, RecursionError):
        return []
    return [{"function_name": "bash_command", "arguments": c} for c in commands if isinstance(c, dict)]


def _question(steps: Sequence[dict[str, Any]], *, terminus: bool) -> str:
    """The first turn of the user; of the prompt of terminus-2, the task: the screen below it differs each time."""
    said = next((text_of_content(s.get("message")) for s in steps if s.get("source") == "user"), "")
    asked = _ASKED_OF_TERMINUS.search(said) if terminus else None
    return asked[1] if asked else said


def _system(steps: Sequence[dict[str, Any]]) -> str:
    """What the system says before anybody else does."""
    said = []
    for step in steps:
        if step.get("source") != "system":
            break
        said.append(text_of_content(step.get("message")))
    return "\n".join(said)


def _most_used(models: Iterator[Any]) -> str:
    used = Counter(name for model in models if (name := as_text(model)))
    return used.most_common(1)[0][0] if used else ""


def _own_id(trajectory: dict[str, Any]) -> str | None:
    """Its id, where that is unique for good."""
    ids = (as_text(trajectory.get(k)) for k in ("trajectory_id", "session_id"))
    return next((i for i in ids if _UUID.fullmatch(i)), None)


def _usage(parts: Sequence[dict[str, Any]], steps: Sequence[dict[str, Any]]) -> Usage:
    """The sum over the steps that are no copies; the totals of the last part, where steps tell nothing."""
    own = [s for s in steps if s.get("source") == "agent" and s.get("is_copied_context") is not True]
    metered = [s for s in own if as_dict(s.get("metrics"))]
    calls = sum(1 if (n := as_int(s.get("llm_call_count"))) is None else max(0, n) for s in metered or own)
    used = usage_of([as_dict(s.get("metrics")) for s in metered], calls, "")
    if used.prompt_tokens or used.completion_tokens:
        return used
    return usage_of([as_dict(parts[-1].get("final_metrics"))], calls, "total_")


def usage_of(metrics: Sequence[dict[str, Any]], calls: int, prefix: str) -> Usage:
    """The sum of some metrics, whose names begin with a prefix."""

    def total(name: str) -> float:
        return sum(max(0.0, as_number(m.get(prefix + name)) or 0.0) for m in metrics)

    return Usage(
        calls=calls,
        prompt_tokens=int(total("prompt_tokens")),
        completion_tokens=int(total("completion_tokens")),
        cost_usd=total("cost_usd"),
    )
