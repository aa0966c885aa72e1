"""OpenHands: `output.jsonl` of its benchmarks (version 0 and SDK), and the events of one conversation.

1. A row of `output.jsonl` is an attempt at an instance. Whether it was resolved stands in its `report` once it was
   evaluated, or in a report of SWE-bench beside it; a resolver's `success` is the opinion of a model, and no reward.
2. An `error` is an infrastructure error, but for a limit of iterations or of cost, or a loop that the agent was in.
3. The events of one conversation stand in a list, on lines, or each in a file of its own (`events/`): one attempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen, new_attempt, new_trajectory
from core.importers.documents import documents_of, neighbour, whole_of
from core.importers.formats.openhands_events import Told, is_event, told_by, usage_of
from core.importers.formats.swe_bench import Verdicts, id_of, namespace_of, stem_of, verdicts
from core.importers.getting import as_dict, as_int, as_list, as_number, as_seen, as_text, at
from core.importers.lines import is_list
from core.importers.opened import Opened
from core.rollout import Usage

_LIMITS = (
    (re.compile(r"maximum iteration|MaxIterations", re.IGNORECASE), "step limit"),
    (re.compile(r"maximum budget|BudgetExceeded", re.IGNORECASE), "cost limit"),
    (re.compile(r"stuck in a loop|StuckInLoop|StuckDetect", re.IGNORECASE), "stuck in a loop"),
)
MOST_FILES = 100_000
"""Files with one event each that are read as one conversation."""


class OpenHands:
    """The formats of OpenHands."""

    name = "openhands"
    title = "OpenHands"
    brings = Brings(reward="SWE-bench report", repeats="by runs", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_row(r) or is_event(r) or _is_export(r) for r in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        if not any(_is_row(record) for record in opened.records):
            yield from _conversation(opened)
            return
        if neighbour(opened, f"{stem_of(opened.path)}.swebench_eval.jsonl") is not None:
            yield Remark(
                text="Beside the output stands the same with verdicts (swebench_eval), which is what is read."
            )
            return
        reports = verdicts(opened)
        yield from reports.remarks
        for document in documents_of(opened, _is_row):
            if isinstance(document, Aside):
                yield document
                continue
            told = told_by(as_list(document.value.get("history")))
            yield from _unknown(told)
            yield _of_row(document.place, document.value, told, reports)


def _is_row(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("history"), list | type(None)):
        return False
    return "history" in value and (
        ("instance_id" in value and "test_result" in value) or ("issue" in value and "git_patch" in value)
    )


def _is_export(value: Any) -> bool:
    """Whether it is what the program's interface gives out: a trajectory of events."""
    return is_event(at(value, "trajectory", 0))


def _of_row(place: str, row: dict[str, Any], told: Told, reports: Verdicts) -> Attempt:
    about, result = as_dict(row.get("metadata")), as_dict(row.get("test_result"))
    problem = as_dict(row.get("instance")) or as_dict(row.get("issue"))
    instance = as_text(row.get("instance_id"))[:200] or _of_issue(problem)
    scores = _scores(row, result) or reports.scores(instance)
    limit, error = _ended(as_text(row.get("error")) or told.error, scores)
    patch = as_text(result.get("git_patch")) or as_text(row.get("git_patch"))
    question = as_text(problem.get("problem_statement")) or as_text(at(problem, "data", "problem_statement"))
    question = question or as_text(row.get("instruction")) or told.question
    metrics = row.get("metrics")
    return new_attempt(
        place=place,
        namespace=namespace_of(instance) or as_text(about.get("dataset")).rstrip("/").rsplit("/", 1)[-1],
        task_id=instance or None,
        question=question or instance or "(the row does not tell its task)",
        system=told.system,
        model=as_text(at(about, "llm_config", "model")) or as_text(at(about, "llm", "model")) or told.model,
        agent=" ".join(t for t in ("OpenHands", as_text(about.get("agent_class"))) if t),
        run=as_text(about.get("eval_output_dir")).rstrip("/").rsplit("/", 1)[-1],
        repeat=as_int(row.get("attempt")),
        own_id=_id_of_row(row, told),
        trajectory=new_trajectory(
            messages=told.talk.messages,
            steps=told.talk.steps,
            answer=patch or told.talk.answer,
            finish_reason=limit or ("stop" if told.finished else None),
        ),
        scores=scores,
        reward="resolved" if "resolved" in scores or reports.resolved else None,
        error=error,
        usage=usage_of(metrics, told.usage.calls) if at(metrics, "accumulated_token_usage") else told.usage,
        duration_s=told.duration_s,
        orphans=told.talk.orphans,
        metadata=_facts(row, limit),
    )


