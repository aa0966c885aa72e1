"""What evaluations measure of single lessons, proposals and versions; the gate that publishes by it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from core.errors import InputError, NotFoundError, StoppedError, UnknownExperienceError
from core.experience import Add, Evidence, Modify
from core.ports import Wish
from core.proof import Arm, Effect, EvaluationConfig, EvaluationFilter, Measured
from core.rollout import Run, Task
from core.settings import RunConfig
from core.store.queue import ProposalQueue, Sieve
from core.workspace import Workspace
from core.workspace.trial_gate import LEAST_TASKS, passing, selecting
from tests.make import add_stub, add_tasks, make_proposal, make_task, make_tasks
from tests.stub_server import Asked, StubServer

GOOD = "When asked for a sum, add the two numbers carefully."
DECOY = "When asked for a sum, think of the sea."
HARM = "When asked for a sum, guess at once."


def reply(asked: Asked) -> str:
    """A model that one lesson helps and another one harms; a third does nothing."""
    chance = 0.4 + 0.5 * (GOOD in asked.system) - 0.35 * (HARM in asked.system)
    a, b = map(int, re.findall(r"\d+", asked.user)[:2])
    return str(a + b if asked.rng.random() < chance else a + b + 1)


def teaching(*lessons: str) -> Callable[[Asked], str]:
    """An extraction model that suggests these lessons after each group."""

    def teacher(asked: Asked) -> str:
        if "semantic_advantages" in asked.system:
            operations = [{"op": "add", "ids": [], "text": text} for text in lessons]
            return json.dumps({"semantic_advantages": [], "operations": operations})
        return json.dumps({"actions": []} if '"actions"' in asked.system else {"summary": "Answered."})

    return teacher


def add_proposals(workspace: Workspace, *operations: Add | Modify | str) -> list[str]:
    library = workspace.store.versions.library()
    base = {e.id: e.text for e in library}
    made = []
    for one in operations:
        proposal = make_proposal(one)
        ids = [i for i in base if i in proposal.operation.model_dump_json()]
        texts = {i: base[i] for i in ids}
        fields = {"evidence": Evidence(), "base_texts": texts, "base_version": library.version}
        made.append(proposal.model_copy(update=fields))
    return workspace.store.proposals.add(made, "test")


def publish(workspace: Workspace, *operations: Add | str) -> None:
    for proposal_id in add_proposals(workspace, *operations):
        workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")


def measure(workspace: Workspace, config: EvaluationConfig) -> dict[str, Measured]:
    started = workspace.evaluating.start(config, "ann")
    workspace.evaluating.work(started.id, "ann")
    return {m.subject: m for m in workspace.measuring.measured(started)}


def settings(workspace: Workspace, stub: StubServer, **fields: object) -> EvaluationConfig:
    endpoint = add_stub(workspace, stub.base_url).endpoint
    none = Arm(name="none", kind="none")
    return EvaluationConfig.model_validate({"endpoint": endpoint, "arms": (none,), **fields})


def test_each_lesson_of_a_version_has_an_effect_of_its_own(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, GOOD, HARM, DECOY)
    with StubServer(reply) as stub:
        config = workspace.measuring.of_lessons(["E-0001", "E-0002", "E-0003"], settings(workspace, stub))
        measure(workspace, config)
    found = workspace.store.evaluations.newest_measured(["E-0001", "E-0002", "E-0003"])
    good, harm, decoy = (found[i].effect for i in ("E-0001", "E-0002", "E-0003"))
    assert good.low is not None
    assert good.low > 0
    assert harm.high is not None
    assert harm.high < 0
    assert decoy.low is not None
    assert decoy.high is not None
    assert decoy.low <= 0 <= decoy.high
    assert {(m.effect.tasks, m.samples, m.tried) for m in found.values()} == {(20, 4, 3)}
    assert all((m.p_adjusted or 0) >= (m.effect.p_greater or 0) for m in found.values())


def test_a_measured_lesson_earns_one_credit_with_the_rollouts_it_rests_on(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, GOOD, HARM, DECOY)
    with StubServer(reply) as stub:
        config = workspace.measuring.of_lessons(["E-0001", "E-0002", "E-0003"], settings(workspace, stub))
        measure(workspace, config)
    credits = {c.experience_id: c for c in workspace.store.credits.pending()}
    assert {i: c.better for i, c in credits.items()} == {"E-0001": True, "E-0002": False, "E-0003": None}
    assert {c.followers for c in credits.values()} == {80}
    before = {e.id: e.confidence for e in workspace.store.versions.library()}
    workspace.review.publish("count", "ann")
    after = {e.id: e.confidence for e in workspace.store.versions.library()}
    assert after["E-0001"] > before["E-0001"]
    assert after["E-0002"] < before["E-0002"]
    assert after["E-0003"] == before["E-0003"]


def test_proposals_are_tried_before_a_person_sees_them_and_nothing_is_published(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    ids = add_proposals(workspace, GOOD, DECOY)
    with StubServer(reply) as stub:
        found = measure(workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub)))
        assert stub.stats()["calls"] == 20 * 4 * 3
    assert found["P-0001"].effect.mean is not None
    assert found["P-0001"].effect.mean > 0.2
    assert workspace.store.versions.head() == 0
    assert {p.status for p in workspace.store.proposals.every()} == {"proposed"}
    given = workspace.store.groups.get("R2-0001").rollouts[0].injected
    assert given == {"G0": "P-0001"}  # not the number that a lesson may get later


def test_what_a_trial_measured_is_earned_by_the_lesson_that_was_published(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    ids = add_proposals(workspace, GOOD, HARM)
    with StubServer(reply) as stub:
        measure(workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub)))
    assert workspace.store.credits.pending() == []  # nobody published them yet
    for proposal_id in ids:
        workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")
    assert {c.experience_id: (c.better, c.followers) for c in workspace.store.credits.pending()} == {
        "E-0001": (True, 80),
        "E-0002": (False, 80),
    }


def test_a_lesson_that_was_edited_after_its_trial_earns_nothing_of_it(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    [proposal_id] = add_proposals(workspace, GOOD)
    with StubServer(reply) as stub:
        measure(workspace, workspace.measuring.of_proposals([proposal_id], settings(workspace, stub)))
    workspace.review.edit(proposal_id, DECOY, "ann")
    workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")
    assert workspace.store.credits.pending() == []


def test_a_change_of_a_lesson_is_tried_in_its_place(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, Add(text=HARM, domain="sums"))
    ids = add_proposals(workspace, Modify(experience_id="E-0001", text=GOOD))
    with StubServer(reply) as stub:
        [found] = measure(
            workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub))
        ).values()
    assert found.effect.low is not None
    assert found.effect.low > 0.3


def test_a_trial_asks_only_tasks_that_the_change_can_reach(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6, split="trial"))
    names = {"split": "trial", "domain": "cities"}
    cities = [
        make_task(i, id=f"c-{i}", question=f"What is {i} + 1?", answer=f"{i + 1}", **names) for i in range(4)
    ]
    add_tasks(workspace, cities)
    ids = add_proposals(workspace, Add(text=GOOD, domain="sums"), Add(text=DECOY, domain="cities"))
    with StubServer(reply) as stub:
        config = workspace.measuring.of_proposals(ids[:1], settings(workspace, stub))
        assert workspace.evaluating.plan(config).by_domain == {"sums": 6}
        found = measure(workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub)))
    assert {i: m.effect.tasks for i, m in found.items()} == {"P-0001": 6, "P-0002": 4}


def test_what_cannot_be_tried_is_refused(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    [first, second] = add_proposals(workspace, GOOD, DECOY)
    workspace.review.reject(second, "no", "ann")
    with StubServer(reply) as stub:
        config = settings(workspace, stub)
        with pytest.raises(InputError, match="P-0002 is rejected"):
            workspace.measuring.of_proposals([first, second], config)
        with pytest.raises(InputError, match="Name at least one"):
            workspace.measuring.of_proposals([], config)
        with pytest.raises(UnknownExperienceError):
            workspace.measuring.of_lessons(["E-0009"], config)


def test_an_edit_after_a_trial_began_does_not_change_what_is_tried(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    [proposal_id] = add_proposals(workspace, GOOD)
    with StubServer(reply) as stub:
        config = workspace.measuring.of_proposals([proposal_id], settings(workspace, stub))
        started = workspace.evaluating.start(config, "ann")
        workspace.review.edit(proposal_id, HARM, "ann")
        workspace.evaluating.work(started.id, "ann")
        assert not any(HARM in json.dumps(r.body) for r in stub.requests)


def test_final_tasks_measure_nothing_that_could_choose(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="final"))
    publish(workspace, GOOD)
    with StubServer(reply) as stub:
        config = workspace.measuring.of_lessons(["E-0001"], settings(workspace, stub, split="final"))
        assert measure(workspace, config) == {}
    assert workspace.store.evaluations.measured_of("E-0001") == []
    assert workspace.store.credits.pending() == []


def test_a_version_that_does_worse_than_its_parent_is_flagged_and_nothing_is_rolled_back(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, GOOD)
    publish(workspace, HARM)
    arms = tuple(Arm(name=f"v{n}", kind="version", version=n) for n in (1, 2))
    with StubServer(reply) as stub:
        measure(workspace, settings(workspace, stub).model_copy(update={"arms": arms}))
    [alarm] = workspace.measuring.alarms()
    assert (alarm.subject, alarm.version) == ("2", 1)
    assert [e.subject for e in workspace.store.events.newest() if e.kind == "rollback.proposed"] == ["2"]
    assert workspace.store.versions.head() == 2
    workspace.review.rollback(1, "ann")
    assert workspace.measuring.alarms() == []


def test_the_last_measurement_of_a_version_says_whether_it_does_worse(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, GOOD)
    publish(workspace, HARM)
    arms = tuple(Arm(name=f"v{n}", kind="version", version=n) for n in (1, 2))
    with StubServer(reply) as stub:
        measure(workspace, settings(workspace, stub).model_copy(update={"arms": arms}))
        assert workspace.measuring.alarms()
    with StubServer(lambda _: "no number") as silent:
        again = settings(workspace, silent, seeds=(1,)).model_copy(update={"arms": arms})
        measure(workspace, again)
    assert workspace.measuring.alarms() == []


def test_a_measurement_of_fewer_tasks_takes_no_alarm_back(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(20, split="trial"))
    publish(workspace, GOOD)
    publish(workspace, HARM)
    arms = tuple(Arm(name=f"v{n}", kind="version", version=n) for n in (1, 2))
    with StubServer(reply) as stub, StubServer(lambda _: "no number") as silent:
        measure(workspace, settings(workspace, stub).model_copy(update={"arms": arms}))
        [alarm] = workspace.measuring.alarms()
        smaller = settings(workspace, silent, seeds=(1,)).model_copy(update={"arms": arms, "limit": 1})
        measure(workspace, smaller)
    assert workspace.measuring.alarms() == [alarm]


def test_what_has_an_interval_stands_against_a_later_number_of_one_task(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12, split="trial"))
    ids = add_proposals(workspace, GOOD, DECOY)

    def lucky(asked: Asked) -> str:
        a, b = map(int, re.findall(r"\d+", asked.user)[:2])
        return str(a + b + (DECOY not in asked.system))

    with StubServer(reply) as stub, StubServer(lucky) as other:
        measure(workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub)))
        one = settings(workspace, other, seeds=(1,)).model_copy(update={"limit": 1})
        [later] = measure(workspace, workspace.measuring.of_proposals(ids[1:], one)).values()
    assert (later.effect.mean, later.effect.low) == (1.0, None)
    stands = workspace.store.evaluations.newest_measured(ids)
    assert {one.evaluation_id for one in stands.values()} == {"EV1"}
    assert [i for i, _ in ProposalQueue(workspace.store).ids(Sieve(), order="effect")] == ids


def test_a_lesson_shows_what_was_measured_of_it_before_it_was_one(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    ids = add_proposals(workspace, GOOD, HARM)
    with StubServer(reply) as stub:
        measure(workspace, workspace.measuring.of_proposals(ids, settings(workspace, stub)))
        workspace.review.edit(ids[1], DECOY, "ann")
        for proposal_id in ids:
            workspace.review.approve(proposal_id, "ann")
        workspace.review.publish("test", "ann")
        measure(workspace, workspace.measuring.of_lessons(["E-0001"], settings(workspace, stub)))
    found = [(one.evaluation_id, one.subject) for one in workspace.measuring.of("E-0001")]
    assert found == [("EV2", "E-0001"), ("EV1", "P-0001")]
    assert workspace.measuring.of("E-0002") == [], "what was tried was another text"
    for nothing in ("E-0009", "P-0009", "9", "nope"):
        with pytest.raises(NotFoundError):
            workspace.measuring.of(nothing)


def test_an_evaluation_whose_endpoint_was_removed_can_still_be_read(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    publish(workspace, GOOD)
    with StubServer(reply) as stub:
        measure(workspace, workspace.measuring.of_lessons(["E-0001"], settings(workspace, stub)))
    before = workspace.evaluating.report("EV1")
    workspace.models.remove("stub", "ann")
    assert workspace.evaluating.report("EV1") == before
    assert "EV1" in workspace.evaluating.html("EV1")


def test_the_queue_can_be_ordered_by_measured_effect_and_by_uncertainty(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12, split="trial"))
    ids = add_proposals(workspace, DECOY, GOOD, "When asked for a sum, breathe.")
    with StubServer(reply) as stub:
        measure(workspace, workspace.measuring.of_proposals(ids[:2], settings(workspace, stub)))
    queue = ProposalQueue(workspace.store)
    assert [i for i, _ in queue.ids(Sieve(), order="effect")] == ["P-0002", "P-0001", "P-0003"]
    assert queue.ids(Sieve(), order="uncertainty")[0][0] == "P-0003"  # nothing is known of it
    place = queue.place(Sieve(), "P-0001", order="effect")
    assert place is not None
    assert (place.number, place.before, place.after) == (2, "P-0002", "P-0003")


# --- the gate ---


def trial(count: int) -> list[Task]:
    return [make_task(number, split="trial") for number in range(100, 100 + count)]


def learn(workspace: Workspace, stub: StubServer, teacher: StubServer, **fields: object) -> Run:
    config = add_stub(workspace, stub.base_url)
    add_stub(workspace, teacher.base_url, "teacher", context_length=16_000)
    own = {"extraction_endpoint": "teacher", "gate": "trial", "batch_size": 6, **fields}
    return workspace.learning.start(config.model_copy(update=own), "ann")


def test_the_gate_publishes_what_helps_and_leaves_the_rest_to_a_person_with_what_was_measured(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(66))
    with StubServer(reply) as stub, StubServer(teaching(GOOD, DECOY)) as teacher:
        run = workspace.learning.work(learn(workspace, stub, teacher).id, "ann")
    assert run.status == "done"
    texts = {e.text for e in workspace.store.versions.library()}
    assert GOOD in texts
    assert DECOY not in texts
    by_text = {p.operation.text: p for p in workspace.store.proposals.every() if isinstance(p.operation, Add)}
    assert by_text[GOOD].status == "published"
    assert by_text[GOOD].decided_by == f"ann (trial gate of {run.id})"
    assert by_text[DECOY].status == "proposed"
    [shown] = workspace.store.evaluations.measured_of(by_text[DECOY].id)
    assert (shown.selected, shown.samples) == (True, 4)
    assert 22 <= shown.effect.tasks <= 44  # stopped where it was hopeless, not before half of its tasks
    fresh, selecting_one = workspace.store.evaluations.measured_of(by_text[GOOD].id)
    assert (fresh.fresh, fresh.effect.tasks) == (True, 22)
    assert (selecting_one.selected, selecting_one.effect.tasks) == (True, 44)
    assert workspace.store.evaluations.newest_measured([by_text[GOOD].id])[by_text[GOOD].id] == fresh
    assert workspace.measuring.alarms() == []
    assert run.published[-1] == 1
    rows, _ = workspace.store.evaluations.page()
    assert {row.purpose: workspace.store.evaluations.gate_of(row.id) for row in rows} == {
        "gate": run.id,
        "fresh": run.id,
    }
    assert workspace.store.evaluations.gate_of("EV99") is None


def test_with_fewer_trial_tasks_than_it_takes_the_gate_says_so_and_lets_nothing_pass(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(LEAST_TASKS - 1))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        started = learn(workspace, stub, teacher)
        assert "takes 40 trial tasks" in workspace.learning.plan(started.config).notes[-1]
        workspace.learning.work(started.id, "ann")
    assert workspace.store.versions.head() == 0
    [event] = [e for e in workspace.store.events.newest() if e.kind == "gate.held_back"]
    assert "there are at most 39" in str(event.data["reason"])
    assert workspace.store.evaluations.page()[1] == 0


def test_a_gate_that_was_stopped_goes_on_and_pays_nothing_twice(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(40))

    def wish() -> Wish:
        return "pause" if stub.stats()["calls"] > 200 else "go"

    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        started = learn(workspace, stub, teacher)
        with pytest.raises(StoppedError):
            workspace.learning.work(started.id, "ann", wishes=wish)
        assert workspace.store.versions.head() == 0
        workspace.store.jobs.add("run", started.id, {}, "test")
        for state, of_gates in (("active", ["gate"]), ("interrupted", [])):
            rows, _ = workspace.store.evaluations.page(EvaluationFilter(state=state))
            assert [row.purpose for row in rows] == of_gates, "the job of its run works on it"
        done = workspace.learning.work(started.id, "ann")
        asked = [json.dumps([r.body["messages"], r.body["seed"]]) for r in stub.requests]
    assert done.status == "done"
    assert workspace.store.versions.head() == 1
    assert len(asked) == len(set(asked))


def test_what_the_gate_sends_counts_against_the_caps_of_its_run(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(40))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        started = learn(workspace, stub, teacher, max_calls=150)
        with pytest.raises(Exception, match="cap of 150 calls"):
            workspace.learning.work(started.id, "ann")
        calls = stub.stats()["calls"] + teacher.stats()["calls"]
        assert calls == 150 == workspace.store.spending.of_run(started.id).calls
        workspace.learning.work(started.id, "ann", caps=RunConfig(max_calls=5_000))
    assert workspace.store.versions.head() == 1


def test_what_passes_is_corrected_over_all_that_were_tried() -> None:
    def one(subject: str, p: float, tasks: int = 40) -> Measured:
        effect = Effect(tasks=tasks, mean=0.1, p_greater=p)
        return Measured(
            kind="proposal", subject=subject, evaluation_id="EV1", version=0, split="trial", model="m", effect=effect,
            samples=4,
        )  # fmt: skip

    assert passing([one("P-1", 0.04)]) == ["P-1"]
    assert passing([one("P-1", 0.04), *(one(f"P-{i}", 0.9) for i in range(2, 6))]) == []
    assert passing([one("P-1", 0.01), one("P-2", 0.04), one("P-3", 0.2)]) == ["P-1", "P-2"]
    assert passing([one("P-1", 0.001, tasks=39)]) == []


def test_two_thirds_of_the_trial_tasks_select_and_never_fewer_than_the_gate_takes() -> None:
    assert selecting(Counter(sums=40)) == 40
    assert selecting(Counter(sums=50)) == 40
    assert selecting(Counter(sums=120, cities=30)) == 80
