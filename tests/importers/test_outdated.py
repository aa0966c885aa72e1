"""Rewards that change after lessons were drawn: whatever was counted before says so, wherever its evidence is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.importers import gathering
from core.importers.formats import FORMATS
from core.settings import RewardConfig
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.core.test_review_cli import Script
from tests.importers.fake_format import FakeFormat, attempt, write

TASKS = 10
CHANGED = f"The rewards of {TASKS} of its {TASKS} groups changed after it was drawn; what is counted here was before."
LOOK = [{"tool": "look"}]


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def lines(tasks: int = TASKS) -> list[dict[str, Any]]:
    """Who looks gets it right; the format names no score as the reward, so that a person may turn it round."""
    return [
        attempt(
            f"t{task}",
            answer=f"{task} {i}",
            steps=LOOK * (i % 2),
            scores={"accuracy": {"value": float(i % 2)}},
        )
        for task in range(tasks)
        for i in range(6)
    ]


def bring(workspace: Workspace, *rows: dict[str, Any], lower: bool = False) -> None:
    path = write(workspace.folder / "a.jsonl", *rows)
    workspace.intake.add_rollouts([path], ImportOptions(score="accuracy", lower_is_better=lower), "ann")


@pytest.fixture
def drawn(workspace: Workspace) -> str:
    """The proposal that says what winners did."""
    bring(workspace, *lines())
    assert workspace.learning.propose("R1", "ann").made.proposed == 1
    return workspace.store.proposals.page()[0][0].id


@pytest.fixture
def script(workspace: Workspace) -> Script:
    return Script(workspace)


def outdated(script: Script) -> dict[str, str]:
    found: dict[str, str] = script("review list --all")["outdated"]
    return found


def test_a_proposal_of_a_regraded_run_says_so_wherever_its_evidence_is_shown(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    assert outdated(script) == {}
    assert "OUTDATED" not in script.lines("review show", drawn)
    bring(workspace, *lines(), lower=True)
    assert outdated(script) == {drawn: CHANGED}
    assert f"{drawn}: {CHANGED}" in script.lines("review list")
    shown = script.lines("review show", drawn)
    assert f"OUTDATED: {CHANGED} `winnow rollouts propose R1` draws anew; or reject it." in shown
    assert script("review show", drawn)["grounds"]["outdated"] == CHANGED
    assert f"The rewards behind 1 of its proposals changed after it was drawn: {drawn}" in script.lines(
        "runs show R1"
    )


def test_a_published_lesson_keeps_the_line_beside_where_it_came_from(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    bring(workspace, *lines(), lower=True)
    workspace.review.approve(drawn, "ann")
    workspace.review.publish("It stays possible", "ann")
    shown = script.lines("library show E-0001")
    assert f"OUTDATED: {CHANGED} `winnow rollouts propose R1` draws anew; the lesson stays until" in shown


def test_the_same_import_again_and_a_rescoring_without_effect_change_nothing(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    bring(workspace, *lines())
    workspace.rescoring.rescore("R1", "ann")
    assert outdated(script) == {}


def test_a_file_that_grew_changes_the_groups_that_grew(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    grown = attempt("t0", answer="new", scores={"accuracy": {"value": 1.0}})
    bring(workspace, *lines(), grown, *[attempt("t99", answer=f"{i}") for i in range(2)])
    assert outdated(script) == {drawn: CHANGED.replace("10 of", "1 of")}


def test_other_weights_and_a_persons_word_change_rewards_too(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    accepting = RewardConfig(preset="own", weights={"verified": 0.4, "accepted": 0.6})
    workspace.rescoring.rescore("R1", "ann", accepting)
    assert outdated(script) == {}, "nobody said anything yet"
    workspace.rescoring.accept(["R1-0001-0", "R1-0001-2", "R1-0001-4"], True, "ann")
    workspace.rescoring.accept(["R1-0001-1", "R1-0001-3", "R1-0001-5"], False, "ann")
    assert outdated(script) == {drawn: CHANGED.replace("10 of", "1 of")}
    workspace.rescoring.rescore("R1", "ann", RewardConfig(preset="own", weights={"verified": 2.0}))
    assert outdated(script) == {drawn: CHANGED}


def test_lessons_that_are_drawn_anew_take_the_place_of_what_nobody_decided_on(
    workspace: Workspace, drawn: str, script: Script
) -> None:
    bring(workspace, *lines(), lower=True)
    workspace.learning.propose("R1", "ann")
    before = workspace.store.proposals.get(drawn)
    assert (before.status, before.decided_by) == ("superseded", None)
    assert before.reason == f"{CHANGED} Lessons were drawn anew from R1."
    [now], _ = workspace.store.proposals.page(["proposed"])
    assert now.id != drawn
    assert now.operation != before.operation
    assert now.id not in outdated(script)
    workspace.review.approve(drawn, "ann")  # a person may still bring it back


def test_the_same_words_are_proposed_anew_where_they_were_counted_under_other_rewards(
    workspace: Workspace, drawn: str
) -> None:
    before = workspace.store.proposals.get(drawn)
    bring(workspace, *lines(), attempt("t0", answer="new", steps=LOOK, scores={"accuracy": {"value": 1.0}}))
    workspace.learning.propose("R1", "ann")
    [now], _ = workspace.store.proposals.page(["proposed"])
    assert (now.operation, workspace.store.proposals.get(drawn).status) == (before.operation, "superseded")
    assert now.evidence.findings[0].winners == before.evidence.findings[0].winners + 1


@pytest.mark.parametrize("decision", ["defer", "approve", "reject"])
def test_what_a_person_decided_on_stays_as_it_is_and_says_so(
    workspace: Workspace, drawn: str, script: Script, decision: str
) -> None:
    if decision == "approve":
        workspace.review.approve(drawn, "ann")
    else:
        getattr(workspace.review, decision)(drawn, "ann", "not now")
    decided = workspace.store.proposals.get(drawn)
    bring(workspace, *lines(), lower=True)
    workspace.learning.propose("R1", "ann")
    assert workspace.store.proposals.get(drawn) == decided
    assert outdated(script)[drawn] == CHANGED
    shown = script.lines("review show", drawn)
    assert ("Take the decision back" in shown) == (decision != "reject")


def test_the_sums_of_a_run_count_all_that_was_ever_drawn_from_it(workspace: Workspace, drawn: str) -> None:
    for lower in (True, False):
        bring(workspace, *lines(), lower=lower)
        workspace.learning.propose("R1", "ann")
        made = workspace.store.runs.get("R1").extraction
        there = workspace.store.proposals.page(run_id="R1")[1]
        aside = workspace.store.proposals.quarantine_page(run_id="R1")[1]
        assert (made.proposed + made.superseded, made.quarantined) == (there, aside)
        assert made.suggested == made.proposed + made.joined + made.superseded + made.quarantined
    assert made.proposed == 3


def test_a_log_of_what_made_room_gives_the_same_state_again(
    workspace: Workspace, drawn: str, tmp_path: Path
) -> None:
    from core.store.replay import replay

    bring(workspace, *lines(), lower=True)
    workspace.learning.propose("R1", "ann")
    found = replay(workspace.store.events.every())
    assert json.loads(found.proposals[drawn].canonical()) == json.loads(
        workspace.store.proposals.get(drawn).canonical()
    )
