"""What is told of a run at work: rows of the list, causes of failures, who works on it, what happened meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.job import LEASE_S, Job, later
from core.rollout import RUN_STATES, RunFilter, Usage
from core.settings import Endpoint, RunConfig
from core.workspace import Workspace
from core.workspace.estimating import Bounds, duration_s
from core.workspace.watching import attendance, cause_of, causes, history
from tests.make import add_tasks, make_group, make_tasks

AT = "2026-01-01T00:00:00Z"
ONE, TWO = "here 1 1.0", "here 2 2.0"


def add_run(ws: Workspace, count: int = 2, *, seed: int = 0, split: str = "train", model: str = "m") -> str:
    tasks = make_tasks(count, split=split)
    add_tasks(ws, tasks)
    config = RunConfig.model_validate({"seed": seed, "split": split, "group_size": 3})
    return ws.store.runs.create(
        config,
        tasks,
        [0] * count,
        request=f"{seed} {split} {model}",
        kind="sampled",
        library_version=0,
        model=model,
        note="",
        actor="ann",
    )


def save(ws: Workspace, run_id: str, *groups: Sequence[float | str | None]) -> None:
    for place, rewards in zip(ws.store.groups.waiting(run_id), groups, strict=False):
        ws.store.groups.save(make_group(*rewards, id=place.id, task_id=place.task_id))


# --- the list ---


def test_a_row_of_the_list_says_what_the_whole_run_says(workspace: Workspace) -> None:
    run_id = add_run(workspace, 4)
    save(workspace, run_id, (1, 0, 1), (1, 1, 1), ("broke", "broke", "broke"))
    [row], total = workspace.store.runs.page(RunFilter())
    run = workspace.store.runs.get(run_id)
    tally = run.tally
    assert total == 1
    assert (row.groups, row.waiting, row.informative, row.failed) == (
        (tally.total, tally.waiting, tally.informative, tally.failed)
    )
    assert (row.id, row.split, row.group_size, row.spent) == (run.id, "train", 3, run.spent)


@pytest.mark.parametrize(
    ("status", "job", "state"),
    [
        ("running", "running", "active"),
        ("waiting", "waiting", "active"),
        ("running", "paused", "paused"),
        ("review", "paused", "review"),
        ("done", "done", "done"),
        ("cancelled", "cancelled", "cancelled"),
        ("waiting", "failed", "failed"),
        ("running", None, "interrupted"),
        ("waiting", None, "interrupted"),
    ],
)
def test_each_run_is_in_one_state(workspace: Workspace, status: str, job: str | None, state: str) -> None:
    run_id = add_run(workspace)
    if job:
        made = workspace.jobs.enqueue(run_id, "ann")
        with workspace.store.writing():
            workspace.store.jobs.save(made.model_copy(update={"state": job}))
    workspace.store.runs.set_status(run_id, status, "ann")  # type: ignore[arg-type]
    found = [s for s in RUN_STATES if workspace.store.runs.page(RunFilter(state=s))[1]]
    assert found == [state]


def test_runs_are_found_by_split_model_and_id(workspace: Workspace) -> None:
    add_run(workspace, seed=1, model="small-model")
    final = add_run(workspace, seed=2, split="final", model="other")

    def ids(**which: str) -> list[str]:
        return [row.id for row in workspace.store.runs.page(RunFilter.model_validate(which))[0]]

    assert ids(split="final") == [final]
    assert ids(text="SMALL") == ["R1"]
    assert ids(text="r2") == ["R2"]
    assert ids() == ["R2", "R1"]
    assert ids(text="nothing") == []


def test_a_page_of_runs_goes_on_where_the_last_one_ended(workspace: Workspace) -> None:
    for seed in range(5):
        add_run(workspace, 1, seed=seed)
    rows, total = workspace.store.runs.page(RunFilter(), limit=2, offset=2)
    assert ([row.id for row in rows], total) == (["R3", "R2"], 5)


# --- causes ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Endpoint a is asked too often (429): slow down.", "Endpoint b is asked too often (429): 3 left."),
        ("Endpoint a did not answer within 30 seconds.", "Endpoint a did not answer within 5 seconds."),
        ("KeyError: 'total' in line 12", "KeyError: 'sum' in line 7"),
    ],
)
def test_messages_that_differ_in_numbers_and_names_have_one_cause(one: str, other: str) -> None:
    assert cause_of(one) == cause_of(other)


def test_messages_of_different_sorts_have_different_causes() -> None:
    messages = (
        "Endpoint a is asked too often (429): slow down.",
        "Endpoint a has trouble of its own (503): later.",
        "Endpoint a did not answer within 30 seconds.",
        "Endpoint a cannot be reached at http://h: check it.",
        "The prompt does not fit the context of model m (400): shorten it.",
        "The tool is broken.",
    )
    assert len({cause_of(m) for m in messages}) == len(messages)


def test_what_failed_is_counted_by_cause_with_an_example_that_can_be_opened(workspace: Workspace) -> None:
    run_id = add_run(workspace, 3)
    late = "Endpoint a did not answer within {} seconds."
    save(workspace, run_id, (late.format(3), late.format(4), 1), (late.format(5), "Odd.", 0), (1, 0, 1))
    first, second = causes(workspace.store, run_id)
    assert (first.name, first.rollouts) == ("no answer in time", 3)
    assert workspace.store.groups.rollout(first.rollout_id).error == first.example
    assert (second.name, second.rollouts, second.groups) == ("Odd.", 1, 1)


# --- who works on it, and what happened ---


def held(heard: float) -> Job:
    return Job(id="J1", subject="R1", state="running", worker=ONE, lease_until=later(AT, heard + LEASE_S))


def test_a_worker_that_was_heard_of_is_at_work_and_one_that_was_not_is_silent() -> None:
    assert attendance(held(0), later(AT, 3)).state == "at work"
    found = attendance(held(0), later(AT, 20))
    assert (found.state, found.heard_at) == ("silent", AT)


@pytest.mark.parametrize(
    ("state", "said"), [("waiting", "starting"), ("paused", "nobody"), ("done", "nobody")]
)
def test_work_that_nobody_holds_waits_or_has_ended(state: str, said: str) -> None:
    assert attendance(Job(id="J1", subject="R1", state=state), AT).state == said  # type: ignore[arg-type]


def test_a_worker_that_was_killed_and_the_one_that_took_over_are_told_of(workspace: Workspace) -> None:
    run_id = add_run(workspace)
    workspace.jobs.enqueue(run_id, "ann")
    first = workspace.jobs.claim(ONE)
    second = workspace.jobs.claim(TWO, lost=lambda job: True)
    assert first is not None
    assert second is not None
    assert second.losses == [(first.heard_at, second.heard_at)]
    told = [line.said for line in history(workspace.store, second)]
    assert told == [
        "ann asked for it.",
        "The worker stopped.",
        "Another one took over; what was finished is kept.",
    ]


def test_a_loss_is_no_part_of_what_came_of_the_work(workspace: Workspace) -> None:
    run_id = add_run(workspace)
    workspace.jobs.enqueue(run_id, "ann")
    workspace.jobs.claim(ONE)
    before = workspace.store.dump()
    workspace.jobs.claim(TWO, lost=lambda job: True)
    assert workspace.store.dump() == before


def test_a_loss_is_remembered_through_pauses_and_other_caps(workspace: Workspace) -> None:
    run_id = add_run(workspace)
    workspace.jobs.enqueue(run_id, "ann")
    workspace.jobs.claim(ONE)
    job = workspace.jobs.claim(TWO, lost=lambda job: True)
    assert job is not None
    workspace.jobs.end(job.id, TWO, "held up", "The cap is reached.")
    workspace.jobs.resume(job.id, "bob", RunConfig(max_calls=7))
    now = workspace.jobs.find(job.id)
    assert (len(now.losses), now.options["caps"]["max_calls"]) == (1, 7)  # type: ignore[index, call-overload]
    assert [line.said for line in history(workspace.store, now)][-1] == "bob let it go on."


def test_the_place_in_the_queue_counts_what_comes_before(workspace: Workspace) -> None:
    ids = [add_run(workspace, 1, seed=seed) for seed in range(3)]
    jobs = [workspace.jobs.enqueue(run_id, "ann") for run_id in ids]
    workspace.jobs.pause(jobs[0].id, "ann")
    assert [workspace.store.jobs.before(job) for job in jobs] == [0, 0, 1]


# --- time ---


def test_time_follows_the_tightest_of_concurrency_and_rates() -> None:
    found = Bounds(low=Usage(calls=60, prompt_tokens=600), high=Usage(calls=120, prompt_tokens=120_000))
    plain = Endpoint(name="e", model="m", concurrency=4)
    assert duration_s(found, plain, 2.0) == (30, 60)
    assert duration_s(found, plain.model_copy(update={"requests_per_minute": 60}), 2.0) == (60, 120)
    assert duration_s(found, plain.model_copy(update={"tokens_per_minute": 10_000}), 2.0) == (30, 720)


def test_the_pace_of_a_model_is_the_mean_of_what_it_took(workspace: Workspace) -> None:
    run_id = add_run(workspace, 1)
    assert workspace.store.runs.pace("m") is None
    [place] = workspace.store.groups.waiting(run_id)
    group = make_group(1, 0, "late", id=place.id)
    took = (2.0, 4.0, 99.0)
    rollouts = tuple(
        r.model_copy(update={"duration_s": s}) for r, s in zip(group.rollouts, took, strict=True)
    )
    workspace.store.groups.save(group.model_copy(update={"rollouts": rollouts}))
    assert workspace.store.runs.pace("m") == (3.0, 2), "what broke off tells nothing of the pace"
