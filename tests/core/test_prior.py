"""Token priors: counting within groups, the 1-bit form, weights, limits and masks."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from core.prior import (
    Factor,
    Limits,
    Prior,
    PriorRules,
    PriorToken,
    Reply,
    TokenizerName,
    answers_of,
    bias_map,
    choose,
    derive_factor,
    says_something,
    spellings,
    tell_apart,
    vocabulary_hash,
)
from core.settings import VerifierSpec
from tests.make import make_task

SUM, OTHER, HABIT, NOISE, ANSWER = 1, 2, 3, 4, 5
OPENAI = Limits(100.0, 300)
RULES = PriorRules()


def group(name: str, *replies: tuple[bool, set[int]]) -> list[Reply]:
    return [Reply(name, f"task {name}", good, frozenset(tokens)) for good, tokens in replies]


def habit(groups: int, token: int = HABIT) -> list[Reply]:
    """Groups of 4 winners that all have the token and 4 losers that do not; each has a token of its own task."""
    made: list[Reply] = []
    for g in range(groups):
        made += group(f"g{g}", *[(True, {token, 100 + g})] * 4, *[(False, {OTHER, 100 + g})] * 4)
    return made


def derived(replies: list[Reply], masked: frozenset[int] = frozenset(), rules: PriorRules = RULES) -> Factor:
    return derive_factor("sums", replies, masked, str, rules)


def make_factor(*ids: int, wins: int = 9, contrasts: int = 10, **fields: object) -> Factor:
    token = {
        "log_odds": 2.0,
        "z": 3.0,
        "winners_with": 5,
        "winners": 8,
        "losers_with": 1,
        "losers": 8,
        "groups": 4,
    }
    tokens = tuple(PriorToken(id=abs(i), piece=str(i), sign=1 if i > 0 else -1, **token) for i in ids)
    known = {"domain": "sums", "alpha": 2.0, "groups": 10, "replies": 80, "masked": 0}
    return Factor(tokens=tokens, wins=wins, contrasts=contrasts, **{**known, **fields})


def make_prior(*factors: Factor, **rules: float) -> Prior:
    name = TokenizerName(name="stub", sha256="0" * 64)
    return Prior(tokenizer=name, model="stub", factors=factors, rules=PriorRules(**rules))


@pytest.mark.filterwarnings("ignore:invalid value")  # the kurtosis that scipy works out besides
def test_log_odds_and_z_are_those_of_mantel_and_haenszel_by_hand() -> None:
    # group g0: 3 of 4 winners and 1 of 4 losers have it; g1: 2 of 2 and 1 of 3; g2: 1 of 1 and 0 of 2
    cells = {"g0": (3, 1, 4, 4), "g1": (2, 1, 2, 3), "g2": (1, 0, 1, 2)}
    replies: list[Reply] = []
    for name, (a, b, w, l) in cells.items():  # noqa: E741
        winners = [(True, {HABIT} if i < a else {OTHER}) for i in range(w)]
        losers = [(False, {HABIT} if i < b else {OTHER}) for i in range(l)]
        replies += group(name, *winners, *losers)
    r = 3 * 3 / 8 + 2 * 2 / 5 + 1 * 2 / 3
    s = 1 * 1 / 8 + 1 * 0 / 5 + 0
    expected = hypergeom(8, 4, 4), hypergeom(5, 3, 2), hypergeom(3, 1, 1)
    t = 3 + 2 + 1 - sum(h.mean() for h in expected)
    z = t / math.sqrt(sum(h.var() for h in expected))
    found = {x.id: x for x in choose(replies, (), str, PriorRules(support=1)).tokens}
    assert found[HABIT].log_odds == pytest.approx(math.log((r + 0.5) / (s + 0.5)), abs=1e-6)
    assert found[HABIT].z == pytest.approx(z, abs=1e-6)
    assert (found[HABIT].winners_with, found[HABIT].losers_with) == (6, 2)
    assert (found[HABIT].winners, found[HABIT].losers, found[HABIT].groups) == (7, 9, 3)
    assert found[OTHER].z == pytest.approx(-z, abs=1e-6)


def test_what_winners_have_is_promoted_and_what_losers_have_demoted() -> None:
    factor = derived(habit(10))
    assert {t.id: t.sign for t in factor.tokens} == {HABIT: 1, OTHER: -1}
    assert factor.alpha == pytest.approx(sum(abs(t.log_odds) for t in factor.tokens) / 2)


def test_a_token_of_an_easy_task_is_not_taken_for_a_good_habit() -> None:
    """Task A is mostly won, task B mostly lost; each names its own subject: pooled counts would promote A's."""
    replies: list[Reply] = []
    for g in range(20):
        subject, won = (SUM, 7) if g % 2 else (OTHER, 1)
        replies += group(f"g{g}", *[(i < won, {subject}) for i in range(8)])
    assert derived(replies).tokens == ()