def _id_of_row(row: dict[str, Any], told: Told) -> str:
    """An id that a row keeps when it is evaluated; the times of its events tell equal ones apart."""
    times = [as_text(at(event, "timestamp")) for event in as_list(row.get("history"))]
    return id_of(told.talk, as_text(at(row, "metadata", "eval_output_dir")), *times)


def _of_issue(issue: dict[str, Any]) -> str:
    """The id of an issue that a resolver worked on."""
    number = as_text(issue.get("number"))
    return (
        f"{as_text(issue.get('owner'))[:80]}/{as_text(issue.get('repo'))[:80]}#{number[:20]}"
        if number
        else ""
    )


def _scores(row: dict[str, Any], result: dict[str, Any]) -> dict[str, Seen]:
    """What the evaluation wrote into the row; an evaluation that failed itself says nothing."""
    report = as_dict(row.get("report")) or as_dict(result.get("report"))
    if "resolved" in report:
        failed = [name for name in ("error_eval", "test_timeout") if report.get(name) is True]
        if failed and report["resolved"] is not True:
            return {"resolved": Seen(raw=failed[0])}
        return {"resolved": as_seen(report["resolved"])}
    told = {k: v for k, v in result.items() if isinstance(v, bool) or as_number(v) is not None}
    return {as_text(name)[:100]: as_seen(value) for name, value in told.items()}


def _ended(error: str, scores: dict[str, Seen]) -> tuple[str, str | None]:
    """(limit that the agent ran into, or "", and what broke it off from outside, or None)."""
    for pattern, limit in _LIMITS:
        if pattern.search(error):
            return limit, None
    resolved = "resolved" in scores and scores["resolved"].value == 1.0
    return "", error[:2_000] if error and not resolved else None


def _facts(row: dict[str, Any], limit: str) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {"limit": limit} if limit else {}
    if isinstance(row.get("success"), bool) and "issue" in row:
        facts["success_in_its_own_opinion"] = row["success"]
    return facts


def _unknown(told: Told) -> Iterator[Remark]:
    if told.unknown:
        yield Remark(text=f"Events of unknown kinds were left out: {', '.join(told.unknown[:5])}.")


def _conversation(opened: Opened) -> Iterator[Found]:
    """The events of a file, or of all files of a folder, as one attempt."""
    events: list[Any] = []
    if len(opened.records) == 1 and is_event(opened.records[0]) and opened.file_name.endswith(".json"):
        files = _files(opened)
        if files[0] != opened.path:
            yield Remark(
                text=f"Events that stand in files of their own are read with the first of them, {files[0].name}."
            )
            return
        for path in files:
            opened.beside(path.name)
            events.append(whole_of(Opened(path, root=opened.root)))
    else:
        if is_list(opened):
            _ = opened.whole  # it is one attempt: of a list that is cut off, none
        for document in documents_of(opened, lambda value: is_event(value) or _is_export(value)):
            if isinstance(document, Aside):
                yield document
            else:
                events += as_list(document.value.get("trajectory")) or [document.value]
    told = told_by(events)
    yield from _unknown(told)
    yield _of_conversation(opened, told)


def _files(opened: Opened) -> list[Any]:
    """The files of a folder with one event each, in order; at least the file itself."""
    folder = opened.path.parent
    named = sorted([*folder.glob("event-*.json"), *folder.glob("event-*.json.gz")])[:MOST_FILES]
    return named if opened.path in named else [opened.path]


def _of_conversation(opened: Opened, told: Told) -> Attempt:
    state = as_dict(whole_of(_state(opened)))
    limit, error = _ended(told.error, {})
    own = as_text(state.get("id"))
    return new_attempt(
        place="the conversation",
        question=told.question or "(the conversation does not tell its task)",
        system=told.system,
        model=as_text(at(state, "agent", "llm", "model")) or told.model,
        agent="OpenHands",
        own_id=own or None,
        trajectory=new_trajectory(
            messages=told.talk.messages,
            steps=told.talk.steps,
            answer=told.talk.answer,
            finish_reason=limit or ("stop" if told.finished else None),
        ),
        error=error,
        usage=told.usage if told.usage.prompt_tokens else _usage_of_state(state, told.usage),
        duration_s=told.duration_s,
        orphans=told.talk.orphans,
    )


def _state(opened: Opened) -> Opened | None:
    path = opened.beside("base_state.json", "../base_state.json")
    return Opened(path, root=opened.root) if path is not None else None


def _usage_of_state(state: dict[str, Any], known: Usage) -> Usage:
    total = Usage(calls=known.calls)
    used = at(state, "stats", "usage_to_metrics") or at(state, "stats", "service_to_metrics")
    for metrics in as_dict(used).values():
        total += usage_of(metrics, 0)
    return total
