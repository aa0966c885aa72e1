"""Traces of verifiers 1 are read as a person reads them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from core.importers.attempt import Attempt
from core.importers.formats.verifiers_v1 import VerifiersV1
from tests.importers.make_verifiers_v1 import episode, make, node, trace
from tests.importers.making import asides_of, attempts_of, counted, opened, remarks_of
from tests.importers.mutating import mutations, read_lines

FORM = VerifiersV1()


def write(folder: Path, *episodes: Any) -> Path:
    path = folder / "traces.jsonl"
    path.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in episodes))
    return path


def one(folder: Path, **changes: Any) -> Attempt:
    (attempt,) = attempts_of(FORM, write(folder, episode(0, trace(0, 7) | changes)))
    return attempt


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    attempts = attempts_of(FORM, path)
    assert Counter("error" if a.error else a.scores["reward"].value for a in attempts) == {
        1.0: 6,
        0.0: 3,
        "error": 3,
    }
    assert counted(attempts) == told
    assert (told.attempts, told.tasks, told.steps, told.prompt_tokens, told.completion_tokens) == (
        12,
        3,
        9,
        180,
        54,
    )


def test_groups_are_the_repeats_of_a_key(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    make(path, 12)
    groups = Counter((a.namespace, a.task_id, a.model, a.agent) for a in attempts_of(FORM, path))
    assert groups == {("adding", f"key-{n}", "maker-1", ""): 4 for n in range(3)}


def test_a_reward_is_the_weighted_sum_and_a_weight_may_be_0(tmp_path: Path) -> None:
    rewards = {"exact": {"score": 0.5, "weight": 2.0}, "brevity": {"score": 9.0, "weight": 0}, "plain": 0.25}
    scores = one(tmp_path, rewards=rewards).scores
    assert {name: seen.value for name, seen in scores.items()} == {
        "exact": 0.5,
        "brevity": 9.0,
        "plain": 0.25,
        "words": 1.0,
        "reward": 1.25,
    }


def test_no_rewards_and_a_null_among_them_are_ungraded(tmp_path: Path) -> None:
    assert one(tmp_path, rewards={}).scores["reward"].value is None
    assert (
        one(tmp_path, rewards={"exact": None, "other": {"score": 1.0, "weight": 1.0}}).scores["reward"].value
        is None
    )
    assert one(tmp_path, rewards={}).error is None


def test_a_provider_that_failed_is_an_error(tmp_path: Path) -> None:
    (attempt,) = attempts_of(FORM, write(tmp_path, episode(0, trace(0, 7, exact=None))))
    assert attempt.error == "ProviderError: upstream 400"


def test_errors_of_tries_before_the_one_that_went_well_are_no_error(tmp_path: Path) -> None:
    assert one(tmp_path, ok=True, errors=[{"type": "ProviderError", "message": "503"}]).error is None


def test_a_time_limit_that_was_graded_is_no_error(tmp_path: Path) -> None:
    late = {"ok": False, "is_timeout": True, "errors": [{"type": "TimeoutError", "message": "600 s"}]}
    assert one(tmp_path, **late).error is None
    assert one(tmp_path, **late, rewards={}).error == "TimeoutError: 600 s"


def test_an_episode_without_a_trace_is_an_attempt_that_broke_off(tmp_path: Path) -> None:
    broken = episode(0, trace(0, 7)) | {
        "traces": [],
        "ok": False,
        "errors": [{"type": "SetupError", "message": "no box"}],
    }
    (attempt,) = attempts_of(FORM, write(tmp_path, broken))
    assert (attempt.question, attempt.error) == ("What is 7 + 2?", "SetupError: no box")


def test_a_judge_without_rewards_beside_an_agent_with_rewards_is_no_attempt(tmp_path: Path) -> None:
    judge = trace(0, 7, agent="judge") | {"rewards": {}}
    path = write(tmp_path, episode(0, trace(0, 7, agent="solver"), judge))
    assert [(a.agent, a.ends, a.place) for a in attempts_of(FORM, path)] == [
        ("solver", True, "line 1, trace 1"),
        ("judge", False, "line 1, trace 2"),
    ]


def test_a_branch_that_tells_again_what_stood_there_adds_nothing(tmp_path: Path) -> None:
    nodes = trace(0, 7)["nodes"]
    calling = nodes[1]["message"]["tool_calls"]
    nodes += [
        node("assistant", "", 0, tool_calls=calling),
        node("tool", "9", 4, tool_call_id="c1"),
        node("user", "Summary: 9 was found.", 5),
        node("assistant", "It is 9.", 6, sampled=True),
    ]
    attempt = one(tmp_path, nodes=nodes)
    assert len(attempt.trajectory.steps) == 1
    assert [m.content for m in attempt.trajectory.messages][-3:] == ["9", "Summary: 9 was found.", "It is 9."]
    assert remarks_of(FORM, write(tmp_path, episode(0, trace(0, 7) | {"nodes": nodes}))) == [
        "The messages of a trace branch; they were read in the order in which they came."
    ]


def test_a_prompt_may_be_messages_or_missing(tmp_path: Path) -> None:
    asked = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": [{"type": "text", "text": "7 + 2?"}]},
    ]
    assert one(tmp_path, task={"key": "k", "data": {"prompt": asked}}).question == "7 + 2?"
    assert one(tmp_path, task={"key": "k", "data": {}}).question == "What is 7 + 2?"


def test_tokens_are_counted_once_for_each_call_and_without_the_judge(tmp_path: Path) -> None:
    usage = one(
        tmp_path, extra_usage=[{"prompt_tokens": 999, "completion_tokens": 999}], num_input_tokens=5
    ).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 20, 6)
    assert one(tmp_path).duration_s == 2.5


def test_a_trace_on_a_line_of_its_own_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, trace(0, 7))
    assert FORM.recognises(opened(path))
    assert [a.task_id for a in attempts_of(FORM, path)] == ["key-7"]


def test_a_bad_line_is_set_aside_and_the_others_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, episode(0, trace(0, 7)), '{"traces": [', '{"ok": true}', episode(1, trace(1, 7)))
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 2", "the line is cut off: its JSON ends in the middle"),
        ("line 3", "it is no episode: 'traces' is missing"),
    ]
    assert [a.place for a in attempts_of(FORM, path)] == ["line 1", "line 4"]


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    episodes = [episode(0, trace(0, 7)), *mutations(episode(0, trace(0, 7)))]
    assert sum(read_lines(FORM, tmp_path / "traces.jsonl", episodes)) >= len(episodes)
    judged = [episode(0, trace(0, 7), judge) for judge in mutations(trace(0, 7, agent="judge"))]
    assert sum(read_lines(FORM, tmp_path / "traces.jsonl", judged)) == 2 * len(judged)


def test_a_reward_for_what_was_not_recorded_is_no_attempt(tmp_path: Path) -> None:
    silent = trace(0, 7) | {"nodes": [], "root_reply": None, "stop_condition": None, "calls": []}
    [aside] = asides_of(FORM, write(tmp_path, episode(0, silent)))
    assert "nothing is recorded of what the model did" in aside.reason
    assert one(tmp_path, nodes=[], root_reply="7", stop_condition=None).trajectory.answer == "7"
