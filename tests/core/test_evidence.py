"""Evidence: what is counted, and that chance alone seldom finds anything."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from core.evidence import Contrast, Seen, Table, describe_group, error_signature, sentence_of
from core.evidence import contrast as contrast_table
from core.evidence.answer_features import Asked, counted_words, word_feature
from core.evidence.contrast import PERMUTATIONS
from core.evidence.features import Feature
from core.evidence.instructions import Instruction, conflicts, read_instruction
from core.evidence.seen import features_of
from core.experience import Finding
from core.rollout import Group, Rollout, Step, Task, Trajectory
from core.settings import VerifierSpec


def make_task(number: int = 0, **changes: Any) -> Task:
    fields = {
        "id": f"T{number}",
        "question": f"What is the capital of land {number}?",
        "answer": f"Town{number}",
    }
    return Task(**{**fields, **changes})


def make_rollout(
    answer: str = "", *, won: bool | None = True, steps: Sequence[Step] = (), **changes: Any
) -> Rollout:
    reward = None if won is None else float(won)
    trajectory = Trajectory(answer=answer, steps=tuple(steps), finish_reason=changes.pop("finish", "stop"))
    fields: dict[str, Any] = {
        "id": "r",
        "group_id": "g",
        "task_id": "T0",
        "replicate": 0,
        "trajectory": trajectory,
        "reward": reward,
        "advantage": None if reward is None else reward - 0.5,
    }
    return Rollout(**{**fields, **changes})


def make_group(number: int, rollouts: Sequence[Rollout], **changes: Any) -> tuple[Task, Group]:
    task = changes.pop("task", None) or make_task(number)
    own = tuple(
        r.model_copy(
            update={"id": f"G{number}-{i}", "group_id": f"G{number}", "task_id": task.id, "replicate": i}
        )
        for i, r in enumerate(rollouts)
    )
    fields: dict[str, Any] = {"id": f"G{number}", "run_id": "R", "task_id": task.id, "status": "informative"}
    return task, Group(**{**fields, "rollouts": own, **changes})


def seen(groups: Iterable[tuple[Task, Group]]) -> Seen:
    found = Seen()
    for task, group in groups:
        found.add(task, group)
    return found


def tabulate(groups: Iterable[tuple[Task, Group]]) -> Table:
    """Everything that any rollout shows."""
    return seen(groups).counts().table(least=1)


def contrast(
    groups: Iterable[tuple[Task, Group]], *, seed: int = 0, permutations: int = PERMUTATIONS
) -> Contrast:
    return contrast_table(seen(groups).counts().table(), seed=(seed,), permutations=permutations)


def features(task: Task, rollout: Rollout) -> dict[str, Feature]:
    """Of one rollout, words included, by name."""
    asked = Asked.of(task)
    words = counted_words(rollout.trajectory.answer, asked.masked)
    found = features_of(asked, rollout.trajectory)
    found += [word_feature(w) for w in (*words.singles, *(" ".join(pair) for pair in words.pairs))]
    return {f.name: f for f in found}


def names(answer: str, task: Task | None = None, **changes: Any) -> set[str]:
    return set(features(task or make_task(), make_rollout(answer, **changes)))


# --- features of answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "present", "absent"),
    [
        ("Peru", {"one_word", "up_to_3_words", "starts_capital"}, {"final_period", "restates_question"}),
        (
            "The capital of land 0 is X.",
            {"restates_question", "final_period", "opens_as_sentence"},
            {"one_word"},
        ),
        ("Sure! It is X.", {"preamble", "several_sentences"}, {"one_word", "restates_question"}),
        ("42", {"number_only", "has_number", "one_word"}, {"number_with_unit", "several_numbers"}),
        ("42.", {"number_only", "final_period"}, set()),
        ("42 apples", {"number_with_unit"}, {"number_only"}),
        ("forty-two", {"number_words"}, {"has_number"}),
        ("13 + 4 = 17", {"shows_sum", "several_numbers"}, {"number_only"}),
        ('{"city": "X"}', {"json_only", "json_other_keys"}, {"json_in_prose", "code_fence"}),
        ('Here: {"a": 1}', {"json_in_prose"}, {"json_only"}),
        ('```json\n{"a": 1}\n```', {"code_fence", "json_in_prose", "several_lines"}, {"json_only"}),
        ("maybe x or y", {"hedges", "all_lower"}, {"starts_capital"}),
        ('"X Y"', {"quoted"}, set()),
        ("I'm sorry, I cannot tell.", {"refuses"}, set()),
        ("Which one?", {"asks_back", "final_punctuation"}, {"final_period"}),
        ("- a\n- b", {"markdown", "several_lines"}, {"one_word"}),
        ("YES NOW", {"all_upper"}, {"all_lower"}),
        ("", {"empty"}, {"one_word"}),
    ],
)
def test_the_form_of_an_answer_is_seen(answer: str, present: set[str], absent: set[str]) -> None:
    found = names(answer)
    assert present <= found
    assert not absent & found


def test_a_cut_answer_is_flagged_and_its_ending_says_nothing() -> None:
    found = names("The capital.", finish="length")
    assert "cut" in found
    assert not found & {"final_period", "final_punctuation", "one_word"}


def test_keys_that_the_question_names_are_told_from_others() -> None:
    task = make_task(question='Answer as JSON with the key "city".', answer="X")
    assert "json_keys_asked" in names('{"city": "X"}', task)
    assert "json_other_keys" in names('{"town": "X"}', task)


def test_choices_are_seen_without_saying_which_one() -> None:
    spec = VerifierSpec(kind="graded", options={"content": {"options": {"choices": ["good", "bad"]}}})
    task = make_task(question="Is it good or bad?", answer="good", verifier=spec)
    assert "several_choices" in names("good but also bad", task)
    assert "outside_choices" in names("neutral", task)
    assert not {"several_choices", "outside_choices"} & names("good", task)


def test_no_word_of_an_answer_becomes_a_feature() -> None:
    spec = VerifierSpec(kind="choice", options={"choices": ["Monday", "Friday"]})
    groups = [
        make_group(0, [make_rollout("Paris, surely not Monday"), make_rollout("no", won=False)]),
        make_group(
            1,
            [make_rollout("x"), make_rollout("y", won=False)],
            task=make_task(1, answer="Paris", verifier=spec),
        ),
        make_group(
            2, [make_rollout("x"), make_rollout("y", won=False)], task=make_task(2, answer='{"city": "Oslo"}')
        ),
    ]
    columns = {f.name for f in tabulate(groups).columns}
    assert "word=surely" in columns
    assert not any(w in name for name in columns for w in ("paris", "monday", "friday", "oslo"))


@given(st.text(max_size=200))
def test_any_text_has_features_and_labels(answer: str) -> None:
    found = features(make_task(), make_rollout(answer))
    assert all(f.label and f.name == name for name, f in found.items())


# --- features of tool trajectories -----------------------------------------------------------------------


def call(tool: str, *, ok: bool | None = True, error: str | None = None, **parameters: Any) -> Step:
    return Step(tool=tool, parameters=parameters, success=ok, error=error)


def tool_names(*steps: Step) -> set[str]:
    return set(features(make_task(), make_rollout("done", steps=steps)))


def test_tools_their_order_and_parameters_are_seen() -> None:
    found = tool_names(call("read_json", path="/a/b", strict=True), call("write", mode="append"))
    assert {"tool=read_json", "first_tool=read_json", "last_tool=write"} <= found
    assert {"order=read_json>write", "before=read_json>write", "checked_before_acting"} <= found
    assert {"param=read_json.path", "param=read_json.strict=true", "param=write.mode=append"} <= found
    assert not any("/a/b" in name for name in found)


def test_a_parameter_value_that_is_an_answer_or_stands_in_the_question_is_no_feature() -> None:
    found = tool_names(call("find", city="Town0", land="land", unit="km"))
    assert "param=find.unit=km" in found
    assert not {"param=find.city=Town0", "param=find.land=land"} & found


@pytest.mark.parametrize(
    ("following", "habit"),
    [
        ((), "give_up"),
        ((call("read", path="a"),), "retry_same"),
        ((call("read", path="b"),), "fix_parameters"),
        ((call("list_files"),), "switch_tool"),
    ],
)
def test_what_follows_an_error_is_seen(following: tuple[Step, ...], habit: str) -> None:
    found = tool_names(call("read", ok=False, error="FileNotFoundError: no file 'a'", path="a"), *following)
    assert {"any_failed", "error=FileNotFoundError", f"recovery={habit}"} <= found
    after = following[0].tool if following else ""
    assert f"recovery=FileNotFoundError|read|{habit}|{after}" in found
    assert ("repeated_call" in found) == (habit == "retry_same")


def test_an_unknown_result_is_neither_success_nor_failure() -> None:
    found = tool_names(call("a", ok=None), call("b"))
    assert not found & {"all_succeeded", "any_failed"}
    assert "all_succeeded" in tool_names(call("a"), call("b"))


def test_a_secret_becomes_no_feature() -> None:
    found = tool_names(
        call("login", api_key="hunter", password="hunter"), call("x", ok=False, error="bad sk-aB3dE")
    )
    assert not any("hunter" in name or "aB3dE" in name.lower() or "ab3de" in name for name in found)
    assert "error=bad …" in found


def test_error_messages_lose_their_particulars() -> None:
    first = call("x", ok=False, error="No row 17 in '/data/a.csv'")
    second = call("x", ok=False, error="No row 4 in '/srv/b.csv'")
    assert error_signature(first) == error_signature(second) == "no row … in …"
    assert error_signature(call("x", ok=None)) is None


# --- the test ------------------------------------------------------------------------------------------


def planted(
    groups: int, *, effect: float, seed: int, size: int = 8, noise_words: int = 6
) -> list[tuple[Task, Group]]:
    """Groups in which a one-word answer wins more often by `effect`; the words are noise."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(groups):
        rollouts = []
        for _ in range(size):
            short = bool(rng.random() < 0.5)
            won = bool(rng.random() < 0.5 + (effect if short else -effect))
            words = " ".join(f"noise{chr(97 + int(i))}" for i in rng.integers(0, noise_words, 5))
            rollouts.append(make_rollout("xx" if short else f"it is {words}", won=won))
        made.append(make_group(number, rollouts))
    return made


