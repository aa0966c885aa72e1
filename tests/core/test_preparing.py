"""What is said before an evaluation starts: how many tasks it needs, what it takes, what files hold; and its list."""

from __future__ import annotations

import pytest

from core.effect import Spread, sample_size
from core.errors import InputError
from core.experience import Add
from core.proof import EVALUATION_STATES, Arm, EvaluationConfig, EvaluationFilter
from core.store.evaluations import STATES
from core.workspace import Workspace
from core.workspace.preparing import BETWEEN, WITHIN, expected, lessons_of, size
from tests.core.test_evaluation_effects import add_proposals
from tests.make import add_stub, add_tasks, make_tasks, publish
from tests.stub_server import StubServer

NONE = Arm(name="none", kind="none")
LEARNED = Arm(name="learned", kind="version")
URL = "http://127.0.0.1:9/v1"


def plan_of(workspace: Workspace, *arms: Arm, **fields: object) -> EvaluationConfig:
    add_stub(workspace, URL, price_in=2.0, price_out=4.0)
    given = {"endpoint": "stub", "arms": arms or (NONE, LEARNED), **fields}
    return EvaluationConfig.model_validate(given)


def test_the_number_of_tasks_is_that_of_the_paired_t_test_for_what_is_usual() -> None:
    found = size(0.1)
    assert found.tasks == sample_size(0.1, Spread(BETWEEN, WITHIN), samples=4)
    assert found.power_at[40] < found.power < found.power_at[100]


def test_the_power_of_the_tasks_at_hand_is_told_beside_the_others() -> None:
    assert set(size(0.1, at=29).power_at) - set(size(0.1).power_at) == {29}
    assert size(0.1, at=1) == size(0.1), "one task has no power"


def test_an_effect_of_nothing_needs_no_tasks_and_is_refused() -> None:
    with pytest.raises(InputError, match="a difference from"):
        size(0.0)


def test_what_an_evaluation_takes_grows_with_seeds_arms_and_lessons(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, split="trial"))
    publish(workspace, Add(text="Answer with the number alone, and with nothing else.", domain="sums"))

    def takes(*arms: Arm, **fields: object) -> tuple[int, int, float]:
        plan = workspace.evaluating.plan(plan_of(workspace, *arms, **fields))
        high = expected(workspace.store, workspace.models, plan).high
        assert high.calls == plan.calls
        return high.calls, high.prompt_tokens, high.cost_usd

    one = takes(NONE)
    assert one[0] == 5 * 4
    assert takes(NONE, seeds=(0, 1)) == tuple(2 * n for n in one)
    both = takes(NONE, LEARNED)
    assert both[0] == 2 * one[0]
    assert both[1] > 2 * one[1], "lessons are in the prompt of one arm"
    assert takes(NONE, Arm(name="vote", kind="majority", of="none")) == one, "a vote asks nobody"


def test_what_is_estimated_is_what_is_sent_at_most(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        config = EvaluationConfig.model_validate({"endpoint": "stub", "arms": (NONE,)})
        plan = workspace.evaluating.plan(config)
        takes = expected(workspace.store, workspace.models, plan)
        done = workspace.evaluating.work(workspace.evaluating.start(config, "ann").id, "ann")
    spent = workspace.store.spending.of_run(done.id)
    assert takes.low.calls <= spent.calls <= takes.high.calls


def test_the_lessons_of_a_file_have_the_domain_of_their_heading() -> None:
    found = lessons_of("text", b"Read twice.\n# sums\n- Add the ones first.\n")
    assert [(one.domain, one.text) for one in found] == [
        ("general", "Read twice."),
        ("sums", "Add the ones first."),
    ]
    with pytest.raises(InputError, match="holds no lesson"):
        lessons_of("text", b"\n\n")


# --- the list ---


def test_every_state_of_the_list_has_its_meaning() -> None:
    assert tuple(STATES) == EVALUATION_STATES


def test_evaluations_are_found_by_state_split_purpose_arm_and_id(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    publish(workspace, "Answer with the number alone.")
    first = workspace.evaluating.start(plan_of(workspace, NONE), "ann")
    second = workspace.evaluating.start(plan_of(workspace, NONE, LEARNED), "ann", "gate")

    def ids(**fields: str) -> list[str]:
        found, total = workspace.store.evaluations.page(EvaluationFilter(**fields))
        assert total == len(found)
        return [row.id for row in found]

    assert ids() == [second.id, first.id]
    assert ids(purpose="gate") == [second.id]
    assert ids(text="LEARN") == [second.id]
    assert ids(text=first.id.lower()) == [first.id]
    assert ids(split="final") == []
    assert ids(state="interrupted") == [second.id, first.id]
    workspace.jobs.enqueue(first.id, "ann")
    assert (ids(state="active"), ids(state="interrupted")) == ([first.id], [second.id])


def test_what_measures_a_proposal_is_found_by_its_id_and_not_by_part_of_it(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    ids = add_proposals(workspace, *(f"Answer with {n} alone." for n in range(10)))
    longer = f"{ids[0]}0"
    own = Arm(name=f"with {longer}", kind="with", proposal_ids=(ids[1],))
    workspace.evaluating.start(plan_of(workspace, NONE, own), "ann")

    def measuring(subject: str) -> int:
        return workspace.store.evaluations.page(EvaluationFilter(subject=subject))[1]

    assert (measuring(ids[1]), measuring(ids[0]), measuring(longer)) == (1, 0, 0)


def test_the_stamp_of_an_evaluation_changes_with_what_it_says(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        config = EvaluationConfig.model_validate({"endpoint": "stub", "arms": (NONE,)})
        begun = workspace.evaluating.start(config, "ann")
        before = workspace.store.evaluations.stamp(begun.id)
        assert workspace.store.evaluations.stamp(begun.id) == before
        workspace.evaluating.work(begun.id, "ann")
    assert workspace.store.evaluations.stamp(begun.id) != before


def test_the_report_as_html_says_when_and_by_what_it_was_written(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    begun = workspace.evaluating.start(plan_of(workspace, NONE), "ann")
    page = workspace.evaluating.html(begun.id)
    assert page.startswith("<!doctype html>")
    assert "by Winnow" in page
