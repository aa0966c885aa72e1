"""Evaluations end to end, on the stub server: planned, sampled side by side, found again, reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import BudgetError, InputError, StoppedError
from core.evaluation import library_of
from core.experience import Add, Evidence
from core.ports import Wish
from core.proof import Arm, ArmLesson, Evaluation, EvaluationConfig
from core.rollout import RunFilter, Task
from core.settings import RewardConfig, RunConfig
from core.store.checks import check_content
from core.workspace import Workspace
from core.workspace.evaluation_plans import ordered
from tests.make import add_stub, add_tasks, make_proposal, make_tasks
from tests.stub_server import Asked, Fault, StubServer, solver

NONE = Arm(name="none", kind="none")
LEARNED = Arm(name="learned", kind="version")


def publish(workspace: Workspace, *operations: Add | str) -> None:
    """Publish lessons that were learned from no task here."""
    made = [make_proposal(one).model_copy(update={"evidence": Evidence()}) for one in operations]
    for proposal_id in workspace.store.proposals.add(made, "test"):
        workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")


def trial(count: int, **fields: object) -> list[Task]:
    return make_tasks(count, split="trial", **fields)


def config_of(workspace: Workspace, stub: StubServer, *arms: Arm, **fields: object) -> EvaluationConfig:
    endpoint = add_stub(workspace, stub.base_url).endpoint
    made = {"endpoint": endpoint, "arms": arms or (NONE, LEARNED), "samples": 4, **fields}
    return EvaluationConfig.model_validate(made)


def evaluate(workspace: Workspace, config: EvaluationConfig) -> Evaluation:
    started = workspace.evaluating.start(config, "ann")
    return workspace.evaluating.work(started.id, "ann")


def helped_by(lesson: str, without: float = 0.3) -> Callable[[Asked], str]:
    """A model that is right always with a lesson, and else now and then."""

    def reply(asked: Asked) -> str:
        right = lesson in asked.system or asked.rng.random() < without
        a, b = (int(word) for word in asked.user.rstrip("?").split() if word.lstrip("-").isdigit())
        return str(a + b if right else a + b + 1)

    return reply


def test_a_library_that_helps_is_measured_against_none_task_by_task(workspace: Workspace) -> None:
    add_tasks(workspace, trial(12))
    publish(workspace, "Add carefully.")
    with StubServer(helped_by("Add carefully.")) as stub:
        done = evaluate(workspace, config_of(workspace, stub))
    report = workspace.evaluating.report(done.id)
    none, learned = report.arms
    assert done.status == "done"
    assert learned.mean == 1.0
    assert none.mean is not None
    assert none.mean < 0.7
    found = report.comparisons[0]
    assert found.effect.tasks == 12
    assert found.effect.mean == pytest.approx(1.0 - none.mean)
    assert found.effect.low is not None
    assert found.effect.low > 0
    assert (found.effect.wins + found.effect.ties, found.effect.losses) == (12, 0)
    assert all(row.baseline_groups and row.arm_groups for row in found.rows)
    groups = {g for row in found.rows for g in row.baseline_groups + row.arm_groups}
    assert len(groups) == 24
    assert workspace.store.groups.get(found.rows[0].arm_groups[0]).rollouts[0].injected == {"G0": "E-0001"}
    assert (learned.lessons, learned.injected, none.tokens_injected) == (1, 12, 0.0)
    assert learned.tokens_injected > 10


def test_the_same_configuration_is_the_same_evaluation_and_pays_nothing_twice(workspace: Workspace) -> None:
    add_tasks(workspace, trial(5))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        config = config_of(workspace, stub)
        first = evaluate(workspace, config)
        calls = stub.stats()["calls"]
        again = evaluate(workspace, config)
        assert again.id == first.id
        assert stub.stats()["calls"] == calls == 5 * 4 * 2
        other = evaluate(workspace, config.model_copy(update={"seeds": (0, 1)}))
    assert other.id != first.id
    assert workspace.store.spending.of_run(other.id).calls == 5 * 4 * 2  # seed 0 came from the cache


def test_seeds_of_an_evaluation_never_ask_for_the_same_reply(workspace: Workspace) -> None:
    add_tasks(workspace, trial(3))
    with StubServer() as stub:
        evaluate(workspace, config_of(workspace, stub, NONE, seeds=(0, 1, 2), samples=8))
        seeds = [r.body["seed"] for r in stub.requests]
    assert len(set(seeds)) == 24
    assert len(seeds) == 3 * 24


def test_arms_are_sampled_task_by_task_and_not_one_after_the_other(workspace: Workspace) -> None:
    add_tasks(workspace, trial(10))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        config = config_of(workspace, stub, samples=1)
        workspace.models.save(workspace.models.get("stub").model_copy(update={"concurrency": 1}), "ann")
        evaluate(workspace, config)
        with_lesson = ["[G0]" in r.body["messages"][0]["content"] for r in stub.requests]
    assert sum(with_lesson[:10]) in (4, 5, 6)


def test_an_evaluation_teaches_nothing_and_stands_in_no_list_of_runs(workspace: Workspace) -> None:
    add_tasks(workspace, trial(6))
    publish(workspace, "Answer with the number alone.")
    with StubServer() as stub:
        done = evaluate(workspace, config_of(workspace, stub))
    store = workspace.store
    assert store.runs.count() == 0
    assert store.runs.newest() == []
    assert store.runs.page(RunFilter())[1] == 0
    assert store.runs.page(RunFilter(kind="evaluated"))[1] == 2
    assert store.figures.runs() == []
    assert workspace.overview().newest_run is None
    assert store.groups.page()[1] == 0
    assert store.groups.page(done.runs["none"][0])[1] == 6
    assert store.runs.tally().total == 0
    assert store.runs.epochs_before() == 0
    assert store.credits.pending() == []
    assert store.proposals.counts() == {"published": 1}


def test_an_arm_is_not_worked_on_as_a_run(workspace: Workspace) -> None:
    add_tasks(workspace, trial(2))
    with StubServer() as stub:
        started = workspace.evaluating.start(config_of(workspace, stub, NONE), "ann")
    run_id = started.runs["none"][0]
    for command in (
        lambda: workspace.learning.work(run_id, "ann"),
        lambda: workspace.learning.retry(run_id, "ann"),
        lambda: workspace.learning.cancel(run_id, "ann", discard=False),
    ):
        with pytest.raises(InputError, match="is an arm of the evaluation EV1"):
            command()


def test_what_was_stopped_goes_on_where_it_was(workspace: Workspace) -> None:
    add_tasks(workspace, trial(8))
    publish(workspace, "Add carefully.")
    asked = 0

    def wish() -> Wish:
        nonlocal asked
        asked += 1
        return "pause" if asked > 30 else "go"

    with StubServer() as stub:
        started = workspace.evaluating.start(config_of(workspace, stub), "ann")
        with pytest.raises(StoppedError):
            workspace.evaluating.work(started.id, "ann", wishes=wish)
        assert workspace.store.evaluations.get(started.id).status == "waiting"
        before = workspace.evaluating.report(started.id)
        assert 0 < sum(arm.rollouts for arm in before.arms) < 64
        done = workspace.evaluating.work(started.id, "ann")
        assert stub.stats()["calls"] == 64
    assert done.status == "done"


def test_all_arms_have_one_budget(workspace: Workspace) -> None:
    add_tasks(workspace, trial(6))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        started = workspace.evaluating.start(config_of(workspace, stub, max_calls=20), "ann")
        with pytest.raises(BudgetError, match="cap of 20 calls"):
            workspace.evaluating.work(started.id, "ann")
        assert stub.stats()["calls"] == 20
        workspace.evaluating.work(started.id, "ann", caps=RunConfig(max_calls=48))
        assert stub.stats()["calls"] == 48


def test_the_version_of_an_arm_is_pinned_when_it_starts(workspace: Workspace) -> None:
    add_tasks(workspace, trial(3))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        started = workspace.evaluating.start(config_of(workspace, stub), "ann")
        publish(workspace, "Answer with the number alone.")
        workspace.evaluating.work(started.id, "ann")
        assert not any("alone" in json.dumps(r.body) for r in stub.requests)
    assert started.config.arms[1].version == 1
    assert [a.lessons for a in workspace.evaluating.report(started.id).arms] == [0, 1]


def test_majority_and_best_of_are_computed_from_an_arm_and_ask_nobody(workspace: Workspace) -> None:
    add_tasks(workspace, trial(20))
    arms = (
        NONE,
        Arm(name="vote", kind="majority", of="none"),
        Arm(name="best", kind="best_of", of="none"),
    )
    with StubServer(helped_by("no such lesson", 0.75)) as stub:
        done = evaluate(workspace, config_of(workspace, stub, *arms, samples=8))
        assert stub.stats()["calls"] == 160
    none, vote, best = workspace.evaluating.report(done.id).arms
    means = [arm.mean or 0.0 for arm in (none, vote, best)]
    assert means == sorted(means)
    assert means[0] < means[1]
    assert best.mean == pytest.approx(none.pass_at[8])
    assert (vote.calls_per_answer, vote.calls) == (8.0, 0)
    assert "needs the verifier at run time" in best.label


def test_what_could_not_be_scored_is_counted_and_is_no_zero(workspace: Workspace) -> None:
    add_tasks(workspace, trial(5))

    def reply(asked: Asked) -> str:
        return "" if "What is 4 + 6" in asked.user else "8"

    with StubServer(reply, rates={}) as stub:
        done = evaluate(workspace, config_of(workspace, stub, NONE))
    arm = workspace.evaluating.report(done.id).arms[0]
    assert arm.rollouts == 20
    assert arm.scored + arm.unscored + arm.errors == 20


def test_a_random_library_has_as_many_lessons_of_each_domain_that_say_nothing_of_it(
    workspace: Workspace,
) -> None:
    publish(workspace, *(Add(text=f"Sum rule {i}.", domain="sums") for i in range(3)))
    publish(workspace, *(Add(text=f"City rule {i}.", domain="cities") for i in range(2)))
    base = workspace.store.versions.library()
    arm = Arm(name="r", kind="random", version=base.version, seed=4)
    drawn = list(library_of(arm, base))
    assert [e.domain for e in drawn] == ["cities"] * 2 + ["sums"] * 3
    assert all("Sum rule" in e.text for e in drawn[:2])
    assert sum("City rule" in e.text for e in drawn[2:]) == 2
    assert sorted(drawn[-1].text.split()) in [sorted(f"Sum rule {i}.".split()) for i in range(3)]
    assert list(library_of(arm, base)) == drawn
    others = [list(library_of(arm.model_copy(update={"seed": seed}), base)) for seed in range(5, 15)]
    assert any(other != drawn for other in others)
    assert not {e.id for e in drawn} & set(base.experiences)


def test_a_hand_written_file_is_pinned_and_rendered_like_any_lesson(workspace: Workspace) -> None:
    add_tasks(workspace, trial(2))
    lessons = (ArmLesson(text="Be terse."), ArmLesson(text="Name the city.", domain="cities"))
    hand = Arm(name="hand", kind="text", lessons=lessons)
    with StubServer() as stub:
        evaluate(workspace, config_of(workspace, stub, NONE, hand, samples=1))
        systems = {r.body["messages"][0]["content"] for r in stub.requests if len(r.body["messages"]) == 2}
    assert systems == {"Lessons from earlier attempts. Follow the ones that apply:\n[G0] Be terse."}


def test_tasks_that_a_lesson_was_learned_from_are_marked_and_left_out_of_the_headline(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, trial(6))
    with StubServer() as stub:
        config = config_of(workspace, stub)
        run = workspace.learning.start(RunConfig(endpoint="stub", split="trial"), "ann")
        rows, _ = workspace.store.groups.page(run.id)
        own = next(row.id for row in rows if row.task_id == "t-001")
        proposal = make_proposal("Add carefully.").model_copy(update={"evidence": Evidence(group_ids=(own,))})
        [proposal_id] = workspace.store.proposals.add([proposal], "test")
        workspace.review.approve(proposal_id, "ann")
        workspace.review.publish("test", "ann")
        done = evaluate(workspace, config)
    found = workspace.evaluating.report(done.id).comparisons[0]
    assert (found.effect.tasks, found.in_sample) == (5, 1)
    assert {row.task_id for row in found.rows if row.outcome == "in sample"} == {"t-001"}


def test_a_final_evaluation_is_logged_and_a_second_one_is_warned_of(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="final"))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        config = config_of(workspace, stub, split="final")
        assert workspace.evaluating.plan(config).notes == ()
        evaluate(workspace, config)
        assert workspace.evaluating.plan(config).notes == ()  # the same one again is no second use
        notes = workspace.evaluating.plan(config.model_copy(update={"samples": 2})).notes
        second = evaluate(workspace, config.model_copy(update={"samples": 2}))
    used = [e.subject for e in workspace.store.events.newest() if e.kind == "final.used"]
    assert used == ["EV2", "EV1"]
    assert "The final split was used 1 time before (EV1)." in notes[0]
    assert workspace.evaluating.report("EV1").notes == (), "nothing was used before it"
    assert workspace.evaluating.report(second.id).notes == notes


def test_only_trial_and_final_tasks_prove_anything(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="trial"):
        EvaluationConfig.model_validate({"split": "train", "arms": [NONE.model_dump()]})


def test_the_sequential_test_stops_what_is_decided_and_says_after_how_many_tasks(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, trial(60))
    publish(workspace, "Add carefully.")
    with StubServer(helped_by("Add carefully.", 0.2)) as stub:
        vote = Arm(name="vote", kind="majority", of="none")
        arms = (NONE, LEARNED, vote)
        done = evaluate(workspace, config_of(workspace, stub, *arms, look_every=20, samples=2))
        calls = stub.stats()["calls"]
    report = workspace.evaluating.report(done.id)
    assert done.stopped == {"learned": 40, "none": 40} or done.stopped == {"learned": 20, "none": 20}
    assert calls == done.stopped["none"] * 4 < 240
    looks = report.comparisons[0].looks
    assert looks[-1].stopped
    assert (looks[-1].p or 0.0) <= looks[-1].threshold
    assert "Lan and DeMets" in report.method
    vote = report.comparisons[1]
    assert max(look.tasks for look in vote.looks) <= done.stopped["none"], "nothing was sampled after it"
    assert vote.p_over_looks is None
    page = workspace.evaluating.html(done.id)
    assert page.count("<p>p over all looks: ") == 1
    assert report.arms[1].stopped_after == done.stopped["learned"]
    assert report.arms[0].waiting == 0


def test_without_a_difference_no_look_stops(workspace: Workspace) -> None:
    add_tasks(workspace, trial(30))
    publish(workspace, "Say nothing.")
    with StubServer(helped_by("no such lesson", 0.5)) as stub:
        done = evaluate(workspace, config_of(workspace, stub, look_every=10, samples=1))
        assert stub.stats()["calls"] == 60
    assert done.stopped == {}
    assert len(workspace.evaluating.report(done.id).comparisons[0].looks) == 3


def test_a_reward_that_depends_on_earlier_answers_is_refused(workspace: Workspace) -> None:
    add_tasks(workspace, trial(2))
    with StubServer() as stub:
        config = config_of(workspace, stub, NONE, reward=RewardConfig(preset="ASO"))
        with pytest.raises(InputError, match="epistemic"):
            workspace.evaluating.plan(config)


def test_tasks_are_ordered_alike_for_all_seeds_and_skipped_ones_are_the_first(workspace: Workspace) -> None:
    tasks = trial(10)
    config = EvaluationConfig(arms=(NONE,))
    whole = ordered(tasks, config)
    assert ordered(tasks, config.model_copy(update={"seeds": (7,)})) == whole
    first = ordered(tasks, config.model_copy(update={"limit": 4}))
    rest = ordered(tasks, config.model_copy(update={"skip": 4}))
    assert first + rest == whole


def test_a_cancelled_evaluation_keeps_what_it_has_and_a_discarded_one_nothing(workspace: Workspace) -> None:
    add_tasks(workspace, trial(3))
    with StubServer() as stub:
        config = config_of(workspace, stub, NONE)
        first = workspace.evaluating.start(config, "ann")
        assert workspace.evaluating.cancel(first.id, "ann", discard=True).status == "cancelled"
        second = workspace.evaluating.start(config, "ann")
        assert second.id != first.id
        with pytest.raises(InputError, match="discarded"):
            workspace.evaluating.work(first.id, "ann")
        workspace.evaluating.cancel(second.id, "ann", discard=False)
        assert workspace.evaluating.work(second.id, "ann").status == "done"
        with pytest.raises(InputError, match="is done"):
            workspace.evaluating.cancel(second.id, "ann", discard=False)


def test_rollouts_that_broke_off_can_be_made_up_for(workspace: Workspace) -> None:
    add_tasks(workspace, trial(3))
    with StubServer(solver, faults=[Fault("malformed")] * 4) as stub:
        config = config_of(workspace, stub, NONE)
        endpoint = workspace.models.get("stub").model_copy(update={"retries": 0, "concurrency": 1})
        workspace.models.save(endpoint, "ann")
        done = evaluate(workspace, config)
        arm = workspace.evaluating.report(done.id).arms[0]
        assert (arm.rollouts, arm.errors, arm.scored) == (12, 4, 8)
    with StubServer() as stub:
        workspace.models.save(
            workspace.models.get("stub").model_copy(update={"base_url": stub.base_url}), "ann"
        )
        assert workspace.evaluating.retry(done.id, "ann") in (1, 2, 3)
        workspace.evaluating.work(done.id, "ann")
        assert workspace.evaluating.report(done.id).arms[0].errors == 0
        with pytest.raises(InputError, match="Nothing of EV1 failed"):
            workspace.evaluating.retry(done.id, "ann")


def test_the_store_is_sound_after_an_evaluation(workspace: Workspace, tmp_path: Path) -> None:
    add_tasks(workspace, trial(3))
    publish(workspace, "Add carefully.")
    with StubServer() as stub:
        evaluate(workspace, config_of(workspace, stub))
    assert list(check_content(workspace.store, workspace.folder / "winnow.db")) == []


@pytest.mark.model
def test_on_the_embedded_model_arms_differ_by_their_lessons_and_seeds_repeat(workspace: Workspace) -> None:
    """Real replies: the same arm twice under two names gives the same rewards, a lesson is really in the prompt."""
    add_tasks(workspace, trial(3))
    hand = Arm(name="hand", kind="text", lessons=(ArmLesson(text="Answer with the number alone."),))
    again = NONE.model_copy(update={"name": "none again"})
    config = EvaluationConfig(arms=(NONE, again, hand), samples=2, max_tokens=8)
    done = evaluate(workspace, config)
    report = workspace.evaluating.report(done.id)
    none, same, with_lesson = report.arms
    assert (none.rollouts, none.errors, with_lesson.injected) == (6, 0, 3)
    assert none.mean == same.mean
    assert with_lesson.prompt_tokens > none.prompt_tokens
    assert report.comparisons[0].effect.ties == 3