def by_hand(groups: Sequence[tuple[Task, Group]], name: str) -> tuple[float, float]:
    """Cochran-Mantel-Haenszel p and Mantel-Haenszel odds ratio, written again with hypergeometric moments."""
    observed = expected = variance = up = down = 0.0
    for task, group in groups:
        wins = [(r.advantage or 0) > 0 for r in group.rollouts]
        holds = [name in features(task, r) for r in group.rollouts]
        n, w, m = len(wins), sum(wins), sum(holds)
        if w in (0, n):
            continue
        a = sum(x and y for x, y in zip(wins, holds, strict=True))
        k = np.arange(n + 1)
        pmf = stats.hypergeom.pmf(k, n, m, w)
        mean = k @ pmf
        var = (k - mean) ** 2 @ pmf
        observed, expected, variance = observed + a, expected + float(mean), variance + float(var)
        if 0 < m < n:
            up += (a + 0.5) * (n - w - m + a + 0.5) / (n + 2)
            down += (m - a + 0.5) * (w - a + 0.5) / (n + 2)
    z2 = max(abs(observed - expected) - 0.5, 0) ** 2 / variance
    return float(stats.chi2.sf(z2, 1)), up / down


def test_p_and_odds_ratio_agree_with_an_independent_computation() -> None:
    groups = planted(9, effect=0.2, seed=4, size=7)
    found = contrast(groups)
    assert len(found.findings) > 5
    for finding in found.findings:
        p, ratio = by_hand(groups, finding.feature)
        assert finding.p == pytest.approx(p, rel=1e-9)
        assert finding.odds_ratio == pytest.approx(ratio, rel=1e-9)


