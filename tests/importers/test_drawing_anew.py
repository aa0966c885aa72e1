"""A model that draws lessons from recorded rollouts: the three stages of a run, when somebody asks for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import BudgetError, InputError
from core.importers import gathering
from core.importers.formats import FORMATS
from core.job import Job
from core.worker import Worker
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.core.test_review_cli import Script
from tests.importers.fake_format import FakeFormat, attempt, write
from tests.make import add_stub
from tests.stub_server import Asked, StubServer, kind_of, teacher

TASKS, TRIALS = 6, 4
CALLS = TASKS * (TRIALS + 1) + 1
"""A summary of each attempt, a contrast of each group, one consolidation."""


class Noted:
    """The scripted extraction model, with all that it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.stages = Counter[str]()
        self.speechless = False

    def __call__(self, asked: Asked) -> str:
        self.asked.append(json.dumps([asked.messages, asked.seed]))
        self.stages[kind_of(asked.messages)] += 1
        return "I would rather not say." if self.speechless else teacher(asked)


@pytest.fixture
def noted() -> Noted:
    return Noted()


def rows() -> list[dict[str, Any]]:
    """Groups that teach, and two that do not: one attempt alone, and one that broke off."""
    right = [
        attempt(
            f"t{task}",
            float(i % 2),
            answer=f"{task} and {i}",
            question=f"What is {task} + 1?",
            expected="42 apples",
        )
        for task in range(TASKS)
        for i in range(TRIALS)
    ]
    return [*right, attempt("one", 1.0), attempt("broken", error="gone")]


def bring(workspace: Workspace, *lines: dict[str, Any]) -> None:
    path = write(workspace.folder / "a.jsonl", *lines)
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")


@pytest.fixture(autouse=True)
def extractor(workspace: Workspace, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))
    bring(workspace, *rows())
    with StubServer(noted) as stub:
        add_stub(workspace, stub.base_url, "extractor", context_length=16_000, concurrency=2)
        workspace.models.set_role("extraction", "extractor", "ann")
        yield stub


@pytest.fixture
def script(workspace: Workspace) -> Script:
    return Script(workspace)


def test_nobody_is_asked_unless_an_endpoint_is_named_though_one_has_the_role(
    script: Script, noted: Noted
) -> None:
    script("rollouts propose R1")
    assert noted.asked == []


def test_a_named_endpoint_goes_through_the_three_stages_and_proposes(
    workspace: Workspace, script: Script, noted: Noted
) -> None:
    said = script("rollouts propose R1 --extraction-endpoint extractor")
    proposals, _ = workspace.store.proposals.page()
    assert "llm" in {p.extractor for p in proposals}
    assert all(p.raw_reply and p.evidence.group_ids for p in proposals if p.extractor == "llm")
    made = said["drawn"]
    assert made["suggested"] == sum(made[k] for k in ("proposed", "joined", "superseded", "quarantined"))
    assert made["quarantined"] == workspace.store.proposals.quarantine_page(run_id="R1")[1] > 0
    assert (noted.stages["summarise"], noted.stages["contrast"]) == (TASKS * TRIALS, TASKS)
    rollout = workspace.store.groups.rollout("R1-0001-0")
    assert rollout.summary
    assert rollout.semantic


def test_what_was_sent_is_booked_under_the_run_and_told(
    workspace: Workspace, script: Script, noted: Noted
) -> None:
    lines = script.lines("rollouts propose R1 --extraction-endpoint extractor")
    spent = workspace.store.runs.get("R1").spent
    assert spent.calls == len(noted.asked)
    assert f"In all for R1: {spent.calls} sent" in lines
    assert f"Sent to draw lessons: {spent.calls} calls" in script.lines("runs show R1")
    assert workspace.store.spending.of_run("R1") == spent


def test_a_dry_run_says_how_many_calls_it_takes_at_most_and_asks_nobody(script: Script, noted: Noted) -> None:
    plan = script("rollouts propose R1 --extraction-endpoint extractor --dry-run")
    assert (plan["rollouts"], plan["groups"], plan["batches"]) == (TASKS * TRIALS, TASKS, 1)
    assert (plan["most"]["calls"], noted.asked) == (CALLS, [])
    assert f"at most {CALLS} calls" in script.lines(
        "rollouts propose R1 --extraction-endpoint extractor --dry-run"
    )
    script("rollouts propose R1 --extraction-endpoint extractor")
    assert len(noted.asked) == CALLS
    prompts = plan["most"]["prompt_tokens"]
    assert prompts > 1_000


def test_the_same_again_pays_for_nothing_and_proposes_nothing_twice(
    workspace: Workspace, script: Script, noted: Noted
) -> None:
    first = script("rollouts propose R1 --extraction-endpoint extractor")
    before = len(noted.asked)
    again = script("rollouts propose R1 --extraction-endpoint extractor")
    assert len(noted.asked) == before
    assert (again["drawn"]["proposed"], again["extraction"]["proposed"]) == (0, first["drawn"]["proposed"])


def test_a_cap_stops_it_before_anything_is_proposed_and_the_same_goes_on(
    workspace: Workspace, script: Script, noted: Noted
) -> None:
    with pytest.raises(BudgetError, match="cap of 10 calls"):
        workspace.learning.propose(
            "R1", "ann", asked=workspace.learning.asking("R1", "extractor", max_calls=10)
        )
    assert (len(noted.asked), workspace.store.proposals.page()[1]) == (10, 0)
    script("rollouts propose R1 --extraction-endpoint extractor --max-calls 10", code=3)
    assert len(noted.asked) == 10, "the cap holds for all that is sent for the run"
    script("rollouts propose R1 --extraction-endpoint extractor")
    assert len(noted.asked) == len(set(noted.asked)) == CALLS