def test_a_token_with_too_little_support_is_left_out() -> None:
    replies = habit(10) + group("rare", *[(True, {77})] * 4, *[(False, {OTHER})] * 4)
    assert 77 not in {t.id for t in derived(replies).tokens}


def test_at_most_k_tokens_are_chosen_and_the_strongest_first() -> None:
    replies = [
        r._replace(tokens=r.tokens | ({900 + i for i in range(40)} if r.good else set())) for r in habit(10)
    ]
    factor = derived(replies, rules=PriorRules(k=16))
    assert len(factor.tokens) == 16
    strengths = [abs(t.z) for t in factor.tokens]
    assert strengths == sorted(strengths, reverse=True)


def test_tokens_of_right_answers_are_never_in_a_prior_and_are_counted() -> None:
    replies = [r._replace(tokens=r.tokens | {ANSWER}) if r.good else r for r in habit(10)]
    assert ANSWER in {t.id for t in derived(replies).tokens}
    factor = derived(replies, frozenset({ANSWER}))
    assert ANSWER not in {t.id for t in factor.tokens}
    assert factor.masked == 1


def test_a_habit_that_holds_on_other_tasks_has_weight() -> None:
    factor = derived(habit(20))
    assert (factor.wins, factor.contrasts) == (20, 20)
    assert factor.q == pytest.approx(21 / 22)
    assert factor.eta == pytest.approx(math.log(21))


def test_noise_gets_a_weight_near_nothing_although_tokens_of_it_are_chosen() -> None:
    rng = random.Random(7)
    weights = []
    for _ in range(10):
        replies: list[Reply] = []
        for g in range(20):
            some = [(i < 4, set(rng.sample(range(200), 40))) for i in range(8)]
            replies += group(f"g{g}", *some)
        factor = derived(replies)
        assert factor.tokens  # by chance: 200 tokens were looked at
        weights.append(factor.q)
    assert 0.4 < sum(weights) / len(weights) < 0.6


def test_a_factor_at_or_below_one_half_is_dropped() -> None:
    assert make_factor(HABIT, wins=5, contrasts=10).eta == 0
    assert make_factor(HABIT, wins=2, contrasts=10).eta == 0
    assert bias_map(make_prior(make_factor(HABIT, wins=2, contrasts=10)), OPENAI).values == {}


def test_no_reply_gives_no_factor_and_no_weight() -> None:
    factor = derived([])
    assert (factor.tokens, factor.alpha, factor.eta) == ((), 0.0, 0.0)


def test_a_tie_is_neither_a_win_nor_a_contrast() -> None:
    tokens = make_factor(HABIT).tokens
    same = group("g", (True, {HABIT}), (True, set()), (False, {HABIT}), (False, set()))
    assert tell_apart(tokens, same) == (0, 0)
    assert tell_apart(tokens, [*same, Reply("g", "t", True, frozenset({HABIT}))]) == (1, 1)


def test_the_bias_is_scale_times_weight_times_sign_times_alpha() -> None:
    factor = make_factor(HABIT, -OTHER, wins=2, contrasts=3, alpha=1.5)
    expected = round(math.log((3 / 5) / (2 / 5)) * 1.5, 4)
    assert bias_map(make_prior(factor), OPENAI).values == {HABIT: expected, OTHER: -expected}
    halved = bias_map(make_prior(factor), OPENAI, scale=0.5).values
    assert halved[HABIT] == pytest.approx(expected / 2, abs=1e-4)


def test_experts_multiply_so_their_biases_add() -> None:
    one, other = (
        make_factor(HABIT, wins=2, contrasts=3, alpha=0.5),
        make_factor(HABIT, wins=3, contrasts=4, alpha=0.25),
    )
    total = bias_map(make_prior(one, other), OPENAI).values[HABIT]
    assert total == pytest.approx(one.eta * 0.5 + other.eta * 0.25, abs=1e-4)


