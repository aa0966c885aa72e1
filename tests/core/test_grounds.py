"""What a reviewer is told beside the text: origin, counts, thin evidence, rivals, what is said already."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from core.cli import main
from core.experience import (
    Add,
    Delete,
    Evidence,
    Merge,
    Modify,
    Proposal,
    Quarantined,
    targets_of,
    text_of,
)
from core.review import grounds
from core.review.grounds import NEAR_SHOWN, origin, thin
from core.rollout import Step
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.reviewing import Reviewing
from tests.make import add_tasks, make_evidence, make_group, make_proposal, make_task, propose, publish


def of_run(**fields: object) -> Proposal:
    return make_proposal("Answer with one word.").model_copy(update={"run_id": "R3", **fields})


@pytest.mark.parametrize(
    ("proposal", "said"),
    [
        (of_run(extractor="llm"), "run R3, by a model"),
        (of_run(), "run R3, by what was counted"),
        (make_proposal(extractor="person"), "by hand"),
        (make_proposal(extractor="person", raw_reply="{"), "from the quarantine, by hand"),
        (make_proposal(extractor="pack"), "imported from another library"),
        (make_proposal(Delete(experience_id="E-0001")), "an audit of the library"),
    ],
)
def test_where_a_proposal_came_from_is_said_in_words(proposal: Proposal, said: str) -> None:
    assert origin(proposal) == said


def counted(**changes: int) -> Evidence:
    evidence = make_evidence()
    return evidence.model_copy(update={"findings": (evidence.findings[0].model_copy(update=changes),)})


@pytest.mark.parametrize(
    ("proposal", "said"),
    [
        (of_run(), ""),
        (of_run(evidence=counted(groups=1)), "counted in one group, in which nothing can be significant"),
        (of_run(evidence=counted(groups=2, losers=4)), "8 winners and 4 losers are few"),
        (of_run(evidence=Evidence()), "nothing was counted for it"),
        (of_run(evidence=Evidence(), extractor="llm"), "a model's reading, not a count"),
        (of_run(evidence=Evidence(), extractor="person"), ""),
    ],
)
def test_evidence_that_is_thin_is_called_so(proposal: Proposal, said: str) -> None:
    assert thin(proposal) == said


def test_who_changes_the_same_or_says_the_same_is_named_the_staged_first(workspace: Workspace) -> None:
    publish(workspace, "Read the file first.", "Name the columns.")
    first, same, other_domain, shared, gone, decided = propose(
        workspace,
        Merge(experience_ids=("E-0001", "E-0002"), text="Read the file and its columns."),
        Add(text="read the file and its columns", domain=""),
        Add(text="Read the file and its columns.", domain="elsewhere"),
        Modify(experience_id="E-0002", text="Name all columns."),
        Delete(experience_id="E-0001"),
        Modify(experience_id="E-0001", text="Rejected."),
    )
    workspace.review.reject(decided, "no", "ann")
    workspace.review.approve(gone, "ann")
    found = grounds(workspace.store, workspace.store.proposals.get(first)).rivals
    assert [(r.proposal_id, r.status, r.shared, r.same) for r in found] == [
        (gone, "approved", ("E-0001",), False),
        (same, "proposed", (), True),
        (shared, "proposed", ("E-0002",), False),
    ]
    assert other_domain not in {r.proposal_id for r in found}


def test_lessons_that_share_its_words_are_shown_and_those_that_say_the_opposite_are_called_so(
    workspace: Workspace,
) -> None:
    publish(workspace, "Always answer in lowercase letters.", "Count the legs of a horse.")
    [new] = propose(workspace, "Always answer in uppercase letters.")
    [near] = grounds(workspace.store, workspace.store.proposals.get(new)).near.found
    assert (near.experience.id, near.opposed) == ("E-0001", True)


@pytest.fixture
def seen(workspace: Workspace) -> Workspace:
    """P-0001 of the run R1, whose example took two steps."""
    add_tasks(workspace, [make_task(1)])
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [make_task(1)], [0], request="r", kind="recorded", library_version=0, model="m",
        note="", actor="test",
    )  # fmt: skip
    steps = [[Step(tool="read_json", success=False), Step(tool="read_text", success=True)]]
    workspace.store.groups.save(make_group(1.0, 0.0, id=f"{run_id}-0001", steps=steps))
    made = make_proposal("word " * 33, run_id=run_id, rationale="Since it helped.", raw_reply='{"op": "ADD"}')
    gone = made.evidence.model_copy(update={"rollout_ids": ("R1-0001-0", "R1-0001-9")})
    workspace.store.proposals.add([made.model_copy(update={"evidence": gone})], "test")
    return workspace


def winnow(workspace: Workspace, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_tells_all_that_a_decision_rests_on(seen: Workspace) -> None:
    propose(seen, "Word " * 33)
    said = winnow(seen, "review", "show", "P-0001")
    for part in (
        "origin: run R1, by what was counted; learned on stub-model; 1 group, 2 examples; starts with confidence 0.50",
        "CONFLICT: P-0002 (proposed, add) says the same",
        "--- text (33 words, at most 32: shorten it before it can be approved)",
        "7 of 8 winners answered with one word, 1 of 9 losers",
        "R1-0001-0 (reward 1.00, advantage +0.71) 1. read_json failed, 2. read_text succeeded",
        "R1-0001-9 (unscored) (no longer kept)",
        '--- the reply that it was read from\n{"op": "ADD"}',
    ):
        assert part in said
    told = json.loads(winnow(seen, "review", "show", "P-0001", "--json"))
    assert (told["id"], told["standing"], told["words"], told["version"]) == ("P-0001", "proposed", 33, 0)
    assert told["grounds"]["rivals"][0]["proposal_id"] == "P-0002"


def test_a_quarantined_item_is_shown_whole_with_its_raw_reply_and_the_way_on(workspace: Workspace) -> None:
    raw = '{"op": "MODIFY",\n "id": "E-0404"} ' + "x" * 500
    workspace.store.proposals.quarantine([Quarantined(reason="there is no E-0404", raw=raw)])
    said = winnow(workspace, "review", "quarantine", "Q-0001")
    assert raw in said
    assert "Q-0001: there is no E-0404" in said
    assert "winnow review adopt Q-0001 --text TEXT" in said
    winnow(workspace, "review", "adopt", "Q-0001", "--text", "Meant.")
    assert "It became P-0001." in winnow(workspace, "review", "quarantine", "Q-0001")
    assert json.loads(winnow(workspace, "review", "quarantine", "Q-0001", "--json"))["item"]["raw"] == raw


def test_the_command_line_and_the_pages_know_the_same_rivals_and_near_lessons(workspace: Workspace) -> None:
    publish(workspace, "Always answer in lowercase letters.", "Count the legs of a horse.")
    [near, mine, other] = propose(
        workspace,
        "Always answer in uppercase letters.",
        Modify(experience_id="E-0001", text="Answer in letters."),
        Delete(experience_id="E-0001"),
    )
    reading = Reviewing(workspace.store)
    for proposal in map(workspace.store.proposals.get, (near, mine)):
        told = grounds(workspace.store, proposal)
        assert [r.id for r in reading.rivals(proposal)] == [r.proposal_id for r in told.rivals if r.shared]
        text = str(text_of(proposal.effective))
        assert told.near == reading.near(text, without=targets_of(proposal.operation), k=NEAR_SHOWN)
    assert [r.id for r in reading.rivals(workspace.store.proposals.get(mine))] == [other]
    assert "--- nearest in the library, by words" in winnow(workspace, "review", "show", near)