def test_half_marks_lie_between_right_and_wrong() -> None:
    """Mantel's mean score test against the moments of all 70 ways to place four features among eight."""
    rewards = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.0, 0.0]
    holds = [True, True, False, True, False, False, True, False]
    rollouts = [
        make_rollout("xx" if h else "it is so", reward=r, advantage=r - 0.5)
        for r, h in zip(rewards, holds, strict=True)
    ]
    sums = [sum(c) for c in itertools.combinations(rewards, 4)]
    mean, variance = float(np.mean(sums)), float(np.var(sums))
    observed = sum(r for r, h in zip(rewards, holds, strict=True) if h)
    z = (abs(observed - mean) - 0.25) / math.sqrt(variance)
    found = next(f for f in describe_group(*make_group(0, rollouts)) if f.feature == "one_word")
    assert found.p == pytest.approx(2 * float(stats.norm.sf(z)))
    assert (found.winners, found.losers) == (3, 2)  # those at par are neither


def test_a_form_that_turns_half_marks_into_full_ones_is_found() -> None:
    rng = np.random.default_rng(5)
    groups = []
    for number in range(12):
        rollouts = []
        for _ in range(8):
            short, right = bool(rng.random() < 0.4), bool(rng.random() < 0.7)
            reward = right * (1.0 if short else 0.5)
            rollouts.append(make_rollout("xx" if short else "it is so", reward=reward))
        mean = float(np.mean([r.reward for r in rollouts]))
        rollouts = [r.model_copy(update={"advantage": r.reward - mean}) for r in rollouts]
        groups.append(make_group(number, rollouts))
    found = contrast(groups)
    finding = found.finding("one_word")
    assert finding is not None
    assert finding.p_corrected < 0.01
    assert found.gains["one_word"] == pytest.approx(0.35, abs=0.12)


