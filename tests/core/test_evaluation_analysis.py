"""The analysis of an evaluation: what it counts, and what it says where a better total hides something."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.effect import paired
from core.errors import InputError
from core.evaluation import Sampled, Told, compare, results
from core.evaluation.analysis import Values
from core.evaluation.looking import hopeless_looks, looks, planned
from core.proof import Arm
from core.rollout import Task, Usage
from core.store.evaluations import Outcome
from tests.make import make_task

BASE = Arm(name="base", kind="none")
OTHER = Arm(name="other", kind="version", version=1)
Reward = float | None | tuple[float | None, float | None] | str


def outcome(task_id: str, reward: Reward, answer: str = "") -> Outcome:
    """A rollout: a reward, (reward, content), or the word "error"."""
    value, content = reward if isinstance(reward, tuple) else (reward, None)
    broke = value == "error"
    return Outcome(
        run_id="R1", group_id=f"R1-{task_id}", task_id=task_id, domain="d", answer=answer,
        reward=None if broke or isinstance(value, str) else value, content=content, error=broke, cut=False,
        injected=(), usage=Usage(calls=1, prompt_tokens=10),
    )  # fmt: skip


def sampled(arm: Arm, rewards: Sequence[Sequence[Reward]], answers: Sequence[str] = ()) -> Sampled:
    found = Sampled(arm)
    for i, own in enumerate(rewards):
        said = answers[i] if answers else ""
        found.groups[f"t{i}"][0] = [outcome(f"t{i}", one, said) for one in own]
    return found


def told(count: int, answers: Sequence[str] = (), samples: int = 2) -> Told:
    tasks: dict[str, Task] = {
        f"t{i}": make_task(i, id=f"t{i}", domain="d", answer=answers[i] if answers else f"{i}")
        for i in range(count)
    }
    return Told(tasks=tasks, order=list(tasks), samples=samples, seeds=(0,), threshold=1.0)


def test_a_task_that_one_arm_could_not_score_takes_no_part_and_is_counted() -> None:
    both = {
        "base": sampled(BASE, [[0, 0], [1, 0], ["error", "error"], [0.5, None]]),
        "other": sampled(OTHER, [[1, 1], [0, 0], [1, 1], [0.5, 0.5]]),
    }
    found = compare(both, OTHER, BASE, told(4))
    effect = found.effect
    assert (effect.tasks, effect.unpaired, effect.wins, effect.losses, effect.ties) == (3, 1, 1, 1, 1)
    assert effect.mean == pytest.approx((1 - 0.5 + 0) / 3)
    assert [row.outcome for row in found.rows] == ["win", "loss", "unpaired", "tie"]
    base = results(both, (BASE, OTHER), told(4))[0]
    assert (base.rollouts, base.scored, base.unscored, base.errors) == (8, 5, 1, 2)
    assert base.mean == pytest.approx((0 + 0.5 + 0.5) / 3)


def test_pass_at_k_is_unbiased_and_says_over_how_many_tasks_it_is() -> None:
    arms = {"base": sampled(BASE, [[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, None, 0]])}
    base = results(arms, (BASE,), told(3, samples=4))[0]
    assert base.pass_at == {
        1: pytest.approx((1 / 4 + 0 + 2 / 3) / 3),
        2: pytest.approx((1 / 2 + 0 + 1) / 3),
        4: pytest.approx(1 / 2),
    }
    assert base.pass_tasks == {1: 3, 2: 3, 4: 2}


def test_each_number_of_an_arm_says_of_how_many_tasks_it_is_where_these_are_not_all() -> None:
    rewards = [[(1, 1.0), 0], ["error", "error"], [None, None], [1, "error"]]
    base = results({"base": sampled(BASE, rewards)}, (BASE,), told(4))[0]
    assert (base.tasks, base.scored_tasks, base.content_tasks, base.pass_tasks) == (4, 2, 1, {1: 2, 2: 1})
    assert (base.seed_tasks, base.domain_tasks) == ({0: 2}, {"d": 2})
    assert [base.of(n) for n in (base.scored_tasks, base.pass_tasks[2], base.tasks)] == [
        " (n 2)",
        " (n 1)",
        "",
    ]
    assert base.partly
    whole = results({"base": sampled(BASE, [[1, 0], [0, 0]])}, (BASE,), told(2))[0]
    assert not whole.partly


def test_the_accuracy_by_right_answer_is_of_the_tasks_that_were_scored() -> None:
    answers = ["yes", "no"] * 4
    both = {
        "base": sampled(BASE, [[1, 1]] * 8),
        "other": sampled(OTHER, [["error", "error"], [1, 1], *[[1, 1]] * 6]),
    }
    rows = compare(both, OTHER, BASE, told(8, answers)).labels
    assert [(r.label, r.tasks, r.baseline_tasks, r.arm_tasks) for r in rows] == [
        ("no", 4, 4, 4),
        ("yes", 4, 4, 3),
    ]


def test_a_reward_that_is_a_success_is_a_number() -> None:
    for threshold in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(InputError, match=r"--success"):
            replace(told(1), threshold=threshold)


def test_the_most_frequent_reasons_why_rollouts_broke_off_are_told_with_the_rest() -> None:
    why = ["timed out."] * 3 + ["refused"] * 2 + ["a", "b", "c"]
    found = Sampled(BASE)
    found.groups["t0"][0] = [outcome("t0", "error")._replace(why=one) for one in why]
    base = results({"base": found}, (BASE,), told(1))[0]
    assert base.why == "3 × timed out; 2 × refused; 1 × a; 2 × another reason"


def test_what_took_tokens_and_cost_nothing_has_no_price_unless_the_embedded_model_was_asked() -> None:
    arms = {"base": sampled(BASE, [[1, 0]])}
    assert not results(arms, (BASE,), told(1))[0].priced
    assert results(arms, (BASE,), replace(told(1), free=True))[0].priced


def test_a_total_that_rose_while_content_fell_is_flagged() -> None:
    both = {
        "base": sampled(BASE, [[(0.5, 1.0), (0.5, 1.0)]] * 6),
        "other": sampled(OTHER, [[(0.75, 0.5), (0.75, 0.5)]] * 6),
    }
    found = compare(both, OTHER, BASE, told(6))
    assert found.content is not None
    assert found.content.mean == -0.5
    assert "rose by +0.250 while the right content fell by -0.500" in found.flags[0]
    back = compare(both, BASE, OTHER, told(6))
    assert back.flags == ()


def test_a_change_too_small_to_print_is_not_flagged() -> None:
    both = {
        "base": sampled(BASE, [[(0.5, 1.0), (0.5, 1.0)]] * 6),
        "other": sampled(OTHER, [[(0.5004, 0.9996), (0.5004, 0.9996)]] * 6),
    }
    assert compare(both, OTHER, BASE, told(6)).flags == ()


def test_a_collapse_to_one_answer_shows_by_label_and_by_answer() -> None:
    answers = ["positive", "negative"] * 4
    both = {
        "base": sampled(BASE, [[0.5, 0.5]] * 8, ["positive", "negative"] * 4),
        "other": sampled(OTHER, [[1, 1], [0.2, 0.2]] * 4, ["positive"] * 8),
    }
    found = compare(both, OTHER, BASE, told(8, answers))
    assert found.effect.mean is not None
    assert found.effect.mean > 0
    by_label = {row.label: (row.tasks, row.baseline, row.arm) for row in found.labels}
    assert by_label == {"negative": (4, 0.5, pytest.approx(0.2)), "positive": (4, 0.5, 1.0)}
    assert any("'negative' fell from 0.50 to 0.20" in flag for flag in found.flags)
    assert any("100% of the replies are 'positive'" in flag for flag in found.flags)


def test_domains_whose_answers_all_differ_have_no_labels() -> None:
    both = {"base": sampled(BASE, [[0.0]] * 8), "other": sampled(OTHER, [[1.0]] * 8)}
    assert compare(both, OTHER, BASE, told(8)).labels == ()


def test_all_alike_gives_an_interval_that_is_no_point() -> None:
    both = {"base": sampled(BASE, [[1.0]] * 10), "other": sampled(OTHER, [[1.0]] * 10)}
    effect = compare(both, OTHER, BASE, told(10)).effect
    assert effect.mean == 0
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < 0 < effect.high


def test_looks_are_planned_in_the_tasks_of_the_pair() -> None:
    order = [f"t{i}" for i in range(20)]
    assert planned(order, order, 8) == [8, 16, 20]
    assert planned(order, order[10:], 8) == [6, 10]
    assert planned(order, [], 8) == []


def test_a_look_is_taken_only_at_what_is_finished_and_the_first_that_crosses_is_the_last() -> None:
    order = [f"t{i}" for i in range(40)]
    ours: Values = dict.fromkeys(order, 1.0)
    theirs: Values = dict.fromkeys(order, 0.0)
    plan = planned(order, order, 10)
    assert looks(order, plan, ours, theirs, 0.05, 9) == []
    taken = looks(order, plan, ours, theirs, 0.05, 40)
    assert [look.stopped for look in taken][-1]
    assert len(taken) < 4
    assert all(look.p_over_looks is None for look in taken[:-1])
    assert (taken[-1].p or 0.0) <= (taken[-1].p_over_looks or 0.0) <= 0.05
    alike = looks(order, plan, ours, ours, 0.05, 40)
    assert alike[-1].p_over_looks == 1.0
    assert [look.tasks for look in alike] == [10, 20, 30, 40]
    assert not any(look.stopped for look in alike)


def test_only_the_hopeless_are_stopped_before_the_gate_and_never_one_that_would_pass() -> None:
    order = [f"t{i}" for i in range(40)]
    plan = planned(order, order, 10)
    better = {t: float(i % 3 > 0) for i, t in enumerate(order)}
    worse: Values = {t: float(i % 3 == 0) for i, t in enumerate(order)}
    passing = hopeless_looks(order, plan, better, worse, 40)
    assert [look.tasks for look in passing] == [20, 30, 40]
    assert not any(look.stopped for look in passing)
    hopeless = hopeless_looks(order, plan, worse, better, 40)
    assert hopeless[-1].stopped
    assert hopeless[-1].tasks < 40
    assert hopeless_looks(order, plan, worse, better, 9) == []


def test_stopping_the_hopeless_lets_no_more_lessons_through_than_the_test_at_the_end() -> None:
    order, rng = [f"t{i}" for i in range(40)], random.Random(5)
    stopped_in_vain = passed = stopped = 0
    for _ in range(300):
        effect = rng.choice((0.0, 0.2))
        ours: Values = {t: float(rng.random() < 0.4 + effect) for t in order}
        theirs: Values = {t: float(rng.random() < 0.4) for t in order}
        at_the_end = (paired(list(ours.values()), list(theirs.values())).p_greater or 1.0) <= 0.10
        early = any(
            look.stopped for look in hopeless_looks(order, planned(order, order, 10), ours, theirs, 40)
        )
        passed += at_the_end
        stopped += early
        stopped_in_vain += early and at_the_end
    assert stopped > 60
    assert stopped_in_vain <= 0.05 * passed
