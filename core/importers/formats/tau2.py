"""Results of tau2-bench: one file, or `results.json` beside a folder `simulations` with a file for each attempt.

Source: `Results`, `SimulationRun` and the messages of tau2's data model.

1. Task ids count in each domain. The reward is `reward_info.reward`, by definition; its parts are scores beside it.
   Without `reward_info` an attempt is ungraded.
2. `infrastructure_error`, `unexpected_error` and `context_window_exceeded` (which tau2 leaves out of its own figures)
   are infrastructure errors. Every other premature end is graded, with 0 by tau2, and marked `premature`.
3. The simulated user has tools too. Its calls and their results are told in its messages, which the agent never saw;
   they are no steps. `raw_data` repeats a message and is not read.
4. Usage is what the assistant's messages took, or the session of a voice agent; the user's cost is kept apart.
5. A voice simulation has ticks in place of messages: their words and calls are read; sound, timing and turn-taking are
   left out, and that is said.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.dialects import conversation
from core.importers.formats.tau2_messages import Speech, told
from core.importers.formats.tau2_setting import (
    Setting,
    question_of,
    setting_at,
    take_setting,
    task_metadata_of,
)
from core.importers.getting import as_dict, as_int, as_json, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.json_stream import JsonStream, not_utf8_in
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.importers.source import bounded
from core.rollout import Trajectory, Usage

_NOT_EVALUATED = {"infrastructure_error", "unexpected_error", "context_window_exceeded"}
_PREMATURE = {"agent_error", "user_error", "max_steps", "too_many_errors", "timeout"}
_ENDS = {"user_stop": "stop", "agent_stop": "stop", "max_steps": "step limit", "timeout": "time limit"}

_SIMULATION = {"id", "task_id", "termination_reason"}


class Tau2:
    """The format."""

    name = "tau2"
    title = "tau2-bench results"
    brings = Brings(reward="yes", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        found = _first_members(opened.head)
        if at(found, "info", "environment_info") is not None and at(found, "info", "agent_info") is not None:
            return "tasks" in found or "simulations" in found
        return found.keys() >= _SIMULATION and bool(
            found.keys() & {"messages", "ticks", "trial", "reward_info"}
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        if _first_members(opened.head).keys() >= _SIMULATION:
            yield from _one_simulation(opened)
        else:
            yield from _results(opened)


def _first_members(head: bytes) -> dict[str, Any]:
    """Members of the object that a file is, as far as its head goes."""
    return as_dict(JsonStream(io.BytesIO(head)).outline(1))


def _results(opened: Opened) -> Iterator[Found]:
    """The attempts of a file that holds all of them."""
    setting, reading, place = Setting(), _Reading(), "the results"
    with opened.stream() as file:
        stream = JsonStream(file)
        try:
            for key in stream.members():
                if key == "simulations" and stream.kind() == "[":
                    if not (setting.info and setting.tasks):  # they may follow
                        setting = setting_at(opened.path)
                    for number in stream.items():
                        place = f"simulation {number + 1}"
                        yield reading.simulation(stream, setting, place)
                    place = "what follows the simulations"
                else:
                    take_setting(key, stream, setting)
            stream.end()
        except ValueError as e:
            yield set_aside(place, f"{e}; nothing after it was read", "")
    if not reading.simulations:
        yield Remark(
            text=f"{opened.name} holds no attempts; they are in the folder 'simulations' beside it, if any."
        )
    yield from reading.remarks()


def _one_simulation(opened: Opened) -> Iterator[Found]:
    """The attempt of a file in the folder `simulations`; who played and what is in `results.json` above it."""
    reading = _Reading()
    results = opened.beside("../results.json")
    if results is None:
        yield Remark(
            text="A simulation without its results.json tells neither model nor task; import the folder."
        )
    with opened.stream() as file:
        stream = JsonStream(file)
        try:
            setting = setting_at(results) if results else Setting()
            if results is not None and setting.damage:
                yield Remark(
                    text=f"The {results.name} above the simulations is damaged ({setting.damage}): what stands after "
                    "that, of models and tasks, is not known."
                )
            found = reading.simulation(stream, setting, "the simulation")
            stream.end()
        except ValueError as e:
            found = set_aside("the simulation", str(e), "")
    yield found
    yield from reading.remarks()


@dataclass
class _Reading:
    """What is counted while simulations are read."""

    simulations: int = 0
    voice: int = 0
    user_calls: int = 0

    def simulation(self, stream: JsonStream, setting: Setting, place: str) -> Attempt | Aside:
        """The simulation that comes next.

        Raises:
            ValueError: one clause that says what is wrong with its JSON.
        """
        self.simulations += 1
        if stream.kind() != "{":
            return set_aside(place, "the simulation is no object", as_said(stream.value()))
        members, speech = dict[str, Any](), Speech()
        for key in stream.members():
            if key == "ticks" and stream.kind() == "[":
                for _ in stream.items():
                    speech.tick(stream.value())
            elif key == "effect_timeline":
                stream.skip()
            else:
                members[key] = stream.value()
        if stream.not_utf8 and not_utf8_in(members):
            return set_aside(place, "bytes of it are not UTF-8", as_said(members))
        if not members.get("task_id") and not isinstance(members.get("messages"), list):
            return set_aside(
                place, "this is no simulation: it has neither task_id nor messages", as_said(members)
            )
        messages = as_list(members.get("messages"))
        messages = messages or speech.messages()
        self.voice += speech.ticks > 0
        self.user_calls += any(at(m, "role") == "user" and at(m, "tool_calls") for m in messages)
        return _attempt(members, messages, setting, place)

    def remarks(self) -> Iterator[Remark]:
        if self.voice:
            yield Remark(
                text="Of voice simulations of tau2 only the words and the calls of tools were read; sound, timing and "
                "turn-taking are left out."
            )
        if self.user_calls:
            yield Remark(
                text="Tools that the simulated user of tau2 called are told in its messages; they are no steps."
            )


def _attempt(members: dict[str, Any], messages: list[Any], setting: Setting, place: str) -> Attempt:
    task_id, ended = as_text(members.get("task_id")), as_text(members.get("termination_reason"))
    task = setting.tasks.get(task_id, {})
    talk = conversation(m for message in messages for m in told(message))
    return Attempt(
        place=place,
        namespace=setting.namespace,
        task_id=task_id or None,
        question=question_of(task) or f"Task {task_id} of {setting.namespace}",
        system=as_text(members.get("policy")) or as_text(at(setting.info, "environment_info", "policy")),
        task_metadata=task_metadata_of(task),
        model=setting.model,
        agent=setting.agent,
        repeat=as_int(members.get("trial")),
        own_id=as_text(members.get("id")) or None,
        trajectory=Trajectory(
            messages=talk.messages,
            steps=talk.steps,
            answer=talk.answer,
            finish_reason=_ENDS.get(ended, ended.replace("_", " ")) or None,
        ),
        scores=_scores(members.get("reward_info")),
        reward="reward",
        error=_error(ended, members.get("info")),
        usage=_usage(members, messages),
        duration_s=as_number(members.get("duration")),
        orphans=talk.orphans,
        metadata=_metadata(members, ended),
    )


def _scores(reward_info: Any) -> dict[str, Seen]:
    if not isinstance(reward_info, dict):
        return {}
    parts = as_dict(reward_info.get("reward_breakdown"))
    return {"reward": as_seen(reward_info.get("reward"))} | {
        f"reward_breakdown.{as_text(name)}": as_seen(value) for name, value in parts.items()
    }


def _error(ended: str, info: Any) -> str | None:
    if ended not in _NOT_EVALUATED:
        return None
    why = as_text(at(info, "error")).strip()
    return bounded(ended.replace("_", " ") + (f": {why}" if why else ""), 1_000)


def _usage(members: dict[str, Any], messages: list[Any]) -> Usage:
    """What the agent took: its messages, or the records of its voice session; never the user's."""
    own = [as_dict(m) for m in messages if at(m, "role") == "assistant"]
    records = [as_dict(r) for r in as_list(at(members.get("agent_usage"), "records"))]
    counted = [as_dict(m.get("usage")) for m in own] + [r for r in records if r.get("billable") is not False]
    cost = as_number(members.get("agent_cost"))
    if cost is None:
        cost = sum(as_number(m.get("cost")) or 0.0 for m in own)
    return Usage(
        calls=len(own),
        prompt_tokens=sum(
            as_int(u.get("prompt_tokens")) or as_int(u.get("input_tokens")) or 0 for u in counted
        ),
        completion_tokens=sum(
            as_int(u.get("completion_tokens")) or as_int(u.get("output_tokens")) or 0 for u in counted
        ),
        cost_usd=cost,
    )


def _metadata(members: dict[str, Any], ended: str) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {
        "termination_reason": ended,
        "premature": True if ended in _PREMATURE else None,
        "seed": as_int(members.get("seed")),
        "user_cost": as_number(members.get("user_cost")),
        "started_at": as_text(members.get("start_time")),
        "mode": as_text(members.get("mode")),
    }
    if basis := as_list(at(members.get("reward_info"), "reward_basis")):
        facts["reward_basis"] = as_json(basis)
    return {name: fact for name, fact in facts.items() if fact not in (None, "")}