def test_one_stratum_of_two_by_two_gives_the_textbook_value() -> None:
    rollouts = [make_rollout("xx", won=i < 4) for i in range(5)]
    rollouts += [make_rollout("it is so", won=i < 1) for i in range(5)]
    (first, *_) = describe_group(*make_group(0, rollouts))
    # a = 4, E = 2.5, V = 25 * 25 / (100 * 9): (1.5 - .5)^2 / V = 1.44
    assert first.feature == "one_word"
    assert first.p == pytest.approx(float(stats.chi2.sf(1.44, 1)))
    assert first.odds_ratio == pytest.approx((4.5 * 4.5) / (1.5 * 1.5))


def test_a_planted_effect_is_found_and_noise_is_not() -> None:
    found = contrast(planted(20, effect=0.35, seed=1))
    finding = found.finding("one_word")
    assert finding is not None
    assert finding.p_corrected < 0.01
    assert finding.odds_ratio > 3
    noise = [f for f in found.findings if f.feature.startswith("word=noise") and " " not in f.feature]
    # the words stand only in long answers, so they point the other way, never ahead of the cause
    assert noise
    assert all(f.odds_ratio < 1 for f in noise if f.p_corrected < 0.05)
    assert found.findings[0].feature == "one_word"


def test_under_chance_alone_few_batches_find_anything() -> None:
    smallest = [
        min(
            (f.p_corrected for f in contrast(planted(6, effect=0, seed=s), permutations=100).findings),
            default=1,
        )
        for s in range(80)
    ]
    # at most the nominal share, with three standard errors of room; and the test is not vacuous
    assert sum(p < 0.05 for p in smallest) <= 80 * 0.05 + 3 * math.sqrt(80 * 0.05 * 0.95)
    assert 0.2 < sum(p < 0.5 for p in smallest) / 80 < 0.7


