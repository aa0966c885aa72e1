"""Results of Terminal-Bench 1 (`tb run`): `results.json` of a run and of each of its trials, `run_metadata.json`.

1. `is_resolved` is the reward; null means that the tests gave no verdict (they ran out of time, or told nothing that
   can be read): ungraded. The share of tests that passed is a second score.
2. A trial that failed because the agent crashed or could not be installed is an infrastructure error; a time limit and
   limits of the model are none, and may even stand beside success.
3. The run's file and the trials' own hold the same trials: what has a folder of its own is read there.
4. What the agent did stands nowhere as steps; the screen that it left (`panes/post-agent.txt`) is kept as a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.documents import beside, documents_of, neighbour, whole_of
from core.importers.getting import as_dict, as_int, as_list, as_said, as_seen, as_text, at
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.importers.source import bounded
from core.importers.times import moment
from core.rollout import Message, Trajectory, Usage

_REPEAT = re.compile(r"\.(\d{1,6})-of-\d{1,6}(?:\.|$)")
_CRASHES = {"unknown_agent_error", "agent_installation_failed"}
MAX_SCREEN = 20_000
"""Characters of the last screen that are kept."""


class TerminalBench:
    """The format of runs and of trials."""

    name = "terminal_bench"
    title = "Terminal-Bench results"
    brings = Brings(reward="yes", repeats="yes", steps="no")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_trial(record) or _is_run(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        about = as_dict(whole_of(beside(opened, "run_metadata.json", "../../run_metadata.json")))
        if not about:
            yield Remark(
                text="No run_metadata.json stands beside the results: agent and model are not known."
            )
        screen = _screen(opened)
        for document in documents_of(opened, lambda value: _is_trial(value) or _is_run(value)):
            if isinstance(document, Aside):
                yield document
            elif _is_trial(document.value):
                yield _attempt(document.place, document.value, about, screen)
            else:
                yield from _run(document.value, about, opened)


def _is_trial(value: Any) -> bool:
    return isinstance(value, dict) and "trial_name" in value and "is_resolved" in value


def _is_run(value: Any) -> bool:
    return isinstance(at(value, "results"), list) and "accuracy" in value and "pass_at_k" in value


def _run(run: dict[str, Any], about: dict[str, Any], opened: Opened) -> Iterator[Found]:
    for number, trial in enumerate(as_list(run.get("results"))):
        place = f"results, item {number + 1}"
        if not _is_trial(trial):
            yield set_aside(place, "it is no trial: 'is_resolved' is missing", as_said(trial))
            continue
        folder = f"{as_text(trial.get('task_id'))[:200]}/{as_text(trial['trial_name'])[:300]}"
        if neighbour(opened, f"{folder}/results.json") is None:
            yield _attempt(place, trial, about, _screen(opened, folder))
        else:
            yield Remark(
                text="Trials that have a folder of their own were read there, and not from the run's results."
            )


def _attempt(place: str, trial: dict[str, Any], about: dict[str, Any], screen: str) -> Attempt:
    task = as_text(trial.get("task_id"))[:200]
    question = as_text(trial.get("instruction")) or task or "(the trial does not tell its task)"
    said = (Message(role="user", content=question), Message(role="tool", content=screen, name="terminal"))
    repeat = _REPEAT.search(as_text(trial.get("trial_name")))
    mode = as_text(trial.get("failure_mode"))
    return Attempt(
        place=place,
        namespace=_namespace(about),
        task_id=task or None,
        question=question,
        model=as_text(about.get("model_name")),
        agent=as_text(about.get("agent_name")),
        run=as_text(about.get("run_id")),
        repeat=int(repeat[1]) if repeat else None,
        own_id=as_text(trial.get("id")) or None,
        trajectory=Trajectory(
            messages=said if screen else said[:1],
            finish_reason="time limit" if mode == "agent_timeout" else None,
        ),
        scores=_scores(trial),
        reward="is_resolved",
        error=mode if mode in _CRASHES and trial.get("is_resolved") is not True else None,
        usage=Usage(
            prompt_tokens=max(0, as_int(trial.get("total_input_tokens")) or 0),
            completion_tokens=max(0, as_int(trial.get("total_output_tokens")) or 0),
        ),
        duration_s=_duration(trial),
        metadata={"failure_mode": mode} if mode not in ("", "unset", "none") else {},
    )


def _namespace(about: dict[str, Any]) -> str:
    """The data set at its version: the tasks of another version are others."""
    named = " ".join(t for k in ("dataset_name", "dataset_version") if (t := as_text(about.get(k))))
    return named or "terminal-bench"


def _scores(trial: dict[str, Any]) -> dict[str, Seen]:
    verdict = trial.get("is_resolved")
    scores = {"is_resolved": as_seen(verdict) if verdict is not None else Seen(raw="null")}
    tests = list(as_dict(trial.get("parser_results")).values())
    if tests:
        scores["tests_passed"] = Seen(value=sum(t == "passed" for t in tests) / len(tests))
    return scores


def _screen(opened: Opened, folder: str = ".") -> str:
    """What stood on the terminal when the agent had ended; "" where that was not kept."""
    found = beside(opened, f"{folder}/panes/post-agent.txt")
    if found is None:
        return ""
    text = found.head[: 4 * MAX_SCREEN].decode("utf-8", "replace")
    return bounded(as_text(text.strip()), MAX_SCREEN)


def _duration(trial: dict[str, Any]) -> float | None:
    for part in ("agent", "trial"):
        begun, ended = moment(trial.get(f"{part}_started_at")), moment(trial.get(f"{part}_ended_at"))
        if begun is not None and ended is not None and ended >= begun:
            return round(ended - begun, 3)
    return None
