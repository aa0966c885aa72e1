"""Trials of Harbor: a folder for each, `result.json` beside `agent/trajectory.json` (ATIF) and `verifier/`.

1. A trial is one attempt; `verifier_result.rewards` holds its rewards. A task is its name at its checksum: after a
   change of the task, attempts at it are attempts at another one.
2. Without a verdict of the verifier a trial is an infrastructure error where an exception is told, else ungraded.
   With one, a time limit is no error; another exception is, unless the trial was rewarded all the same.
3. The job's own `result.json` holds no trials but those that have no folder.
4. A trial of several steps is one attempt: where it has no trajectory of its own, those of its steps
   (`steps/<step>/agent/trajectory.json`) are read one after the other. Its reward is the trial's, never a step's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.documents import beside, documents_of, neighbour, whole_of
from core.importers.formats.atif import Story, chain, is_trajectory, reward_of, story, sub_agents
from core.importers.getting import as_dict, as_int, as_list, as_number, as_seen, as_text, at
from core.importers.opened import Opened
from core.importers.times import moment
from core.rollout import Trajectory, Usage


class Harbor:
    """The format of trial results, and of the results of jobs."""

    name = "harbor"
    title = "Harbor trial"
    brings = Brings(reward="yes", repeats="by trials", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_trial(record) or _is_job(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        folder = opened if _has_trajectories(opened) else None
        for document in documents_of(opened, lambda value: _is_trial(value) or _is_job(value)):
            if isinstance(document, Aside):
                yield document
            elif _is_trial(document.value):
                yield from _trial(document.place, document.value, folder)
            else:
                yield from _job(document.value, opened)


def _has_trajectories(opened: Opened) -> bool:
    """Whether the file stands in the folder of a trial: looked at once, however many trials it holds."""
    steps = opened.path.parent / "steps"
    return neighbour(opened, "agent/trajectory.json") is not None or steps.is_dir()


def _is_trial(value: Any) -> bool:
    return bool(at(value, "trial_name")) and "task_name" in value and "is_resolved" not in value


def _is_job(value: Any) -> bool:
    return isinstance(at(value, "stats"), dict) and "n_total_trials" in value


def _job(job: dict[str, Any], opened: Opened) -> Iterator[Found]:
    """The trials that only the job's file tells of (older versions list them)."""
    for number, trial in enumerate(as_list(job.get("trial_results"))):
        if not _is_trial(trial):
            continue
        if neighbour(opened, f"{as_text(trial['trial_name'])[:200]}/result.json") is None:
            yield from _trial(f"trial_results, item {number + 1}", trial, None)
    yield Remark(text="The result of a Harbor job sums up its trials, which are read from their folders.")


def _trial(place: str, trial: dict[str, Any], opened: Opened | None) -> Iterator[Found]:
    """A trial and its sub-agents; `opened` is the file that stands in its folder, None where none does."""
    parts: list[dict[str, Any]] = []
    for file in _trajectories(trial, opened) if opened is not None else ():
        if is_trajectory(value := whole_of(file)):
            more, remarks = chain(file, value)
            parts += more
            yield from remarks
        if opened is not None:
            opened.used |= file.used
    if not parts:
        text = "No ATIF trajectory stands in the folder of a trial: its messages and steps are not known."
        yield Remark(text=text)
    yield _attempt(place, trial, story(parts) if parts else None)
    yield from sub_agents(place, parts)


def _trajectories(trial: dict[str, Any], opened: Opened) -> Iterator[Opened]:
    """The file of its trajectory, or where it has none, those of its steps."""
    if (whole := beside(opened, "agent/trajectory.json")) is not None:
        yield whole
        return
    for step in _steps(trial):
        name = as_text(step.get("step_name"))[:200]
        if name and (part := beside(opened, f"steps/{name}/agent/trajectory.json")) is not None:
            yield part


def _steps(trial: dict[str, Any]) -> list[dict[str, Any]]:
    """What is told of its steps, where it has several."""
    return [step for step in as_list(trial.get("step_results")) if isinstance(step, dict)]