def test_the_sum_is_capped_for_each_token_and_said_to_be() -> None:
    found = bias_map(make_prior(make_factor(HABIT, -OTHER, wins=99, contrasts=99), cap=2.5), OPENAI)
    assert found.values == {HABIT: 2.5, OTHER: -2.5}
    assert found.clipped == 2


def test_a_task_takes_the_factors_of_its_domain_and_the_general_ones() -> None:
    prior = make_prior(make_factor(1), make_factor(2, domain="capitals"), make_factor(3, domain="general"))
    assert set(bias_map(prior, OPENAI, domain="sums").values) == {1, 3}
    assert set(bias_map(prior, OPENAI).values) == {1, 2, 3}


@given(
    ids=st.lists(st.integers(1, 500), unique=True, min_size=1, max_size=60),
    wins=st.integers(0, 50),
    alpha=st.floats(0, 50),
    most=st.floats(0.1, 100),
    entries=st.integers(0, 40),
)
def test_no_endpoint_is_sent_more_than_it_takes(
    ids: list[int], wins: int, alpha: float, most: float, entries: int
) -> None:
    prior = make_prior(make_factor(*ids, wins=wins, contrasts=50, alpha=alpha), cap=100)
    found = bias_map(prior, Limits(most, entries))
    assert len(found.values) <= entries
    assert all(abs(v) <= most for v in found.values.values())
    assert found.left_out + len(found.values) in (0, len(ids))


def test_what_has_no_room_is_what_would_do_least() -> None:
    weak, strong = make_factor(1, 2, alpha=0.1), make_factor(3, alpha=1.0)
    found = bias_map(make_prior(weak, strong), Limits(100, 1))
    assert (set(found.values), found.left_out) == ({3}, 2)


def test_an_endpoint_without_room_gets_nothing() -> None:
    assert bias_map(make_prior(make_factor(1)), Limits(0, 300)).values == {}


def test_the_hash_of_a_vocabulary_tells_ids_and_tokens_apart() -> None:
    vocabularies = [{0: "a", 1: "b"}, {0: "b", 1: "a"}, {0: "a", 2: "b"}, {0: "a"}]
    assert len({vocabulary_hash(v) for v in vocabularies}) == 4
    assert vocabulary_hash({1: "b", 0: "a"}) == vocabulary_hash({0: "a", 1: "b"})


def test_the_counts_of_a_prior_do_not_depend_on_the_order_of_replies() -> None:
    replies = habit(10)
    shuffled = replies[:]
    random.Random(1).shuffle(shuffled)
    assert derived(shuffled) == derived(replies)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", {"Paris"}),
        ('{"city": "Paris", "near": ["Lyon", 3]}', {"Paris", "Lyon", "3"}),
        ("12", {"12"}),
        ("  ", set()),
    ],
)
def test_the_right_answer_of_a_task_is_told_with_what_is_in_it(answer: str, expected: set[str]) -> None:
    task = make_task(answer=answer or " ", verifier=VerifierSpec(kind="text"))
    assert set(answers_of(task)) == expected


def test_labels_are_found_however_deep_a_verifier_names_them() -> None:
    inner = {"kind": "choice", "options": {"choices": ["positive", "negative"]}}
    task = make_task(
        answer="positive", verifier=VerifierSpec(kind="graded", options={"content": inner, "form": inner})
    )
    assert set(answers_of(task)) == {"positive", "negative"}


def test_an_answer_is_spelt_in_the_ways_that_a_reply_may_spell_it() -> None:
    assert {"Positive", " positive", "POSITIVE", " Positive"} <= spellings("positive")


def test_a_full_stop_says_nothing_and_a_part_of_a_character_may_say_something() -> None:
    assert [says_something(p) for p in (".", " \n", "a.", "7", "\ufffd")] == [False, False, True, True, True]


def test_wins_are_counted_as_an_enumeration_of_all_pairs_says() -> None:
    """The mean of winners is above that of losers exactly where winners win more of the pairs by score in sum."""
    rng = random.Random(3)
    tokens = make_factor(1, 2, -3, -4).tokens
    sign = {t.id: t.sign for t in tokens}
    for n in range(50):
        replies = group("g", *[(rng.random() < 0.5, set(rng.sample(range(1, 6), 3))) for _ in range(8)])
        score = [(r.good, sum(sign.get(t, 0) for t in r.tokens)) for r in replies]
        pairs = itertools.product((s for good, s in score if good), (s for good, s in score if not good))
        ahead = sum(a - b for a, b in pairs)
        assert tell_apart(tokens, replies) == (int(ahead > 0), int(ahead != 0)), n
