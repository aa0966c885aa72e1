"""Results of tau-bench become attempts: a crash is no zero, and the groups give the published pass^k."""

from __future__ import annotations

import gzip
import json
from math import comb
from pathlib import Path
from typing import Any

import pytest

from core.effect import pass_hat_k, successes
from core.importers.attempt import Attempt
from core.importers.formats import FORMATS
from core.importers.formats.tau_bench import TauBench
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.make_tau_bench import POLICY, crashed, make, record, write
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import as_stored, mutations

TAU = TauBench()


def written(folder: Path, *records: Any, name: str = "gpt-9-airline.json") -> Path:
    write(folder / name, list(records))
    return folder / name


def only(path: Path) -> Attempt:
    (attempt,) = attempts_of(TAU, path)
    return attempt


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_a_file_comes_in_as_a_person_counts_it(tmp_path: Path, name: str) -> None:
    counts = make(tmp_path / name)
    assert counted(read(TAU, tmp_path / name)) == counts
    assert (counts.attempts, counts.tasks, counts.scored, counts.errors) == (12, 3, 9, 3)
    assert (counts.steps, counts.succeeded, counts.failed) == (9, 0, 3)


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_a_file_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    make(tmp_path / name)
    (tmp_path / name).rename(tmp_path / "data.bin")
    assert next(f for f in FORMATS if f.recognises(opened(tmp_path / "data.bin"))).name == "tau_bench"


def test_a_single_attempt_is_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(record(3, 0), indent=1))
    assert TAU.recognises(opened(tmp_path / "one.json"))
    assert only(tmp_path / "one.json").task_id == "3"


def test_a_record_becomes_an_attempt(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, record(7, 2, fails=True)))
    assert (attempt.namespace, attempt.task_id, attempt.repeat) == ("tau-bench airline", "7", 2)
    assert attempt.question == "You want to cancel booking 7."
    assert attempt.system == POLICY
    assert attempt.expected is None, "the right actions are no answer that a text could be compared with"
    assert attempt.task_metadata["actions"] == [{"name": "cancel", "kwargs": {"id": 7}}]
    assert {name: seen.value for name, seen in attempt.scores.items()} == {"reward": 1.0, "r_actions": 1.0}
    assert attempt.reward == "reward"
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == (
        "Booking 7 is cancelled.",
        "stop",
    )
    assert (attempt.usage.calls, attempt.usage.cost_usd) == (2, 0.0)
    assert attempt.metadata == {"user_cost": 0.002}
    (step,) = attempt.trajectory.steps
    assert (step.tool, step.parameters) == ("get_user", {"user": 7})
    assert (step.success, step.error, step.told_by) == (False, "Error: user not found", "text")


def test_a_result_that_does_not_say_error_is_no_success(tmp_path: Path) -> None:
    (step,) = only(written(tmp_path, record(1, 0))).trajectory.steps
    assert (step.success, step.told_by) == (None, "")


def test_a_crash_is_an_error_in_the_group_of_its_task_and_not_a_zero(tmp_path: Path) -> None:
    first, second = attempts_of(TAU, written(tmp_path, crashed(4, 0), record(4, 1), name="results.json"))
    assert first.error == "APIConnectionError: no route"
    assert (first.namespace, first.question, first.task_id) == (
        second.namespace,
        second.question,
        second.task_id,
    )


def test_a_domain_that_other_attempts_of_the_file_tell_is_not_said_to_be_of_its_name(tmp_path: Path) -> None:
    path = written(
        tmp_path, crashed(4, 0), record(4, 1), name="gpt-x-0.0_range_0--1_user-gpt-y-llm_0101.json"
    )
    assert remarks_of(TAU, path) == [f"Read from the name of {path.name}: the model (gpt-x)."]


def test_an_attempt_without_messages_never_began(tmp_path: Path) -> None:
    assert only(written(tmp_path, record(4, 0, 0.0, traj=[]))).error is not None


@pytest.mark.parametrize("reward", [None, "nan", float("nan"), "x"])
def test_a_reward_that_is_no_number_is_ungraded(tmp_path: Path, reward: Any) -> None:
    attempt = only(written(tmp_path, record(1, 0, reward)))
    assert (attempt.scores["reward"].value, attempt.error) == (None, None)


def test_the_same_number_in_two_domains_is_two_tasks(tmp_path: Path) -> None:
    retail = record(0, 0)
    retail["traj"][0]["content"] = "# Retail agent policy\n\nAs a retail agent, ..."
    attempts = attempts_of(TAU, written(tmp_path, record(0, 0), retail))
    assert [a.namespace for a in attempts] == ["tau-bench airline", "tau-bench retail"]


@pytest.mark.parametrize(
    ("name", "model", "agent"),
    [
        ("gpt-4o-airline.json", "gpt-4o", ""),
        ("sonnet-35-new-retail_part.jsonl", "sonnet-35-new", ""),
        (
            "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0612073827.json",
            "gpt-4o",
            "tool-calling, temperature 0.0, user gpt-4o-llm",
        ),
        (
            "react-airline-qwen3-8b-0.7_range_0-50_user-gpt-4o-llm_0612073827.json",
            "qwen3-8b",
            "react, temperature 0.7, user gpt-4o-llm",
        ),
        ("results.json", "", ""),
    ],
)
def test_model_and_agent_are_read_from_the_name_and_said_to_be(
    tmp_path: Path, name: str, model: str, agent: str
) -> None:
    path = written(tmp_path, record(1, 0), name=name)
    assert (only(path).model, only(path).agent) == (model, agent)
    told = (
        f"Read from the name of {name}: the model ({model})."
        if model
        else f"Neither {name} nor its name tells"
    )
    assert remarks_of(TAU, path)[0].startswith(told)