def _attempt(place: str, trial: dict[str, Any], told: Story | None) -> Attempt:
    scores = _scores(trial)
    task = as_text(trial.get("task_name"))
    checksum = as_text(trial.get("task_checksum"))
    return Attempt(
        place=place,
        namespace=as_text(trial.get("source")),
        task_id=(f"{task[:180]}@{checksum[:8]}" if checksum else task[:200]) or None,
        question=(told.question if told else "") or task or "(the trial does not tell its task)",
        system=told.system if told else "",
        task_metadata={"task_checksum": checksum} if checksum else {},
        model=_model(trial) or (told.model if told else ""),
        agent=_agent(trial) or (told.agent if told else ""),
        run=as_text(at(trial, "config", "job_id")),
        own_id=as_text(trial.get("id")) or None,
        trajectory=Trajectory(messages=told.talk.messages, steps=told.talk.steps, answer=told.talk.answer)
        if told
        else Trajectory(),
        scores=scores,
        reward=reward_of(scores) if scores else "reward",
        error=_error(trial, scores),
        usage=_usage(trial, told),
        duration_s=_duration(trial),
        orphans=told.talk.orphans if told else 0,
        metadata=_facts(trial),
    )


def _scores(trial: dict[str, Any]) -> dict[str, Seen]:
    verdict = as_dict(trial.get("verifier_result"))
    named = verdict.get("rewards", verdict.get("reward"))
    if not isinstance(named, dict):
        named = {} if named is None else {"reward": named}
    return {as_text(k)[:100]: as_seen(v) for k, v in named.items()}


def _error(trial: dict[str, Any], scores: dict[str, Seen]) -> str | None:
    exception = next((e for part in (trial, *_steps(trial)) if (e := part.get("exception_info"))), None)
    if not exception:
        return None
    kind, message = as_text(at(exception, "exception_type")), as_text(at(exception, "exception_message"))
    verdicts = [seen.value for seen in scores.values() if seen.value is not None]
    if verdicts and ("Timeout" in kind or max(verdicts) > 0):
        return None
    return ": ".join(part for part in (kind, message[:1_000]) if part) or "an exception"


def _model(trial: dict[str, Any]) -> str:
    info = at(trial, "agent_info", "model_info")
    named = "/".join(part for k in ("provider", "name") if (part := as_text(at(info, k))))
    return as_text(at(trial, "config", "agent", "model_name")) or named


def _agent(trial: dict[str, Any]) -> str:
    return " ".join(part for k in ("name", "version") if (part := as_text(at(trial, "agent_info", k))))


def _usage(trial: dict[str, Any], told: Story | None) -> Usage:
    """What the trial says that the agent took, sub-agents included; else what the trajectory says."""
    known, whole = told.usage if told else Usage(), as_dict(trial.get("agent_result"))
    results = [whole] if whole else [as_dict(step.get("agent_result")) for step in _steps(trial)]
    prompt, completion = (
        sum(max(0, as_int(r.get(k)) or 0) for r in results) for k in ("n_input_tokens", "n_output_tokens")
    )
    if not prompt and not completion:
        return known
    cost = sum(max(0.0, as_number(r.get("cost_usd")) or 0.0) for r in results)
    return Usage(calls=known.calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost)


def _duration(trial: dict[str, Any]) -> float | None:
    """How long the agent was at work; else how long the trial took."""
    for span in (trial.get("agent_execution"), trial):
        begun, ended = moment(at(span, "started_at")), moment(at(span, "finished_at"))
        if begun is not None and ended is not None and ended >= begun:
            return round(ended - begun, 3)
    return None


def _facts(trial: dict[str, Any]) -> dict[str, JsonValue]:
    facts = {
        "trial": as_text(trial.get("trial_name"))[:200],
        "exception": as_text(at(trial, "exception_info", "exception_type")),
    }
    return {name: text for name, text in facts.items() if text}
