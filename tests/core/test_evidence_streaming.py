"""Counting group by group: nothing depends on the order, and trajectories are let go."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evidence import Matter, Seen, recoveries
from core.evidence.counts import MAX_WORD_COLUMNS
from core.experience import Add
from core.extraction.from_evidence import propose
from core.rollout import Group, Rollout, Step, Task, Trajectory
from tests.core.test_evidence import contrast, make_group, make_rollout, make_task, planted, seen
from tests.core.test_from_evidence import agent, make_batch, short_wins, stumble

Pair = tuple[Task, Group]


def drafts(groups: Iterable[Pair]) -> str:
    return propose(seen(groups), (), run_id="R", seed=1).canonical()


# --- order, replacing, threads ------------------------------------------------------------------------------


def test_the_order_of_adding_changes_nothing() -> None:
    groups = [*make_batch(short_wins), *make_batch(agent, domain="files", ask="Find the owner of {}.")]
    expected = drafts(groups)
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert drafts([groups[i] for i in rng.permutation(len(groups))]) == expected


def test_a_group_added_again_replaces_what_was_counted_of_it() -> None:
    groups = make_batch(short_wins)
    twice = seen(groups)
    for task, group in reversed(groups):
        twice.add(task, group)
    assert propose(twice, (), run_id="R", seed=1).canonical() == drafts(groups)
    rescored = groups[0][1].model_copy(update={"status": "uninformative", "reason": "all wrong"})
    twice.add(groups[0][0], rescored)
    assert propose(twice, (), run_id="R", seed=1).canonical() == drafts(
        [(groups[0][0], rescored), *groups[1:]]
    )


def test_looking_on_the_way_does_not_disturb_the_end() -> None:
    groups, counted = make_batch(short_wins), Seen()
    for i, (task, group) in enumerate(groups):
        counted.add(task, group)
        if i % 4 == 0:
            propose(counted, (), run_id="R", seed=1)
    assert propose(counted, (), run_id="R", seed=1).canonical() == drafts(groups)


def test_what_was_looked_at_does_not_change_when_more_is_added() -> None:
    groups = make_batch(short_wins)
    counted = seen(groups[:8])
    before = counted.counts()
    rows = before.table().rows
    for task, group in groups[8:]:
        counted.add(task, group)
    assert before.table().rows == rows < counted.counts().table().rows


def test_adding_and_looking_may_happen_in_different_threads() -> None:
    groups = make_batch(short_wins)
    counted = seen(groups[:4])
    failures: list[BaseException] = []

    def look() -> None:
        try:
            for _ in range(10):
                propose(counted, (), run_id="R", seed=1)
        except RuntimeError as e:  # a dictionary that changed its size while it was read
            failures.append(e)

    thread = threading.Thread(target=look)
    thread.start()
    for task, group in groups * 3:
        counted.add(task, group)
    thread.join()
    assert failures == []
    assert propose(counted, (), run_id="R", seed=1).canonical() == drafts(groups)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(12)))
def test_domains_and_counts_are_the_same_in_any_order(order: list[int]) -> None:
    groups = make_batch(short_wins)
    counted = seen([groups[i] for i in order])
    assert counted.groups_by_domain == {"capitals": sum(g.status == "informative" for _, g in groups)}
    assert counted.counts().table().rollout_ids == seen(groups).counts().table().rollout_ids


# --- memory -------------------------------------------------------------------------------------------------


def long_group(number: int, rng: np.random.Generator) -> Pair:
    def text() -> str:
        return " ".join(f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in rng.integers(0, 676, 5_000))

    steps = (Step(tool="read", parameters={"path": f"/data/{number}"}, output=text(), success=True),)
    rollouts = [make_rollout(text(), won=i % 2 == 0, steps=steps) for i in range(5)]
    return make_group(number, rollouts)


def test_a_long_rollout_leaves_little_behind() -> None:
    """20 kB answers and 20 kB of tool output: at most 2 kB of each stay."""
    rng, counted = np.random.default_rng(0), Seen()
    groups = [long_group(number, rng) for number in range(20)]
    for task, group in groups[:8]:  # most words are known then
        counted.add(task, group)
    tracemalloc.start()
    try:
        for task, group in groups[8:]:
            counted.add(task, group)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert grown / 60 < 2_000


def test_trajectories_are_let_go() -> None:
    counted = Seen()
    task, group = make_group(0, [make_rollout("xx"), make_rollout("it is so", won=False)])
    kept = weakref.ref(group.rollouts[0].trajectory)
    counted.add(task, group)
    del group
    gc.collect()
    assert kept() is None
    assert counted.counts().table(least=1).rows == 2


def test_words_are_limited_to_those_that_differ_most_within_groups() -> None:
    rng = np.random.default_rng(1)

    def answer() -> str:
        return " ".join(f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in rng.integers(0, 400, 40))

    groups = [make_group(n, [make_rollout(answer(), won=i < 4) for i in range(8)]) for n in range(30)]
    table = seen(groups).counts().table()
    assert sum(f.is_word for f in table.columns) == MAX_WORD_COLUMNS
    inside = [f.name for f in table.columns if f.is_word]
    everything = seen(groups).counts().table(least=1)
    spread = {}
    for i, feature in enumerate(everything.columns):
        if feature.is_word:
            m = everything.by_group(everything.holds[:, [i]])[:, 0]
            spread[feature.name] = float((m * (8 - m) / 8).sum())
    least_inside = min(spread[name] for name in inside)
    assert all(value <= least_inside + 1e-9 for name, value in spread.items() if name not in inside)


def test_a_long_question_is_kept_by_its_ends() -> None:
    question = (
        "What follows from the text below? " + "Lorem ipsum dolor sit amet. " * 400 + "And who wrote it?"
    )
    matter = Matter.of(Task(id="t", question=question))
    assert sum(map(len, matter.sentences)) <= 120
    assert matter.sentences[0][:3] == ("what", "follows", "from")
    assert matter.sentences[-1] == ("and", "who", "wrote", "it")


# --- what is contrasted --------------------------------------------------------------------------------------


def rewarded(*values: tuple[str, float | None, float | None, float | None]) -> list[Rollout]:
    """Rollouts from (answer, extrinsic, reward, advantage)."""
    return [make_rollout(a, extrinsic=e, reward=r, advantage=v) for a, e, r, v in values]


def test_the_extrinsic_reward_is_contrasted_and_the_advantage_says_who_won() -> None:
    rollouts = rewarded(("xx", 1.0, 0.8, 0.9), ("it is so", 0.0, 0.3, -0.9), ("xx", 1.0, 0.5, -0.1))
    table = seen([make_group(0, rollouts)]).counts().table(least=1)
    assert list(table.rewards) == [1.0, 0.0, 1.0]
    assert list(table.wins) == [True, False, False]
    assert list(table.losses) == [False, True, True]


def test_epistemic_differences_alone_teach_nothing() -> None:
    rollouts = rewarded(("xx", 1.0, 0.9, 0.7), ("it is so", 1.0, 0.7, -0.7))
    assert seen([make_group(0, rollouts)]).counts().table(least=1).rows == 0


def test_one_unknown_extrinsic_reward_is_left_out_and_not_mixed_with_another_scale() -> None:
    rollouts = rewarded(("xx", 1.0, 0.8, 0.9), ("it is so", 0.0, 0.3, -0.9), ("xx", None, 0.5, 0.0))
    assert seen([make_group(0, rollouts)]).counts().table(least=1).rows == 2
    old = rewarded(
        ("xx", None, 5.0, 0.9), ("it is so", None, -2.0, -0.9)
    )  # recorded before there was such a thing
    assert list(seen([make_group(0, old)]).counts().table(least=1).rewards) == [5.0, -2.0]


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e6, 1e120, 1e300])
def test_the_scale_of_the_rewards_does_not_matter(factor: float) -> None:
    def scaled(groups: list[Pair]) -> list[Pair]:
        return [
            (
                t,
                g.model_copy(
                    update={
                        "rollouts": tuple(
                            r.model_copy(update={"reward": r.reward * factor}) for r in g.rollouts
                        )
                    }
                ),
            )
            for t, g in groups
        ]

    groups = planted(12, effect=0.3, seed=3)
    plain, other = contrast(groups), contrast(scaled(groups))
    assert [f.feature for f in other.findings] == [f.feature for f in plain.findings]
    for a, b in zip(plain.findings, other.findings, strict=True):
        assert b.p == pytest.approx(a.p, rel=1e-6)
        assert b.p_corrected == pytest.approx(a.p_corrected, abs=0.02)


def test_swapping_winners_and_losers_turns_every_finding_round() -> None:
    groups = planted(12, effect=0.3, seed=3)
    swapped = [
        (
            t,
            g.model_copy(
                update={
                    "rollouts": tuple(
                        r.model_copy(update={"reward": 1 - r.reward, "advantage": -r.advantage})
                        for r in g.rollouts
                    )
                }
            ),
        )
        for t, g in groups
    ]
    plain, other = contrast(groups), contrast(swapped)
    turned = {f.feature: f for f in other.findings}
    assert plain.findings
    for finding in plain.findings:
        back = turned[finding.feature]
        assert back.p == pytest.approx(finding.p, rel=1e-9)
        assert back.odds_ratio == pytest.approx(1 / finding.odds_ratio, rel=1e-9)
        assert (back.winners_with, back.losers_with) == (finding.losers_with, finding.winners_with)
        assert other.gain_of(finding.feature) == pytest.approx(-(plain.gain_of(finding.feature) or 0))


# --- nothing sure is lost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [short_wins, agent, stumble])
@pytest.mark.parametrize("number", range(3))
def test_every_sure_finding_is_proposed_joined_quarantined_or_told(behaviour: Any, number: int) -> None:
    groups = make_batch(behaviour, domain="files", seed=number)
    found = seen(groups).counts().contrast(["files"], seed=(1, 0))
    sure = [f for f in found.findings if f.p_corrected < 0.05]
    outcome = propose(seen(groups), (), run_id="R", seed=1)
    proposed = {f.feature for d in outcome.drafts for f in d.evidence.findings}
    joined = {f.feature for j in outcome.joined for f in j.evidence.findings}
    assert sure
    for finding in sure:
        names = {finding.feature, *found.same.get(finding.feature, ())}
        sentences = {found.sentence(w) for n in names if (w := found.under(n)) is not None}
        set_aside = any(s in q.raw and q.reason for q in outcome.quarantined for s in sentences)
        told = any(s in note for note in outcome.notes for s in sentences)
        words = finding.feature.startswith("word=")  # only the clearest three are told
        assert names & (proposed | joined) or set_aside or told or words, finding


# --- recoveries ---------------------------------------------------------------------------------------------


def failed(tool: str, **parameters: Any) -> Step:
    return Step(tool=tool, parameters=parameters, success=False, error="ReadTimeout: 30 s")


def done(tool: str, **parameters: Any) -> Step:
    return Step(tool=tool, parameters=parameters, success=True)


@pytest.mark.parametrize(
    ("steps", "habits", "worked"),
    [
        ((failed("get", a=1), done("get", a=1)), ["retry_same"], [True]),
        (
            (failed("get", a=1), failed("get", a=1), done("get", a=2)),
            ["retry_same", "fix_parameters"],
            [False, True],
        ),
        ((failed("get"), done("list")), ["switch_tool"], [True]),
        ((done("list"), failed("get")), ["give_up"], [False]),
        ((failed("get"), Step(tool="list")), ["switch_tool"], [False]),  # its outcome is not known
        ((done("list"),), [], []),
        ((), [], []),
    ],
)
def test_what_an_agent_did_after_each_failed_call(
    steps: tuple[Step, ...], habits: list[str], worked: list[bool]
) -> None:
    found = recoveries(Trajectory(steps=steps))
    assert [r.habit for r in found] == habits
    assert [r.worked for r in found] == worked
    assert all(steps[r.step].tool == r.tool and r.error == "ReadTimeout" for r in found)


def test_a_recovery_reads_as_words() -> None:
    (one,) = recoveries(Trajectory(steps=(failed("get"), done("list"))))
    assert one.words == "switched to another tool (list), which worked"
    (last,) = recoveries(Trajectory(steps=(failed("get"),)))
    assert last.words == "gave up"


def test_how_a_rollout_was_stopped_is_counted_and_never_advised() -> None:
    def stopped(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        """The step limit decides; those that ran into it had called `look` more often."""
        limit = rng.random() < 0.5
        steps = (done("look"),) * (4 if limit or rng.random() < 0.3 else 1)
        reason = "step limit" if limit else "stop"
        return Trajectory(answer="x", steps=steps, finish_reason=reason), float(
            not limit and rng.random() < 0.8
        )

    groups = make_batch(stopped, domain="files", ask="Find the owner of {}.")
    finding = seen(groups).counts().contrast(["files"]).finding("step_limit")
    assert finding is not None
    assert finding.p_corrected < 0.05
    outcome = propose(seen(groups), (), run_id="R", seed=1)
    assert not any(isinstance(d.operation, Add) for d in outcome.drafts)
    assert any("ran into the step limit" in note for note in outcome.notes)
    assert any("a limit stopped" in q.reason for q in outcome.quarantined)


def test_a_parameter_with_many_values_in_one_rollout_is_content() -> None:
    def names(*pages: int) -> set[str]:
        steps = tuple(done("next", page=p) for p in pages)
        groups = [
            make_group(0, [make_rollout("x", steps=steps), make_rollout("y", won=False)], task=make_task())
        ]
        return {f.name for f in seen(groups).counts().table(least=1).columns}

    assert {"param=next.page=1", "param=next.page=2"} <= names(1, 2)
    assert not any(n.startswith("param=next.page=") for n in names(*range(1, 9)))