def test_groups_that_could_not_be_contrasted_are_told_and_asked_about_anew_when_wanted(
    workspace: Workspace, script: Script, noted: Noted
) -> None:
    noted.speechless = True
    said = script("rollouts propose R1 --extraction-endpoint extractor", code=1)
    assert len(said["drawn"]["not_contrasted"]) == TASKS
    again = "winnow rollouts propose R1 --extraction-endpoint NAME --retry-failed"
    assert again in script.lines("runs show R1")
    noted.speechless = False
    script("rollouts propose R1")
    assert len(workspace.store.runs.get("R1").extraction.not_contrasted) == TASKS, "nobody was asked"
    said = script("rollouts propose R1 --extraction-endpoint extractor", code=1)
    assert len(said["drawn"]["not_contrasted"]) == TASKS, "the replies are in the cache"
    said = script("rollouts propose R1 --extraction-endpoint extractor --retry-failed")
    assert (said["drawn"]["not_contrasted"], said["extraction"]["not_contrasted"]) == ({}, {})


def test_what_a_model_proposed_makes_room_only_where_a_model_is_asked_again(
    workspace: Workspace, script: Script
) -> None:
    script("rollouts propose R1 --extraction-endpoint extractor")
    by_model = [p.id for p in workspace.store.proposals.page(["proposed"])[0] if p.extractor == "llm"]
    grown = [
        attempt(f"t{task}", 0.5, answer="so so", question=f"What is {task} + 1?", expected="42 apples")
        for task in range(TASKS)
    ]
    bring(workspace, *rows(), *grown)
    changed = workspace.store.proposals.rewarded_since(by_model)
    assert changed
    script("rollouts propose R1")
    assert {workspace.store.proposals.get(i).status for i in by_model} == {"proposed"}
    script("rollouts propose R1 --extraction-endpoint extractor")
    assert {i for i in by_model if workspace.store.proposals.get(i).status == "superseded"} == set(changed)


def test_settings_that_cannot_hold_are_refused_in_one_sentence(workspace: Workspace, script: Script) -> None:
    for words in ("--max-calls 3", "--dry-run", "--retry-failed", "--withhold-answer"):
        assert "--extraction-endpoint NAME" in script(f"rollouts propose R1 {words}", code=2)["error"]
    with pytest.raises(InputError, match="extractor has no price"):
        workspace.learning.asking("R1", "extractor", max_cost_usd=1.0)
    script("rollouts propose R1 --extraction-endpoint nobody", code=2)


def test_right_answers_can_be_withheld_from_it(script: Script, noted: Noted) -> None:
    script("rollouts propose R1 --extraction-endpoint extractor --withhold-answer")
    assert not any("42 apples" in asked for asked in noted.asked)
    script("rollouts propose R1 --extraction-endpoint extractor")
    assert any("42 apples" in asked for asked in noted.asked)


def begun(workspace: Workspace, **caps: int) -> Job:
    asked = workspace.learning.asking("R1", "extractor", **caps)
    return workspace.jobs.enqueue("R1", "ann", asked, asking=True)


def test_it_runs_as_a_job_that_a_cap_pauses_and_other_caps_let_go_on(
    workspace: Workspace, noted: Noted
) -> None:
    job = begun(workspace, max_calls=10)
    Worker(workspace).serve(once=True)
    paused = workspace.jobs.find(job.id)
    assert (paused.state, paused.error.startswith("The cap of 10 calls")) == ("paused", True)
    assert (workspace.store.runs.get("R1").status, workspace.store.proposals.page()[1]) == ("done", 0)
    workspace.jobs.resume(job.id, "ann", workspace.store.runs.get("R1").config)
    Worker(workspace).serve(once=True)
    assert workspace.jobs.find(job.id).state == "done"
    assert "llm" in {p.extractor for p in workspace.store.proposals.page()[0]}
    assert len(noted.asked) == len(set(noted.asked)) == CALLS


def test_a_cancelled_job_leaves_the_recorded_rollouts_as_they_are(workspace: Workspace, noted: Noted) -> None:
    job = begun(workspace)
    assert workspace.jobs.cancel(job.id, "ann").state == "cancelled"
    assert (workspace.store.runs.get("R1").status, noted.asked) == ("done", [])
    job = begun(workspace)
    with pytest.raises(InputError, match="is done; there is nothing to cancel"):
        workspace.jobs.cancel(job.id, "ann", discard=True)


def test_going_on_with_a_job_under_other_caps_keeps_who_is_asked(workspace: Workspace) -> None:
    job = begun(workspace, max_calls=10)
    workspace.jobs.pause(job.id, "ann")
    now = workspace.jobs.resume(job.id, "ann", workspace.store.runs.get("R1").config)
    assert now.options["asking"] == {"extraction_endpoint": "extractor", "withhold_answer": False}


def test_a_job_that_is_for_nothing_but_going_on_asks_nobody(workspace: Workspace, noted: Noted) -> None:
    workspace.jobs.enqueue("R1", "ann", workspace.store.runs.get("R1").config)
    Worker(workspace).serve(once=True)
    assert (noted.asked, workspace.store.proposals.page()[1]) == ([], 0)
