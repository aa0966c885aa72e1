"""Trials of Harbor are read as a person reads them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from core.importers.attempt import Attempt
from core.importers.formats.atif import Atif
from core.importers.formats.harbor import Harbor
from core.importers.opened import Opened
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.make_atif import trajectory
from tests.importers.make_harbor import make, make_job, trial
from tests.importers.making import attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import mutations, read_lines

FORM = Harbor()


def one(folder: Path, made: dict[str, Any], **changes: Any) -> Attempt:
    path = folder / "result.json"
    path.write_text(json.dumps(made | changes, indent=4))
    (attempt,) = attempts_of(FORM, path)
    return attempt


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.scored, told.unscored, told.errors) == (12, 3, 6, 3, 3)


def test_a_job_is_read_trial_by_trial_with_the_trajectories(tmp_path: Path) -> None:
    attempts = []
    for path in make_job(tmp_path, 8):
        file = Opened(path, root=tmp_path)
        assert FORM.recognises(file)
        assert not Atif().recognises(file)
        attempts += [f for f in FORM.read(file) if isinstance(f, Attempt)]
        assert file.used == {path.parent / "agent" / "trajectory.json"}
    assert Counter((a.namespace, a.task_id) for a in attempts) == {
        ("made", f"task-{n}@00000000"): 4 for n in (0, 1)
    }
    assert Counter(a.question for a in attempts) == {"Make file 0.": 4, "Make file 1.": 4}
    assert sum(len(a.trajectory.steps) for a in attempts) == 16
    assert [a.scores["reward"].value for a in attempts if a.scores] == [1.0, 0.0, 1.0, 0.0]
    assert {(a.model, a.agent, a.run) for a in attempts} == {("maker-1", "mini 1.0", "job-1")}
    assert len({a.own_id for a in attempts}) == 8


def several_steps(folder: Path, *told: dict[str, Any], **changes: Any) -> Path:
    """A trial whose steps have folders of their own, as Harbor keeps those of `[[steps]]`."""
    for number, step in enumerate(told):
        agent = folder / "steps" / step["step_name"] / "agent"
        agent.mkdir(parents=True)
        (agent / "trajectory.json").write_text(json.dumps(trajectory(number)))
    made = trial(0) | {"agent_result": None, "step_results": list(told)} | changes
    (folder / "result.json").write_text(json.dumps(made))
    return folder / "result.json"


def test_a_trial_of_several_steps_is_one_attempt(tmp_path: Path, workspace: Workspace) -> None:
    used = {"n_input_tokens": 100, "n_output_tokens": 10, "cost_usd": 0.25}
    steps = [{"step_name": name, "agent_result": used} for name in ("first", "second")]
    path = several_steps(tmp_path, *steps)
    (attempt,) = attempts_of(FORM, path)
    assert [m.content for m in attempt.trajectory.messages if m.role == "user"][:2] == [
        "Make file 0.",
        "Make file 1.",
    ]
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens, attempt.usage.cost_usd) == (
        200,
        20,
        0.5,
    )
    assert (attempt.scores["reward"].value, attempt.error) == (1.0, None)
    report = workspace.intake.add_rollouts([tmp_path], ImportOptions(), "ann")
    assert (report.attempts, report.added, report.steps.total) == (1, 1, len(attempt.trajectory.steps))


def test_what_broke_a_step_off_broke_the_trial_off(tmp_path: Path) -> None:
    broken = {
        "step_name": "first",
        "exception_info": {"exception_type": "AgentError", "exception_message": "gone"},
    }
    (lost,) = attempts_of(
        FORM, several_steps(tmp_path / "a", broken, verifier_result={"rewards": {"reward": 0.0}})
    )
    assert lost.error == "AgentError: gone"


def test_the_trajectory_of_a_trial_is_read_before_those_of_its_steps(tmp_path: Path) -> None:
    path = several_steps(tmp_path, {"step_name": "first"}, {"step_name": "second"})
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "trajectory.json").write_text(json.dumps(trajectory(7)))
    (attempt,) = attempts_of(FORM, path)
    assert attempt.question == "Make file 7."


def test_the_result_of_a_job_sums_up_and_is_no_attempt(tmp_path: Path) -> None:
    make_job(tmp_path, 2)
    path = tmp_path / "result.json"
    assert FORM.recognises(opened(path))
    assert [type(f).__name__ for f in read(FORM, path)] == ["Remark"]


def test_trials_that_only_the_job_lists_are_read(tmp_path: Path) -> None:
    make_job(tmp_path, 1)
    listed = {"n_total_trials": 2, "stats": {}, "trial_results": [trial(0), trial(1), "oops"]}
    (tmp_path / "result.json").write_text(json.dumps(listed))
    (attempt,) = attempts_of(FORM, tmp_path / "result.json")
    assert attempt.metadata["trial"] == "task-0__0000001"


def test_a_task_that_was_changed_is_another_task(tmp_path: Path) -> None:
    old, new = one(tmp_path, trial(0)), one(tmp_path, trial(1), task_checksum="f" * 64)
    assert (old.task_id, new.task_id) == ("task-0@00000000", "task-0@ffffffff")


def test_an_exception_without_a_verdict_is_an_error(tmp_path: Path) -> None:
    attempt = one(tmp_path, trial(0, reward=None, exception="EnvironmentStartError"))
    assert attempt.error == "EnvironmentStartError: it broke"
    assert (attempt.scores, attempt.reward) == ({}, "reward")


def test_a_time_limit_with_a_verdict_is_graded_and_told(tmp_path: Path) -> None:
    attempt = one(tmp_path, trial(0, reward=1.0, exception="AgentTimeoutError"))
    assert (attempt.error, attempt.scores["reward"].value) == (None, 1.0)
    assert attempt.metadata["exception"] == "AgentTimeoutError"
    assert (
        one(tmp_path, trial(0, reward=None, exception="AgentTimeoutError")).error
        == "AgentTimeoutError: it broke"
    )


def test_a_crash_that_was_graded_0_is_an_error(tmp_path: Path) -> None:
    assert one(tmp_path, trial(0, reward=0.0, exception="NonZeroAgentExitCodeError")).error is not None
    assert one(tmp_path, trial(0, reward=1.0, exception="NonZeroAgentExitCodeError")).error is None


def test_no_verdict_and_no_exception_is_ungraded(tmp_path: Path) -> None:
    attempt = one(tmp_path, trial(0, reward=None))
    assert (attempt.error, attempt.scores) == (None, {})


def test_of_several_rewards_only_one_of_that_name_is_the_reward(tmp_path: Path) -> None:
    assert one(tmp_path, trial(0), verifier_result={"rewards": {"tests": 0.5}}).reward == "tests"
    assert one(tmp_path, trial(0), verifier_result={"rewards": {"tests": 0.5, "style": 1}}).reward is None
    assert (
        one(tmp_path, trial(0), verifier_result={"rewards": {"reward": 0.5, "style": 1}}).reward == "reward"
    )


def test_the_tokens_of_the_trial_count_else_those_of_the_trajectory(tmp_path: Path) -> None:
    path = make_job(tmp_path, 1)[0]

    def usage() -> tuple[int, int, int, float]:
        (attempt,) = [f for f in FORM.read(Opened(path, root=tmp_path)) if isinstance(f, Attempt)]
        return (*attempt.usage.model_dump().values(),)  # type: ignore[return-value]

    assert usage() == (2, 300, 20, 0.5)
    path.write_text(json.dumps(trial(0) | {"agent_result": {"n_input_tokens": None}}))
    assert usage() == (2, 220, 15, 0.02)


def test_how_long_the_agent_was_at_work_is_told(tmp_path: Path) -> None:
    assert one(tmp_path, trial(0)).duration_s == 30.0
    assert one(tmp_path, trial(0), agent_execution=None).duration_s == 600.0


def test_a_trial_without_a_trajectory_is_an_attempt_all_the_same_and_that_is_told(tmp_path: Path) -> None:
    path = make_job(tmp_path, 1)[0]
    (path.parent / "agent" / "trajectory.json").write_text("{")
    assert remarks_of(FORM, path) == [
        "No ATIF trajectory stands in the folder of a trial: its messages and steps are not known."
    ]
    assert [a.question for a in attempts_of(FORM, path)] == ["task-0"]


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    trials = [trial(0), *mutations(trial(0, exception="X"))]
    assert sum(read_lines(FORM, tmp_path / "result.jsonl", trials)) == len(trials)