def test_corrected_p_is_never_below_the_uncorrected_order() -> None:
    found = contrast(planted(12, effect=0.2, seed=9)).findings
    sayable = [f for f in found if not f.feature.startswith("word=")]
    assert [f.p_corrected for f in sayable] == sorted(f.p_corrected for f in sayable)
    assert [f.p for f in sayable] == sorted(f.p for f in sayable)


def test_permuting_in_pieces_changes_nothing_but_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = planted(10, effect=0.2, seed=2)
    whole = contrast(groups)
    monkeypatch.setattr("core.evidence.cmh.MAX_CELLS", 10_000)
    pieces = {f.feature: f for f in contrast(groups).findings}
    for finding in whole.findings:
        assert pieces[finding.feature].p_corrected == pytest.approx(finding.p_corrected, abs=0.06)


def test_the_same_seed_gives_the_same_findings() -> None:
    groups = planted(10, effect=0.2, seed=2)
    assert contrast(groups, seed=5).findings == contrast(groups, seed=5).findings


def test_one_group_alone_is_never_significant() -> None:
    perfect = [make_rollout("xx") for _ in range(8)] + [make_rollout("it is so", won=False) for _ in range(8)]
    group = make_group(0, perfect)
    assert contrast([group]).findings == ()
    described = describe_group(*group)
    assert described[0].winners_with == 8
    assert all(f.p_corrected == 1 and f.groups == 1 for f in described)


def test_an_easy_task_lends_its_habits_to_nobody() -> None:
    """Simpson's paradox: in all, short answers win more often; within every task they make no difference."""
    groups = []
    for number in range(12):
        easy = number % 2 == 0
        answers = ["xx"] * 6 + ["it is so"] * 2 if easy else ["xx"] * 2 + ["it is so"] * 6
        wins = ([True] * 3 + [False]) * 2 if easy else ([False] * 3 + [True]) * 2
        order = np.random.default_rng(number).permutation(8)
        groups.append(make_group(number, [make_rollout(answers[i], won=wins[order[i]]) for i in range(8)]))
    table = tabulate(groups)
    short = table.column("one_word")
    assert table.wins[short].mean() > table.wins[~short].mean() + 0.1
    finding = contrast(groups).finding("one_word")
    assert finding is not None
    assert finding.p_corrected > 0.2


def test_a_feature_of_two_tasks_has_too_little_support() -> None:
    plain = [make_rollout("it is so", won=w) for w in (True, False) * 4]
    short = [make_rollout("xx") for _ in range(4)] + [make_rollout("it is so", won=False) for _ in range(4)]
    groups = [make_group(i, short if i < 2 else plain) for i in range(10)]
    assert contrast(groups).finding("one_word") is None
    groups[2] = make_group(2, short)
    assert contrast(groups).finding("one_word") is not None


def test_equal_columns_are_one_finding_under_the_name_easiest_to_say() -> None:
    steps_good = (call("read_json"), call("answer"))
    steps_bad = (call("guess"), call("answer"))
    rollouts = [make_rollout("x", steps=steps_good) for _ in range(4)]
    rollouts += [make_rollout("x", won=False, steps=steps_bad) for _ in range(4)]
    found = contrast([make_group(i, rollouts) for i in range(4)])
    assert [f.feature for f in found.findings] == ["first_tool=guess"] or [
        f.feature for f in found.findings
    ] == ["first_tool=read_json"]
    same = {found.findings[0].feature, *found.same[found.findings[0].feature]}
    assert {"first_tool=read_json", "first_tool=guess", "tool=read_json", "order=read_json>answer"} <= same


