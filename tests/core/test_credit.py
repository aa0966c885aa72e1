"""Credit comes from contrasts alone, is written down once, and shows with the next version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.credit import GAIN, LEAST, MOST, Attempt, Credit, credited, fold, moved, weigh
from core.experience import Add, Evidence, Merge
from core.extraction.summarise import Summary
from core.extraction.with_model import Taught
from core.library import Change, Library
from core.packs.usage_log import LoggedPack, UsageEntry
from core.rollout import Group, Rollout, Step, Task, Trajectory
from core.workspace import Workspace
from core.workspace.crediting import Crediting, Held, follows
from tests.make import add_tasks, make_experience, make_group, make_proposal, make_task, publish

SHORT = "Answer with one word."
LONG = ["Paris", "It is Paris, all in all."]


def attempts(*pairs: tuple[bool | None, float | None]) -> list[Attempt]:
    return [Attempt(*pair) for pair in pairs]


def credit(better: bool | None = True, source: str = "R1-0001", **fields: Any) -> Credit:
    return Credit(experience_id="E-0001", source=source, followers=1, others=1, better=better, **fields)


# -- the rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "better"),
    [
        ([(True, 1.0), (False, 0.0)], True),
        ([(True, 0.0), (False, 1.0)], False),
        ([(True, 1.0), (True, 0.0), (False, 0.5)], None),
        ([(True, 1.0), (True, 1.0)], None),
        ([(False, 1.0), (False, 0.0)], None),
        ([(True, 1.0), (None, 0.0)], None),
        ([(True, None), (False, 1.0)], None),
        ([(True, 1.0), (True, None), (False, 0.5), (False, None)], True),
    ],
)
def test_a_use_is_better_only_against_siblings_that_did_not_follow(
    pairs: list[tuple[bool | None, float | None]], better: bool | None
) -> None:
    assert weigh("E-0001", "R1-0001", attempts(*pairs)).better is better


def test_a_good_group_alone_moves_nothing_but_the_uses() -> None:
    everybody_won = weigh("E-0001", "R1-0001", attempts(*[(True, 1.0)] * 8))
    after = credited(make_experience(), [everybody_won])
    assert (after.uses, after.wins, after.confidence) == (1, 0, 0.5)


def test_a_lesson_that_nobody_followed_was_not_used() -> None:
    unused = weigh("E-0001", "R1-0001", attempts((False, 1.0), (False, 0.0)))
    assert credited(make_experience(), [unused]) == make_experience()


def test_confidence_moves_by_a_tenth_of_the_way() -> None:
    assert moved(0.5, better=True) == pytest.approx(0.5 + 0.1 * 0.5)
    assert moved(0.5, better=False) == pytest.approx(0.5 - 0.1 * 0.5)
    assert moved(0.949, better=True) == MOST
    assert moved(0.051, better=False) == LEAST


@given(st.floats(LEAST, MOST), st.lists(st.booleans(), max_size=60))
def test_confidence_never_leaves_its_bounds(start: float, outcomes: list[bool]) -> None:
    lesson = make_experience(confidence=start)
    after = credited(lesson, [credit(better, f"R1-{i}") for i, better in enumerate(outcomes)])
    assert LEAST <= after.confidence <= MOST
    assert (after.uses, after.wins) == (len(outcomes), sum(outcomes))


@given(st.lists(st.booleans(), max_size=12), st.randoms())
def test_the_order_in_which_credits_come_plays_no_part(outcomes: list[bool], rng: Any) -> None:
    credits = [credit(better, f"R{i}-0001") for i, better in enumerate(outcomes)]
    shuffled = rng.sample(credits, len(credits))
    assert credited(make_experience(), shuffled) == credited(make_experience(), credits)


def test_a_lesson_that_helps_half_of_the_time_stays_in_the_middle() -> None:
    credits = [credit(i % 2 == 0, f"R1-{i}") for i in range(400)]
    assert credited(make_experience(confidence=0.9), credits).confidence == pytest.approx(0.5, abs=0.03)


def test_folding_leaves_dead_lessons_and_all_others_alone() -> None:
    library = Library.of([make_experience(1), make_experience(2), make_experience(3, status="deleted")])
    dead = Credit(experience_id="E-0003", source="R1-0001", followers=1, others=0)
    after = fold(library, [credit(), dead])
    assert after.experiences["E-0001"].confidence == pytest.approx(0.5 + GAIN / 2)
    assert [after.experiences[i] == library.experiences[i] for i in ("E-0002", "E-0003")] == [True, True]


# -- who follows a lesson -----------------------------------------------------------------------------


def held(*answers: str, steps: tuple[tuple[Step, ...], ...] = ()) -> Held:
    own = [steps[i] if i < len(steps) else () for i in range(len(answers))]
    rollouts = [
        Rollout(
            id=f"r{i}", group_id="g", task_id="t-001", replicate=i, trajectory=Trajectory(answer=a, steps=s)
        )
        for i, (a, s) in enumerate(zip(answers, own, strict=True))
    ]
    return Held.of(make_task(question="What is the capital of France?", answer="Lyon"), rollouts)


def test_followers_are_told_by_what_they_did() -> None:
    assert follows("Answer with one word.", held("Paris", "The capital is Paris.")) == [True, False]
    assert follows("Answer with one word.", held("Paris now", "The capital is Paris.")) == [False, False]
    assert follows("Do not end with a period.", held("Paris", "Paris.")) == [True, False]


def test_a_lesson_of_two_things_is_followed_where_both_are_done() -> None:
    text = "Answer with one word. Do not end with a period."
    assert follows(text, held("Paris", "Paris.", "It is Paris")) == [True, False, False]


def test_a_lesson_that_speaks_of_nothing_countable_says_nothing() -> None:
    assert follows("Think of the river that runs through it.", held("Paris", "Lyon")) is None


def test_tools_are_followed_by_their_names() -> None:
    read, write = Step(tool="read_json", success=True), Step(tool="write_json", success=True)
    found = held("a", "b", "c", steps=((read, write), (write, read), (write,)))
    assert follows("Call read_json before write_json.", found) == [True, False, False]


def test_what_is_said_of_an_error_does_not_concern_those_who_met_none() -> None:
    failed = Step(tool="read_json", success=False, error="KeyError: 'x'")
    other, again = (
        Step(tool="list_files", success=True),
        Step(tool="read_json", success=False, error="KeyError: 'x'"),
    )
    fine = Step(tool="read_json", success=True)
    found = held("a", "b", "c", steps=((failed, other), (failed, again, other), (fine,)))
    assert follows("When read_json fails with KeyError, switch to another tool.", found)[2] is None  # type: ignore[index]
    assert follows("When read_json fails with KeyError, do not repeat the same call.", found) == [
        True,
        False,
        None,
    ]


# -- the ledger ---------------------------------------------------------------------------------------


def given_lesson(workspace: Workspace, text: str = SHORT) -> Task:
    """A workspace with one task and one published lesson."""
    task = make_task(question="What is the capital of France?", answer="Paris", domain="sums")
    add_tasks(workspace, [task])
    publish(workspace, Add(text=text, domain="sums"))
    return task


def sampled(
    workspace: Workspace, *rewards: float, answers: tuple[str, ...], run: str = "R1", **fields: Any
) -> Group:
    """A group of the task that was given E-0001; stored, so that its summaries can be."""
    group = make_group(*rewards, id=f"{run}-0001", answers=answers, library_version=1, **fields)
    rollouts = tuple(r.model_copy(update={"injected": {"G0": "E-0001"}}) for r in group.rollouts)
    group = group.model_copy(update={"rollouts": rollouts})
    from core.settings import RunConfig

    workspace.store.runs.create(
        RunConfig(), [workspace.store.tasks.find("t-001")], [0], [0],  # type: ignore[list-item]
        request=run, kind="sampled", library_version=1, model="stub-model", note="", actor="test",
    )  # fmt: skip
    workspace.store.groups.save(group)
    return group


def state(workspace: Workspace) -> tuple[float, int, int]:
    lesson = workspace.store.versions.library().experiences["E-0001"]
    return round(lesson.confidence, 4), lesson.uses, lesson.wins


def version_with_credits(workspace: Workspace) -> int:
    """What publishing does: fold, then save."""
    store = workspace.store
    with store.writing():
        before = store.versions.library()
        after = store.credits.fold(before, into=before.version + 1, actor="ann")
        made = store.versions.save(
            before, after, parent=before.version, author="ann", message="m", event="version.published"
        )
        return made.number


def test_followers_who_did_better_win_once_however_often_it_is_said(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    group = sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    crediting = Crediting(workspace.store)
    (first,) = crediting.credit_group(group, task)
    before = workspace.store.dump()
    assert (first.followers, first.others, first.better) == (1, 1, True)
    Crediting(workspace.store).credit_group(group, task)
    assert [e.groups for e in Crediting(workspace.store).credit_run("R1")] == [1]
    assert workspace.store.dump() == before


def test_credits_stay_pending_until_a_version_is_made_and_count_once(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    group = sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    Crediting(workspace.store).credit_group(group, task)
    start = state(workspace)
    assert start[1:] == (0, 0)
    assert len(workspace.store.credits.pending()) == 1
    version_with_credits(workspace)
    once = state(workspace)
    assert once == (round(moved(start[0], better=True), 4), 1, 1)
    assert workspace.store.credits.pending() == []
    Crediting(workspace.store).credit_group(group, task)
    version_with_credits(workspace)
    assert state(workspace) == once


def test_a_rescored_group_replaces_what_is_pending_and_nothing_that_is_published(
    workspace: Workspace,
) -> None:
    task = given_lesson(workspace)
    answers = ("Paris", "It is Paris, all in all.")
    crediting = Crediting(workspace.store)
    crediting.credit_group(sampled(workspace, 1.0, 0.0, answers=answers), task)
    turned = make_group(0.0, 1.0, answers=answers, library_version=1)
    lessons = tuple(r.model_copy(update={"injected": {"G0": "E-0001"}}) for r in turned.rollouts)
    turned = turned.model_copy(update={"rollouts": lessons})
    crediting.credit_group(turned, task)
    assert [c.better for c in workspace.store.credits.pending()] == [False]
    version_with_credits(workspace)
    crediting.credit_group(sampled(workspace, 1.0, 0.0, answers=answers, run="R2"), task)
    crediting.credit_group(turned.model_copy(update={"rollouts": lessons[:1]}), task)
    assert {c.source: c.better for c, _ in workspace.store.credits.of("E-0001")} == {
        "R1-0001": False,
        "R2-0001": True,
    }


def test_a_rollback_does_not_take_back_what_was_earned_since(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    Crediting(workspace.store).credit_group(
        sampled(workspace, 1.0, 0.0, answers=("Paris", "It is, I say.")), task
    )
    version_with_credits(workspace)
    earned = state(workspace)
    old = workspace.store.versions.library(1)
    with workspace.store.writing():
        again = workspace.store.credits.fold(old, into=3, since=1, actor="ann")
    assert round(again.experiences["E-0001"].confidence, 4) == earned[0]
    with workspace.store.writing():
        assert workspace.store.credits.fold(
            workspace.store.versions.library(2), into=3, since=2, actor="a"
        ) == (workspace.store.versions.library(2))


def test_a_merge_sums_up_what_was_pending_too() -> None:
    library = Library.of([make_experience(1), make_experience(2, "Look at the file first.")])
    other = Credit(experience_id="E-0002", source="R1-0001", followers=1, others=1, better=True)
    merge = Merge(experience_ids=("E-0001", "E-0002"), text="Read the whole file first.")
    after = fold(library, [other]).apply([Change(merge)], 3).library.experiences["E-0001"]
    assert (after.uses, after.wins, after.confidence) == (1, 1, pytest.approx(0.55))


def test_summaries_tell_where_nothing_is_counted_and_are_kept(workspace: Workspace) -> None:
    task = given_lesson(workspace, "Think of the river that runs through it.")
    group = sampled(workspace, 1.0, 0.0, 0.0, answers=("Paris", "Lyon", "Nice"))
    taught = Taught(
        group_id=group.id,
        summaries=tuple(
            Summary(rollout_id=r.id, text="s", verdict="par", used=("E-0001",) if r.replicate == 0 else ())
            for r in group.rollouts[:2]
        ),
    )
    (found,) = Crediting(workspace.store).credit_group(group, task, taught)
    assert (found.followers, found.others, found.better) == (1, 1, True)
    (again,) = Crediting(workspace.store).credit_group(group, task)
    assert again == found


def test_what_was_counted_goes_before_what_a_summary_says(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    group = sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    says_the_opposite = Taught(
        group_id=group.id,
        summaries=(Summary(rollout_id=group.rollouts[1].id, text="s", verdict="worse", used=("E-0001",)),),
    )
    (found,) = Crediting(workspace.store).credit_group(group, task, says_the_opposite)
    assert found.better is True


def test_a_rollout_that_broke_off_takes_no_part(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    group = sampled(workspace, 1.0, 0.0, "broke off", answers=("Paris", "It is, I say.", "Paris"))  # type: ignore[arg-type]
    (found,) = Crediting(workspace.store).credit_group(group, task)
    assert (found.followers, found.others) == (1, 1)


def test_final_tasks_credit_nothing(workspace: Workspace) -> None:
    task = given_lesson(workspace).model_copy(update={"split": "final"})
    group = sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    assert Crediting(workspace.store).credit_group(group, task) == []
    assert workspace.store.credits.pending() == []


def test_rb1_a_lesson_on_the_task_that_it_was_learned_from_is_marked_in_sample(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    twin = make_task(2, question=task.question)
    workspace.store.tasks.add([twin, make_task(3)], [2, 3], "more.jsonl", "test")
    group = sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    crediting = Crediting(workspace.store)
    # the evidence of tests.make.propose names R1-0001, which is a group of this task now
    assert crediting.in_sample(task.id, ["E-0001"], 1) == ("E-0001",)
    assert crediting.in_sample(twin.id, ["E-0001"], 1) == ("E-0001",)
    assert crediting.in_sample("t-003", ["E-0001", "E-9999"], 1) == ()
    (found,) = crediting.credit_group(group, task)
    assert found.in_sample
    assert workspace.store.credits.from_sources([group.id]) == [found]
    (earned,) = crediting.credit_run("R1")
    assert (earned.groups, earned.in_sample) == (1, 1)


def test_an_in_sample_group_is_marked_even_where_nobody_followed(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    group = sampled(workspace, 1.0, 0.0, answers=("It is Paris, I say.", "It is Paris, all in all."))
    (found,) = Crediting(workspace.store).credit_group(group, task)
    assert (found.used, found.in_sample) == (False, True)


def test_what_a_merged_lesson_was_learned_from_comes_along(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    sampled(workspace, 1.0, 0.0, answers=("Paris", "Lyon"))
    merge = Merge(experience_ids=("E-0002", "E-0001"), text="Answer with one French word.")
    for operation in (Add(text="Say it in French.", domain="sums"), merge):
        by_hand = make_proposal(operation).model_copy(update={"evidence": Evidence()})
        (proposal_id,) = workspace.store.proposals.add([by_hand], "ann")
        workspace.review.approve(proposal_id, "ann")
        workspace.review.publish("m", "ann")
    crediting = Crediting(workspace.store)
    assert crediting.in_sample(task.id, ["E-0001", "E-0002"], 2) == ("E-0001",)
    assert crediting.in_sample(task.id, ["E-0001", "E-0002"], 3) == ("E-0001", "E-0002")


def test_pending_credits_of_a_discarded_run_go_with_it(workspace: Workspace) -> None:
    task = given_lesson(workspace)
    Crediting(workspace.store).credit_group(
        sampled(workspace, 1.0, 0.0, answers=("Paris", "It is, I say.")), task
    )
    workspace.learning.cancel("R1", "ann", discard=True)
    assert workspace.store.credits.pending() == []


# -- usage logs ---------------------------------------------------------------------------------------


def entry(
    name: str, followed: tuple[str, ...] | None, outcome: float | None, task: str = "ticket 7"
) -> UsageEntry:
    return UsageEntry(
        winnow_usage=1,
        entry=name,
        pack=LoggedPack(name="p", version=1),
        task=task,
        injected={"E-0001": hashlib.sha256(SHORT.encode()).hexdigest()[:16]},
        followed=followed,
        outcome=outcome,
    )


def came_in(workspace: Workspace, entries: Sequence[UsageEntry]) -> None:
    """As an import does it."""
    fresh = workspace.store.imports.missing(entries)
    workspace.store.imports.add_entries("u.jsonl", fresh)
    Crediting(workspace.store).credit_usage(fresh)


WON, WON_TOO, LOST = (
    entry("a", ("E-0001",), 1.0),
    entry("b", ("E-0001",), 1.0),
    entry("c", (), 0.0),
)


@pytest.mark.parametrize(
    "portions",
    [
        [[WON, WON_TOO, LOST]],
        [[WON], [WON, WON_TOO], [WON, WON_TOO, LOST]],
        [[LOST], [WON_TOO], [WON]],
    ],
)
def test_a_log_that_comes_in_portions_tells_what_it_tells_at_once(
    workspace: Workspace, portions: list[list[UsageEntry]]
) -> None:
    publish(workspace, SHORT)
    for portion in portions:
        came_in(workspace, portion)
    publish(workspace, "Another lesson.")
    lesson = workspace.store.versions.library().live("E-0001")
    assert (lesson.uses, lesson.wins, round(lesson.confidence, 2)) == (1, 1, 0.55)


def test_siblings_that_come_after_a_version_counted_the_others_are_a_use_of_their_own(
    workspace: Workspace,
) -> None:
    publish(workspace, SHORT)
    came_in(workspace, [WON, LOST])
    publish(workspace, "Another lesson.")
    for more in (entry("d", ("E-0001",), 0.0), entry("e", (), 1.0)):
        came_in(workspace, [more])
    [credit] = workspace.store.credits.pending()
    assert (credit.followers, credit.others, credit.better) == (1, 1, False)
    publish(workspace, "A third lesson.")
    came_in(workspace, [entry("f", ("E-0001",), 1.0)])
    publish(workspace, "A fourth lesson.")
    lesson = workspace.store.versions.library().live("E-0001")
    assert (lesson.uses, lesson.wins) == (3, 1)


def test_what_a_lesson_earned_that_was_merged_meanwhile_counts_for_the_one_that_lives_on(
    workspace: Workspace,
) -> None:
    publish(workspace, SHORT, "Say it in one word.", "One word will do.")
    publish(workspace, Merge(experience_ids=("E-0002", "E-0001"), text="Answer with one word only."))
    publish(workspace, Merge(experience_ids=("E-0003", "E-0002"), text="One word, no more."))
    came_in(workspace, [WON, LOST])
    [waits] = Crediting(workspace.store).waiting()
    assert (waits.experience_id, waits.better, waits.pending > waits.confidence) == ("E-0003", 1, True)
    publish(workspace, "Another lesson.")
    assert workspace.store.credits.pending() == []
    lesson = workspace.store.versions.library().live("E-0003")
    assert (lesson.uses, lesson.wins, lesson.confidence) == (1, 1, waits.pending)


def test_shipped_lessons_earn_from_siblings_of_one_task_only(workspace: Workspace) -> None:
    publish(workspace, SHORT)
    together = [entry("a", ("E-0001",), 1.0), entry("b", (), 0.0), entry("c", None, 0.0)]
    alone = [entry("d", ("E-0001",), 1.0, task=""), entry("e", (), 0.0, task="")]
    came_in(workspace, [*together, *alone])
    came_in(workspace, [*together, *alone])
    found = workspace.store.credits.pending()
    assert sorted((c.followers, c.others, c.better) for c in found if c.better is not None) == [(1, 1, True)]
    assert sorted((c.followers, c.others) for c in found if c.better is None) == [(1, 0)]


def test_the_command_says_what_a_run_earned_and_that_it_waits(workspace: Workspace, capsys: Any) -> None:
    import json

    from core.cli.credit import credit as command

    given_lesson(workspace)
    sampled(workspace, 1.0, 0.0, answers=("Paris", "It is Paris, all in all."))
    with pytest.raises(SystemExit) as ended:
        command.main(["R1", "--json", "--workspace", str(workspace.folder)], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert [(e["experience_id"], e["better"]) for e in told["earned"]] == [("E-0001", 1)]
    assert told["earned"][0]["pending"] > told["earned"][0]["confidence"]
    assert Path(workspace.folder).exists()