def test_calls_in_words_are_steps(tmp_path: Path) -> None:
    said = [
        {"role": "system", "content": POLICY},
        {"role": "user", "content": "Cancel it."},
        {
            "role": "assistant",
            "content": 'Thought:\nLook first.\nAction:\n{"name": "get_user", "arguments": {"id": 1}}',
        },
        {"role": "user", "content": "API output: Error: user not found"},
        {
            "role": "assistant",
            "content": 'Action:\n{"name": "respond", "arguments": {"content": "Who are you?"}}',
        },
        {"role": "user", "content": "API output: what?"},
        {"role": "assistant", "content": "Action: I do not write JSON"},
    ]
    trajectory = only(written(tmp_path, record(1, 0, traj=said))).trajectory
    (step,) = trajectory.steps
    assert (step.tool, step.parameters, step.success) == ("get_user", {"id": 1}, False)
    assert [m.role for m in trajectory.messages] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert trajectory.messages[4].content == "Who are you?"
    assert "[thinks] Look first." in trajectory.messages[2].content


def published(rewards: dict[str, list[float]], k: int) -> float:
    """pass^k as tau-bench's own report computes it: the mean over tasks of C(successes, k) / C(trials, k)."""
    trials = {len(r) for r in rewards.values()}.pop()
    passed = [sum(abs(r - 1) <= 1e-6 for r in of_task) for of_task in rewards.values()]
    return sum(comb(c, k) / comb(trials, k) for c in passed) / len(rewards)


def test_imported_groups_give_the_published_pass_hat_k(tmp_path: Path, workspace: Workspace) -> None:
    right = {"0": [0, 1, 0, 0], "1": [1, 1, 1, 1], "2": [1, 0, 0, 0], "3": [1, 0, 1, 0], "4": [0, 0, 0, 0]}
    records = [record(int(task), n, float(r)) for task, trials in right.items() for n, r in enumerate(trials)]
    report = workspace.intake.add_rollouts([written(tmp_path, *records)], ImportOptions(), "ann")
    rows = workspace.store.groups.page(report.run_id)[0]
    counts = [successes([r.reward for r in workspace.store.groups.get(row.id).rollouts]) for row in rows]
    ours = [sum(pass_hat_k(*count, k) for count in counts) / len(counts) for k in (1, 2, 3, 4)]
    as_recorded = {task: [float(r) for r in trials] for task, trials in right.items()}
    assert ours == pytest.approx([published(as_recorded, k) for k in (1, 2, 3, 4)])
    assert ours == pytest.approx([0.4, 7 / 30, 0.2, 0.2])


# What may be wrong with a file


def test_a_list_that_is_cut_off_gives_what_came_before_and_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, *(record(n, 0) for n in range(5)))
    path.write_bytes(path.read_bytes()[:-300])
    assert [a.task_id for a in attempts_of(TAU, path)] == ["0", "1", "2", "3"]
    (aside,) = asides_of(TAU, path)
    assert (aside.place, "cut off" in aside.reason) == ("record 5", True)


def test_a_bad_record_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, record(0, 0), "garbage", {"task_id": 1}, record(2, 0))
    assert [a.task_id for a in attempts_of(TAU, path)] == ["0", "2"]
    assert [a.place for a in asides_of(TAU, path)] == ["record 2", "record 3"]


def test_a_bad_line_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, record(0, 0), record(1, 0), record(2, 0), name="r.jsonl")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"<<<", lines[1][:90], "ü".encode("latin-1"), lines[2], b""]))
    assert [a.task_id for a in attempts_of(TAU, path)] == ["0", "2"]
    assert [a.place for a in asides_of(TAU, path)] == ["line 2", "line 3", "line 4"]


def test_a_file_in_gzip_is_the_same_file(tmp_path: Path) -> None:
    counts = make(tmp_path / "r.json")
    (tmp_path / "r.json").write_bytes(gzip.compress((tmp_path / "r.json").read_bytes()))
    assert TAU.recognises(opened(tmp_path / "r.json"))
    assert counted(read(TAU, tmp_path / "r.json")) == counts


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[1]", b'[{"task_id": 1}]', b"\xff\xfe"])
def test_other_files_are_not_taken_for_results(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert not TAU.recognises(opened(tmp_path / "a"))


@pytest.mark.parametrize("plain", [record(1, 0), crashed(1, 0)], ids=["whole", "crashed"])
def test_a_value_of_any_type_in_any_place_is_no_traceback(tmp_path: Path, plain: dict[str, Any]) -> None:
    path = written(tmp_path, *(changed := list(mutations(plain))))
    found = attempts_of(TAU, path)
    assert len(found) + len(asides_of(TAU, path)) == len(changed)
    assert all(a.question for a in found)
    assert as_stored(found) == found
