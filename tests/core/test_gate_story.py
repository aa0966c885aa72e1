"""What the gate of a run tried, published and held back is told where the run and its proposals are looked at."""

from __future__ import annotations

import json

from click.testing import CliRunner

from core.cli import main
from core.workspace import Workspace
from core.workspace.gate_story import GateStory, GateTry, gate_story, why_not_tried
from core.workspace.trial_gate import LEAST_TASKS
from tests.core.test_evaluation_effects import DECOY, GOOD, learn, reply, teaching, trial
from tests.make import add_tasks, make_tasks
from tests.stub_server import StubServer


def winnow(workspace: Workspace, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_gate_that_held_everything_back_says_why_after_the_run_and_beside_the_proposal(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(LEAST_TASKS - 1))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        learn(workspace, stub, teacher)
        last = winnow(workspace, "run", "--resume", "R1")
    why = (
        "Its gate did not try 1 proposal (P-0001): the gate takes 40 trial tasks, and there are at most 39 that they "
        "reach. A person decides."
    )
    for said in (last, winnow(workspace, "run", "--resume", "R1"), winnow(workspace, "runs", "show", "R1")):
        assert why in said
        assert "1 proposal waits for a person: winnow review list" in said
    beside = "The gate of R1 did not try it: the gate takes 40 trial tasks, and there are at most 39 that they reach."
    assert why_not_tried(workspace.store, "R1", "P-0001") == beside
    assert why_not_tried(workspace.store, "R1", "P-0002") == ""


def test_a_gate_that_published_names_the_evaluation_and_the_version_and_sends_nobody_to_an_empty_list(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(66))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        learn(workspace, stub, teacher)
        last = winnow(workspace, "run", "--resume", "R1")
    told = (
        "Its gate tried 1 proposal (P-0001) on trial tasks (EV1): all of them passed, published as version 1, measured "
        "again in EV2."
    )
    for said in (last, winnow(workspace, "runs", "show", "R1")):
        assert told in said
        assert "review list" not in said
    story = json.loads(winnow(workspace, "runs", "show", "R1", "--json"))["gate_story"]
    assert story["steps"][0]["version"] == 1
    assert GateStory.model_validate(story) == gate_story(workspace.store, "R1")


def test_what_did_not_pass_is_told_and_waits(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(40))
    with StubServer(reply) as stub, StubServer(teaching(DECOY)) as teacher:
        learn(workspace, stub, teacher)
        last = winnow(workspace, "run", "--resume", "R1")
    assert "(EV1): none was shown to help, so nothing was published." in last
    assert "1 proposal waits for a person" in last


def test_the_story_of_a_gate_says_how_far_it_is() -> None:
    begun = GateTry(evaluation="EV1", proposals=("P-0001", "P-0002"))
    assert (
        begun.told
        == "Its gate tried 2 proposals (P-0001, P-0002) on trial tasks (EV1), and has not decided yet."
    )
    passed = begun.model_copy(update={"decided": True, "passed": ("P-0002",)})
    assert passed.told.endswith(
        "1 proposal (P-0002) passed, and could not be published as the library is now."
    )
    many = begun.model_copy(update={"proposals": tuple(f"P-{n}" for n in range(7))})
    assert "7 proposals (P-0, P-1, P-2, P-3, P-4, ...)" in many.told


def test_a_run_without_a_gate_says_only_what_waits(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        learn(workspace, stub, teacher, gate="none")
        last = winnow(workspace, "run", "--resume", "R1")
    assert "1 proposal waits for a person" in last
    assert "Its gate" not in last
