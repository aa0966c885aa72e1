"""The planted lessons: the effect is what it says, decoys move nothing, and texts are judged by what they say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from statistics import fmean

import pytest

from core.experience import GENERAL, Add
from core.extraction.draft import Draft, Outcome
from core.rollout import Group, Score, Task
from core.settings import RewardConfig
from core.settling import settle
from core.words import count_words
from tests.bench.learning import Extractor, Measured, evidence, measure, trials
from tests.bench.planted import KINDS, Agent, Domain, domains, groups, judge

TASKS = 200


def by_name(name: str) -> Domain:
    return next(d for d in domains() if d.name == name)


def test_there_are_twenty_habits_and_twenty_decoys_of_five_kinds_each_and_never_two_of_a_kind() -> None:
    every = domains()
    assert len({d.name for d in every}) == 20
    assert Counter(d.planted.kind for d in every) == dict.fromkeys(KINDS, 4)
    assert Counter(d.decoy.kind for d in every) == dict.fromkeys(KINDS, 4)
    assert len({d.decoy.what for d in every}) == 20
    assert all(d.planted.kind != d.decoy.kind for d in every)
    assert Counter((d.decoy.kind, d.with_difficulty) for d in every) == {
        (kind, hard): 2 for kind in KINDS for hard in (False, True)
    }


def won(agent: Agent, planted: bool | None = None, decoy: bool | None = None) -> float:
    arm = f"{planted} {decoy}"
    return fmean(
        agent.attempt(agent.task(n), i, planted, decoy, arm=arm)[1] for n in range(TASKS) for i in range(8)
    )


@pytest.mark.parametrize("name", ["invoices", "ledgers", "queries", "ships"])
def test_who_follows_the_planted_habit_wins_more_often_by_the_effect(name: str) -> None:
    agent = Agent(by_name(name), 0.3, seed=1)
    assert won(agent, planted=True) - won(agent, planted=False) == pytest.approx(0.3, abs=0.04)


def test_after_an_error_the_effect_holds_for_those_who_met_it() -> None:
    agent = Agent(by_name("records"), 0.4, seed=1)
    met: dict[bool, list[float]] = {True: [], False: []}
    for n in range(TASKS):
        for i in range(8):
            for follows in (True, False):
                trajectory, reward = agent.attempt(agent.task(n), i, follows)
                if any(s.success is False for s in trajectory.steps):
                    met[follows].append(reward)
    assert fmean(met[True]) - fmean(met[False]) == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("name", ["invoices", "mail", "ships", "plants", "folders"])
def test_a_decoy_moves_nothing(name: str) -> None:
    agent = Agent(by_name(name), 0.3, seed=2)
    assert won(agent, decoy=True) - won(agent, decoy=False) == pytest.approx(0, abs=0.04)


def test_half_of_the_decoys_come_with_hard_tasks() -> None:
    """Over all tasks they look harmful; within a task they are not."""
    for name, hard in (("payroll", True), ("invoices", False)):
        domain = by_name(name)
        assert domain.with_difficulty is hard
        agent = Agent(domain, 0.0, seed=3)
        shown: dict[bool, list[float]] = {True: [], False: []}
        for n in range(TASKS):
            task = agent.task(n)
            for i in range(8):
                decoy = agent.attempt(task, i)[0].steps
                names = [s.tool for s in decoy]
                follows = (
                    "list_clocks" in names
                    if hard
                    else names.index("load_glossary") < names.index("load_calendar")
                )
                shown[follows].append(agent.base(task))
        gap = fmean(shown[True]) - fmean(shown[False])
        assert gap < -0.03 if hard else abs(gap) < 0.02


def test_the_same_seed_makes_the_same_groups_and_another_seed_others() -> None:
    first = [group.canonical() for _, group in groups(0.3, 5, tasks=2, size=3)]
    assert first == [group.canonical() for _, group in groups(0.3, 5, tasks=2, size=3)]
    assert first != [group.canonical() for _, group in groups(0.3, 6, tasks=2, size=3)]


SAID = {
    "invoices": ("use `parse_table`.", "use `read_text`."),
    "journals": ("do not use `tail_lines`.", "do not use `grep_lines`."),
    "maps": ("finish with `lookup_gazetteer`.", "start with `web_search`."),
    "payroll": ("use `calculator`.", "do not use `calculator`."),
    "stock": ("call `check_shelf` before `reserve_item`.", "call `reserve_item` before `check_shelf`."),
    "reports": ("call `run_report` right after `read_schema`.", "call `run_report` first."),
    "freight": ("finish with `sum_column`.", "finish with `convert_units`."),
    "ledgers": (
        "check the result with another call after the last change.",
        "call `verify_total` before `post_entry`.",
    ),
    "mail": ("call `search_mail` with `scope=all`.", "call `search_mail` with `scope=inbox`."),
    "queries": ("pass `strict` when calling `run_query`.", "leave out `strict` when calling `run_query`."),
    "rates": ("do not call `fetch_rates` with `limit=10`.", "do not call `fetch_rates` with `limit=100`."),
    "images": ("call `measure_image` with `mode=exact`.", "call `measure_image` with `mode=fast`."),
    "stations": (
        "answer with one word: no full sentence.",
        "answer in one short sentence that repeats the words of the question.",
    ),
    "plants": ("end the answer without a period.", "end the answer with a period."),
    "ships": ("answer with the JSON alone.", "answer in a sentence."),
    "exhibits": ("give the answer without an explanation.", "add a short reason after the answer."),
    "pages": ("try the same call once more before changing the plan.", "use another tool instead."),
    "records": ("correct the parameters and call it again.", "try the same call once more."),
    "folders": ("call `list_folders` instead.", "try the same call once more."),
    "exports": ("do not stop; correct the parameters or use another tool.", ""),
}


@pytest.mark.parametrize("name", [d.name for d in domains()])
def test_texts_are_judged_by_what_they_advise(name: str) -> None:
    habit = by_name(name).planted
    right, wrong = (f"In {name} tasks, {text}" for text in SAID[name])
    assert habit.verdict(right) == 1
    assert habit.verdict(wrong) == -1 or name == "exports"
    assert habit.verdict("In these tasks, call `jot_down` first.") == 0
    assert count_words(right) <= 32


def test_all_that_is_true_is_found_and_nothing_is_false() -> None:
    judged = judge([(name, f"In {name} tasks, {right}") for name, (right, _) in SAID.items()])
    assert (judged.recall, judged.precision, judged.proposed) == (1.0, 1.0, 20)


def test_decoys_opposites_and_chatter_are_false() -> None:
    lessons = [(n, f"In {n} tasks, {wrong}") for n, (_, wrong) in SAID.items() if wrong]
    lessons += [("invoices", "Call `load_glossary` before `load_calendar`."), ("mail", "Be careful.")]
    judged = judge(lessons)
    assert (judged.recall, judged.precision, len(judged.false)) == (0.0, 0.0, 21)


def test_a_lesson_for_all_domains_must_be_wrong_for_none() -> None:
    """Retrying is right after a time-out, and wrong after a bad key."""
    assert judge([(GENERAL, "When a call fails, try the same call once more.")]).found == {}
    harmless = judge([(GENERAL, "When a call fails, do not stop.")])
    assert (list(harmless.found), harmless.proposed, harmless.precision) == (["exports"], 1, 1.0)


def test_who_proposes_nothing_has_no_precision() -> None:
    judged = judge([])
    assert (judged.recall, judged.precision) == (0.0, None)


# --- the benchmark itself ---------------------------------------------------------------------------------


def small(extractor: Extractor) -> Measured:
    return measure(0.5, (7,), extractor, tasks=12, size=8)


@pytest.mark.slow
def test_the_evidence_finds_most_of_strong_habits_in_few_tasks() -> None:
    measured = small(evidence)
    assert measured.recall >= 0.6
    assert (measured.precision or 0) >= 0.7


@pytest.mark.slow
def test_an_extractor_that_takes_losers_for_winners_is_seen_to_be_broken() -> None:
    def turned(batch: Iterable[tuple[Task, Group]], seed: int) -> Outcome:
        return evidence(((task, settled(group, lambda r: 1 - r)) for task, group in batch), seed)

    measured = small(turned)
    assert measured.recall <= 0.1
    assert sum(len(j.false) for j in measured.batches) > 5


@pytest.mark.slow
def test_an_extractor_that_does_not_look_at_rewards_is_seen_to_be_broken() -> None:
    rng = random.Random(1)

    def blind(batch: Iterable[tuple[Task, Group]], seed: int) -> Outcome:
        return evidence(
            ((task, settled(group, lambda r: float(rng.random() < 0.5))) for task, group in batch), seed
        )

    assert small(blind).recall <= 0.1


def test_an_extractor_that_advises_the_decoys_is_seen_to_be_broken() -> None:
    def fooled(batch: Iterable[tuple[Task, Group]], seed: int) -> Outcome:
        texts = [(d.name, f"Use `{d.decoy.what.split()[-1]}`.") for d in domains()]
        return Outcome(drafts=tuple(Draft(operation=Add(text=text, domain=name)) for name, text in texts))

    measured = measure(0.5, (7,), fooled, tasks=1, size=2)
    assert (measured.recall, measured.precision) == (0.0, 0.0)


def test_the_gate_lets_strong_habits_pass_and_few_decoys() -> None:
    gated = trials(0.5, 4, (7,))
    assert gated.recall >= 0.8
    assert gated.decoys <= 4


def test_of_two_names_for_one_habit_the_simpler_is_said() -> None:
    """What mostly follows on a call goes with it, and by luck a little more."""
    said = []
    for seed in range(201, 207):
        agent = Agent(by_name("freight"), 0.4, seed)
        said += [str(d.text) for d in evidence((agent.group(n, 8) for n in range(40)), seed).drafts]
    assert sum("`convert_units`" in text for text in said) >= 5
    assert not any("warm_cache" in text for text in said)


def settled(group: Group, reward: Callable[[float], float]) -> Group:
    rollouts = tuple(
        r.model_copy(update={"scores": {"text": Score(value=reward(r.reward or 0.0))}})
        for r in group.rollouts
    )
    return settle(group.model_copy(update={"rollouts": rollouts}), RewardConfig())