def test_unscored_broken_off_and_uninformative_take_no_part() -> None:
    both = [make_rollout("xx"), make_rollout("it is so", won=False)]
    extra = [
        make_rollout("xx", won=None),
        make_rollout("xx", error="time-out"),
        make_rollout("xx", advantage=0.0),
    ]
    table = tabulate([make_group(0, both + extra)])
    assert list(table.wins) == [True, False, False]  # at par: scored, but neither winner nor loser
    assert list(table.losses) == [False, True, False]
    assert tabulate([make_group(0, both, status="uninformative")]).rows == 0
    assert tabulate([make_group(0, both[:1])]).rows == 0


def test_a_restricted_table_drops_groups_without_both_sides() -> None:
    table = tabulate([make_group(i, [make_rollout("xx"), make_rollout("no", won=False)]) for i in range(3)])
    kept = table.where(np.array([True, True, True, False, True, True]))
    assert kept.groups == 2
    assert list(kept.strata) == [0, 0, 1, 1]
    assert contrast_table(kept).findings == ()


def test_nothing_in_gives_nothing_out() -> None:
    assert contrast([]).findings == ()
    assert describe_group(*make_group(0, [])) == ()


def test_evidence_names_winners_that_do_and_losers_that_do_not_first() -> None:
    groups = planted(12, effect=0.3, seed=3)
    found = contrast(groups)
    finding = found.finding("one_word")
    assert finding is not None
    evidence = found.evidence([finding])
    rollouts = {r.id: (t, r) for t, g in groups for r in g.rollouts}
    shown = [("one_word" in features(*rollouts[i]), rollouts[i][1].reward) for i in evidence.rollout_ids]
    assert shown == [(True, 1.0)] * 6 + [(False, 0.0)] * 6
    assert evidence.features_tried == found.tried > 0
    assert set(evidence.group_ids) <= {g.id for _, g in groups}


def test_the_sentence_tells_the_counts() -> None:
    finding = Finding(
        feature="one_word",
        label="answered with one word",
        winners_with=41,
        winners=52,
        losers_with=9,
        losers=60,
        odds_ratio=14.2,
        p=1e-6,
        p_corrected=0.001,
        groups=12,
    )
    assert sentence_of(finding) == (
        "41 of 52 winners answered with one word, 9 of 60 losers "
        "(differing in 12 groups; odds ratio 14.2; corrected p .001)"
    )


# --- instructions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "demands", "noun"),
    [
        ("What is it? Answer with the name of the city only.", {"alone"}, "the name of the city"),
        ("What is 2 + 3? Give only the number.", {"alone", "number_only"}, "the number"),
        ("Name the number in this sentence, with digits only.", {"digits", "number_only"}, ""),
        ("Is it good? Answer with one word.", {"one_word"}, ""),
        ('Answer with a JSON object with the key "city" only.', {"json"}, ""),
        ("Do not answer in JSON, give a short sentence.", {"no_json", "sentence", "brief"}, ""),
        ("Answer in a full sentence.", {"sentence"}, ""),
        ("What is 4 + 4? Explain your steps.", {"explanation"}, ""),
        ("What is 4 + 4? Do not explain.", {"no_explanation"}, ""),
        ('Translate "Answer in one word only, please." into French.', set(), ""),
        ("Write it in lower case, without quotes.", {"lower", "no_quotes"}, ""),
    ],
)
def test_a_question_says_what_form_it_wants(question: str, demands: set[str], noun: str) -> None:
    read = read_instruction(question)
    assert (set(read.demands), read.noun) == (demands, noun)


def test_advice_against_an_instruction_is_seen_from_both_sides() -> None:
    wants_sentence = Instruction(frozenset({"sentence"}))
    assert conflicts(frozenset({"one_word"}), wants_sentence)
    assert conflicts(frozenset({"sentence"}), Instruction(frozenset({"one_word"})))
    assert not conflicts(frozenset({"alone"}), Instruction(frozenset({"one_word"})))
    assert not conflicts(frozenset(), wants_sentence)


def test_findings_are_plain_numbers_that_a_record_can_store() -> None:
    for finding in contrast(planted(6, effect=0.3, seed=0)).findings:
        assert json.loads(finding.canonical())["p_corrected"] <= 1
