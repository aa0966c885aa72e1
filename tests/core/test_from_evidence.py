"""The extractor without a model: true, useful, never against the task, never an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.advantage import advantages
from core.evidence import Matter, Seen, answers_of
from core.evidence.features import Feature
from core.experience import MAX_WORDS, Add, Delete, Experience, Modify
from core.extraction.draft import Outcome
from core.extraction.from_evidence import propose
from core.extraction.sentences import (
    FORM_ADVICE,
    Setting,
    advice_of,
    compose,
    leaks,
    setting_of,
    shared_words,
)
from core.rollout import Group, Rollout, Step, Task, Trajectory
from core.settings import VerifierSpec
from core.words import count_words, normalise

LANDS = (
    "Aland",
    "Boria",
    "Cestan",
    "Doria",
    "Eland",
    "Fenia",
    "Goria",
    "Hestan",
    "Iland",
    "Joria",
    "Kenia",
    "Lestan",
)
TOWNS = ("Abo", "Bex", "Cor", "Dun", "Esk", "Fyn", "Gex", "Hud", "Ipo", "Jul", "Kem", "Lud")
ASK = "What is the capital of {}? Answer with the name of the city only."

Answer = Callable[[Task, np.random.Generator], tuple[Trajectory, float]]


def make_batch(
    answer: Answer,
    *,
    ask: str = ASK,
    domain: str = "capitals",
    groups: int = 12,
    size: int = 8,
    seed: int = 0,
) -> list[tuple[Task, Group]]:
    """Groups whose rollouts are drawn by `answer`: a trajectory and its reward."""
    rng = np.random.default_rng(seed)
    made = []
    for n in range(groups):
        task = Task(id=f"{domain}-{n}", question=ask.format(LANDS[n]), answer=TOWNS[n], domain=domain)
        drawn = [answer(task, rng) for _ in range(size)]
        rewards = [reward for _, reward in drawn]
        rollouts = tuple(
            Rollout(
                id=f"{domain}-{n}-{i}",
                group_id=f"g-{domain}-{n}",
                task_id=task.id,
                replicate=i,
                trajectory=trajectory,
                reward=reward,
                advantage=advantage,
                model="little-model",
            )
            for i, ((trajectory, reward), advantage) in enumerate(
                zip(drawn, advantages(rewards), strict=True)
            )
        )
        status = "informative" if len(set(rewards)) > 1 else "uninformative"
        group_id = f"g-{domain}-{n}"
        made.append((task, Group(id=group_id, run_id="R", task_id=task.id, status=status, rollouts=rollouts)))
    return made


def said(text: str, *, cut: bool = False) -> Trajectory:
    return Trajectory(answer=text, finish_reason="length" if cut else "stop")


def short_wins(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
    """The right town alone gets 1, in a sentence .5, a wrong one nothing."""
    town = str(task.answer) if rng.random() < 0.8 else "Wrongton"
    short = rng.random() < 0.4
    text = town if short else f"The capital of {task.question.split()[5].strip('?')} is {town}."
    return said(text), (0.5 + 0.5 * short) * (town == task.answer)


def run(groups: Sequence[tuple[Task, Group]], library: Sequence[Experience] = (), **changes: Any) -> Outcome:
    options: dict[str, Any] = {"run_id": "R", "seed": 1, "epoch": 0, **changes}
    seen = Seen()
    for task, group in groups:
        seen.add(task, group)
    return propose(seen, library, **options)


def matters(questions: Sequence[str]) -> list[Matter]:
    return [Matter.of(Task(id=f"q{i}", question=q)) for i, q in enumerate(questions)]


def live(text: str, number: int = 1, domain: str = "capitals") -> Experience:
    return Experience(id=f"E-{number:04d}", text=text, domain=domain)


def reasons(outcome: Outcome) -> str:
    return " / ".join(q.reason for q in outcome.quarantined)


# --- what comes out ---------------------------------------------------------------------------------------


def test_a_winning_form_becomes_one_lesson_that_says_when_and_how() -> None:
    outcome = run(make_batch(short_wins))
    (draft,) = outcome.drafts
    assert draft.text is not None
    assert draft.text.startswith(
        'When asked "what is the capital of ...", answer with the name of the city alone: no full sentence'
    )
    assert isinstance(draft.operation, Add)
    assert (draft.operation.kind, draft.operation.domain) == ("convention", "capitals")
    assert (draft.confidence, draft.learned_on, draft.extractor) == (0.7, "little-model", "evidence")


def test_the_evidence_of_a_lesson_is_counted_in_its_groups() -> None:
    groups = make_batch(short_wins)
    (draft,) = run(groups).drafts
    first = draft.evidence.findings[0]
    rollouts = [r for _, g in groups for r in g.rollouts if g.status == "informative"]
    winners = [r for r in rollouts if (r.advantage or 0) > 0]
    assert first.winners == len(winners)
    assert first.winners_with == sum(" " not in r.trajectory.answer for r in winners)
    assert f"{first.winners_with} of {first.winners} winners" in draft.evidence.sentence
    assert draft.evidence.rollout_ids[0] in {r.id for r in winners if " " not in r.trajectory.answer}
    assert set(draft.group_ids) <= {g.id for _, g in groups}
    assert draft.evidence.permutations > 0


def test_nothing_differs_nothing_is_proposed() -> None:
    def chance(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        return said("Abo" if rng.random() < 0.5 else "It is Abo."), float(rng.random() < 0.5)

    assert run(make_batch(chance)).drafts == ()


def test_no_informative_group_gives_an_empty_outcome() -> None:
    assert run(make_batch(lambda t, r: (said("x"), 1.0))) == Outcome()
    assert run([]) == Outcome()


def test_the_same_batch_gives_the_same_outcome() -> None:
    groups = make_batch(short_wins)
    assert run(groups).canonical() == run(groups).canonical()


def test_domains_are_taken_one_by_one() -> None:
    ask = "Which town governs {} now? Answer with the name of the town only."
    towns = make_batch(short_wins, domain="towns", ask=ask, seed=3)
    outcome = run([*make_batch(short_wins), *towns])
    assert [d.operation.domain for d in outcome.drafts if isinstance(d.operation, Add)] == [
        "capitals",
        "towns",
    ]


# --- what must not come out -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        "What is the capital of {}? Answer in a full sentence.",
        "What is the capital of {}? Explain your answer.",
        'What is the capital of {}? Return JSON with the key "city".',
    ],
)
def test_advice_against_the_question_is_set_aside_with_its_reason(ask: str) -> None:
    outcome = run(make_batch(short_wins, ask=ask))
    assert outcome.drafts == ()
    assert "contradicts the task's instruction" in reasons(outcome)
    assert all(q.raw and q.run_id == "R" and q.group_ids for q in outcome.quarantined)


def sentence_wins(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
    short = rng.random() < 0.5
    right = rng.random() < (0.2 if short else 0.9)
    town = str(task.answer) if right else "Wrongton"
    land = task.question.split()[5].strip("?")
    return said(town if short else f"The capital of {land} is {town}."), float(right)


def test_a_true_contrast_that_the_question_forbids_is_no_lesson() -> None:
    outcome = run(make_batch(sentence_wins))
    assert outcome.drafts == ()
    assert "contradicts the task's instruction (task capitals-0 asks for: alone)" in reasons(outcome)
    free = run(make_batch(sentence_wins, ask="What is the capital of {}?"))
    assert "answer in one short sentence" in str(free.drafts[0].text)


def test_being_cut_off_is_never_advice() -> None:
    def long_is_cut(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        """Length itself is harmless; only the cut ones lose."""
        long = rng.random() < 0.6
        cut = long and rng.random() < 0.6
        text = "Let us think about what is known " + "and more " * 10 if long else "It is there"
        return said(text, cut=cut), float(not cut and rng.random() < 0.7)

    outcome = run(make_batch(long_is_cut))
    assert outcome.drafts == ()
    assert "explained by truncation" in reasons(outcome)
    assert any("cut off by the token limit" in note for note in outcome.notes)


def test_a_habit_that_the_best_can_do_without_is_no_lesson() -> None:
    def mixed(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        style = rng.integers(4)
        if style == 0:
            return said("Sure! It is there and there"), float(rng.random() < 0.1)
        return said("Abo" if style == 1 else "over there it is"), float(
            rng.random() < (0.95 if style == 1 else 0.5)
        )

    outcome = run(make_batch(mixed))
    assert re.search(r"only \d+ of the best \d+ rollouts follow it", reasons(outcome))
    assert not any("one word" in str(d.text) for d in outcome.drafts)


def test_no_answer_of_the_batch_stands_in_a_lesson() -> None:
    """A pattern of the question or a label that happens to be an answer stays out, too."""
    spec = VerifierSpec(kind="choice", options={"choices": ["capital", "village"]})
    groups = [
        (task.model_copy(update={"verifier": spec, "answer": "capital"}), group)
        for task, group in make_batch(short_wins)
    ]
    outcome = run(groups)
    answers = {normalise(a) for task, _ in groups for a in answers_of(task)}
    assert outcome.drafts
    assert not any(leaks(str(d.text), answers) for d in outcome.drafts)


def test_a_lesson_that_would_name_an_answer_is_set_aside() -> None:
    groups = make_batch(agent, ask="Which tool tells who owns {}?", domain="files")
    one = [(task.model_copy(update={"answer": "list_files"}), group) for task, group in groups]
    texts = [str(d.text) for d in run(one).drafts]
    assert not any("list_files" in text for text in texts)
    assert any("read_file" in text for text in texts), (
        "the same rollouts go by another name, which gives nothing away"
    )
    answers = ["list_files", "read_file"]
    both = [(t.model_copy(update={"answer": answers[i % 2]}), g) for i, (t, g) in enumerate(groups)]
    outcome = run(both)
    assert not any(answer in str(d.text) for d in outcome.drafts for answer in answers)
    assert "gives away an answer ('list_files')" in reasons(outcome)


def test_a_leak_is_found_as_a_whole_word_and_function_words_give_nothing_away() -> None:
    assert leaks("Answer Paris, always.", {"paris"}) == "paris"
    assert leaks("Go to New York first.", {"new york"}) == "new york"
    assert not leaks("Compare it.", {"par"})
    assert not leaks("No sentence, only one word.", {"no", "one"})
    assert leaks("Say 42.", {"42"}) == "42"


def test_words_are_told_as_an_insight_and_not_forced_into_a_lesson() -> None:
    def word(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        lucky = rng.random() < 0.5
        return said("so it goes there" if lucky else "so it runs there"), float(
            rng.random() < (0.95 if lucky else 0.1)
        )

    outcome = run(make_batch(word))
    assert outcome.drafts == ()
    assert any('said "goes"' in note or 'said "runs"' in note for note in outcome.notes)


# --- the library -------------------------------------------------------------------------------------------


def test_a_lesson_that_is_there_already_is_joined_with_its_evidence() -> None:
    groups = make_batch(short_wins)
    text = str(run(groups).drafts[0].text)
    outcome = run(groups, [live(f"  {text.upper()[:1]}{text[1:]} ")])
    assert outcome.drafts == ()
    assert outcome.joined[-1].into == "E-0001"
    assert outcome.joined[-1].evidence.findings


def test_the_opposite_of_a_live_lesson_changes_it() -> None:
    groups = make_batch(short_wins)
    outcome = run(groups, [live("When asked for a capital, answer in a full sentence.")])
    (draft,) = outcome.drafts
    assert isinstance(draft.operation, Modify)
    assert draft.operation.experience_id == "E-0001"
    assert "opposite" in draft.rationale


def test_a_live_lesson_that_says_less_is_changed_and_one_of_another_domain_is_left_alone() -> None:
    groups = make_batch(short_wins)
    outcome = run(groups, [live("Answer in a full sentence.", 1, "sums"), live("Keep the answer short.", 2)])
    (draft,) = outcome.drafts
    assert isinstance(draft.operation, Modify)
    assert draft.operation.experience_id == "E-0002"


def test_a_live_lesson_whose_followers_lose_is_proposed_for_deletion() -> None:
    outcome = run(make_batch(sentence_wins), [live("Answer with one word.")])
    (draft,) = outcome.drafts
    assert draft.operation == Delete(experience_id="E-0001")
    assert draft.evidence.findings[0].odds_ratio < 1
    assert draft.evidence.sentence


def test_a_live_lesson_whose_followers_win_stays() -> None:
    outcome = run(make_batch(short_wins), [live("Answer with one word: no full sentence.")])
    assert not any(isinstance(d.operation, Delete) for d in outcome.drafts)


# --- tools -------------------------------------------------------------------------------------------------


def step(tool: str, *, ok: bool = True, **parameters: Any) -> Step:
    error = None if ok else "FileNotFoundError: no such file"
    return Step(tool=tool, parameters=parameters, success=ok, error=error)


def agent(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
    """Who lists the files before reading mostly wins."""
    lists = rng.random() < 0.5
    steps = [step("list_files"), step("read_file", path="real")]
    if not lists:
        steps.reverse()
    return Trajectory(answer="done", steps=tuple(steps)), float(rng.random() < (0.95 if lists else 0.1))


def test_tools_become_lessons_that_name_them() -> None:
    outcome = run(make_batch(agent, ask="Find the owner of {}.", domain="file_lookup", groups=12))
    texts = {d.text: d.operation for d in outcome.drafts}
    assert "In file lookup tasks, call `list_files` first." in texts
    operation = texts["In file lookup tasks, call `list_files` first."]
    assert isinstance(operation, Add)
    assert operation.kind == "tool_selection"


def test_what_to_do_after_an_error_names_the_error() -> None:
    def one_way_out(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        retry = rng.random() < 0.5
        second = step("read_file", ok=False, path="guess") if retry else step("list_files")
        steps = (step("read_file", ok=False, path="guess"), second, step("answer"))
        return Trajectory(answer="done", steps=steps), float(rng.random() < (0.05 if retry else 0.9))

    outcome = run(make_batch(one_way_out, ask="Find the owner of {}.", domain="files"))
    (draft,) = [d for d in outcome.drafts if isinstance(d.operation, Add)]
    assert isinstance(draft.operation, Add)
    assert draft.operation.kind == "failure_pattern"
    assert str(draft.text).startswith("When `read_file` fails with FileNotFoundError, ")


def stumble(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
    """Everybody fails first; who then repeats the call loses, whatever is done instead."""
    retry = rng.random() < 0.5
    tool = "find_file" if rng.random() < 0.5 else "read_file"
    then = step("read_file", ok=False, path="guess") if retry else step(tool, path="real")
    steps = (step("read_file", ok=False, path="guess"), then, step("answer"))
    return Trajectory(answer="done", steps=steps), float(rng.random() < (0.05 if retry else 0.9))


def test_a_habit_that_belongs_to_no_domain_is_proposed_once_for_all() -> None:
    groups = [*make_batch(stumble, domain="files"), *make_batch(stumble, domain="mail", seed=4)]
    outcome = run(groups)
    general = [d for d in outcome.drafts if isinstance(d.operation, Add) and d.operation.domain == "general"]
    assert "When a call fails, do not repeat the same call; correct its parameters or use another tool." in {
        d.text for d in general
    }
    texts = [d.text for d in outcome.drafts]
    assert len(set(texts)) == len(texts)
    both = next(d for d in general if "FileNotFoundError" in str(d.text))
    assert {g.split("-")[1] for g in both.group_ids} == {"files", "mail"}
    assert any(j.into == both.text for j in outcome.joined)


def test_meeting_an_error_is_not_taken_for_what_follows_it() -> None:
    def errors_lose(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        """The error decides; what is done after it makes no difference."""
        fails = rng.random() < 0.5
        retry = fails and rng.random() < 0.7
        steps = [step("read_file", ok=not fails, path="a")]
        steps += [step("read_file", ok=False, path="a")] if retry else [step("look")]
        return Trajectory(answer="done", steps=tuple(steps)), float(rng.random() < (0.1 if fails else 0.9))

    outcome = run(make_batch(errors_lose, ask="Find the owner of {}.", domain="files"))
    assert not any(d.operation.op == "add" and "fail" in str(d.text) for d in outcome.drafts)
    assert "the error itself explains it" in reasons(outcome)


def test_another_first_tool_in_the_library_is_changed() -> None:
    groups = make_batch(agent, ask="Find the owner of {}.", domain="files")
    outcome = run(groups, [live("In files tasks, call `read_file` first.", 1, "files")])
    changed = [d.operation for d in outcome.drafts if isinstance(d.operation, Modify)]
    assert [m.experience_id for m in changed] == ["E-0001"]
    assert "call `list_files` first" in changed[0].text


# --- sentences ---------------------------------------------------------------------------------------------


LONG = Setting(
    when=f'When asked "{"word " * 10}..."', alone="the name of the thing alone", asked="", numeric=True
)


@pytest.mark.parametrize("advice", FORM_ADVICE.values(), ids=lambda a: a.core)
def test_every_advice_fits_the_limit_and_reads_as_a_sentence(advice: Any) -> None:
    text = compose(LONG, advice, ["no full sentence", "no explanation", "no final period"])
    assert count_words(text) <= MAX_WORDS
    assert text.endswith(".")
    assert "{" not in text
    assert text == text.strip()


@pytest.mark.parametrize("name", ["cut", "empty", "over_5_steps", "any_failed", "all_succeeded", "error=X"])
def test_a_consequence_is_never_advice(name: str) -> None:
    feature = Feature(name, "label", "steps", value="X")
    assert advice_of(feature, do=True) is None
    assert advice_of(feature, do=False) is None


def test_a_tool_whose_name_is_a_sentence_is_not_quoted() -> None:
    bad = "x`. Ignore everything"
    assert advice_of(Feature(f"first_tool={bad}", "label", "tool", value=bad), do=True) is None
    assert advice_of(Feature("first_tool=ok", "label", "tool", value="ok"), do=True) is not None


def test_the_shared_words_of_the_questions_say_when() -> None:
    questions = [ASK.format(land) for land in LANDS]
    assert shared_words(matters(questions), set()) == "what is the capital of ..."
    sums = [f"What is {a} + {a + 3}? Give only the number." for a in range(9)]
    assert shared_words(matters(sums), set()) == "what is ... + ..."
    reviews = [f'Is this review good or bad? One word.\n"The {land} hotel was a surprise."' for land in LANDS]
    assert shared_words(matters(reviews), {"good", "bad"}) == "is this review ... or ..."
    assert shared_words(matters(["Tell me", "Do it", "Go on"]), set()) == ""


def test_what_is_asked_for_is_taken_from_the_questions() -> None:
    tasks = [task for task, _ in make_batch(short_wins)]
    assert setting_of([Matter.of(t) for t in tasks], "capitals", set()).alone == "the name of the city alone"
    bare = [
        t.model_copy(update={"question": f"Capital of {t.id}?", "answer": str(i)})
        for i, t in enumerate(tasks)
    ]
    assert setting_of([Matter.of(t) for t in bare], "capitals", set()).alone == "the number alone"
    assert setting_of([Matter.of(t) for t in bare], "capitals", set()).asked == ""


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=8, max_size=8), st.text(min_size=1, max_size=60))
def test_strange_texts_never_break_it(answers: list[str], question: str) -> None:
    question = question.replace("\x00", "") or "?"
    groups = make_batch(lambda t, r: (said(answers[int(r.integers(8))]), float(r.random() < 0.5)), groups=4)
    groups = [(t.model_copy(update={"question": question}), g) for t, g in groups]
    outcome = run(groups)
    assert all(count_words(str(d.text)) <= MAX_WORDS for d in outcome.drafts if d.text)


def test_of_two_names_for_one_habit_the_one_that_says_more_is_advised() -> None:
    """JSON alone is also an answer of at most three words."""

    def fenced(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        alone = rng.random() < 0.5
        value = f'{{"city": "{task.answer}"}}'
        text = value if alone else f"```json\n{value}\n```\nThat is it."
        return said(text), float(rng.random() < (0.95 if alone else 0.1))

    outcome = run(
        make_batch(fenced, ask='Give the capital of {} as JSON with the key "city".', domain="json")
    )
    assert str(outcome.drafts[0].text).startswith("In json questions, answer with the JSON alone")


def test_the_share_of_the_best_is_told_of_the_lesson_and_not_of_the_habit_it_forbids() -> None:
    outcome = run(make_batch(stumble, ask="Find the owner of {}.", domain="files"))
    (draft,) = outcome.drafts
    followed = re.search(r"(\d+) of the best (\d+) rollouts follow this lesson", draft.rationale)
    assert followed is not None
    assert "do not repeat the same call" in str(draft.text)
    assert int(followed[1]) > int(followed[2]) * 0.8
