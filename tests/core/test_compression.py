from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.compression import N_MAX, STRATEGIES, Dropped, Strategy, clusters, decay, dropped, goal, utility
from core.experience import Experience
from tests.make import make_experience

NOW = 60


def ids(found: Sequence[Dropped]) -> list[str]:
    return [d.experience_id for d in found]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(strategy: str, own: list[Experience], vectors: np.ndarray, to: int) -> list[str]:
    """The definitions, worked out anew each time one goes; `own` is in the order of the ids."""
    left = list(range(len(own)))
    cosines = unit(vectors.astype(float)) @ unit(vectors.astype(float)).T
    gone: list[str] = []

    def value(i: int) -> float:
        age = max(0, NOW - own[i].epoch)
        if strategy == "importance":
            return own[i].confidence
        if strategy == "temporal":
            return math.exp(-0.05 * age)
        nearest = max((cosines[i, j] for j in left if j != i), default=0.0)
        distance = round(max(0.0, 1 - nearest), 5)
        return own[i].confidence * math.sqrt(math.exp(-0.05 * age)) * distance**0.3

    while len(left) > to:
        worst = min(left, key=lambda i: (round(value(i), 5), own[i].confidence, -i))
        gone.append(own[worst].id)
        left.remove(worst)
    return gone


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[Experience], np.ndarray]:
    n = draw(st.integers(1, 24))
    few = st.sampled_from([0.05, 0.3, 0.5, 0.95])  # ties are the rule
    own = [
        make_experience(9_990 + i, f"text {i}", confidence=draw(few), epoch=draw(st.integers(0, 70)))
        for i in range(n)
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    base = rng.normal(size=(n, 6)).astype(np.float32)
    twins = draw(st.lists(st.integers(0, n - 1), max_size=6))
    for i in twins:
        base[i] = base[0]
    return own, base


@settings(max_examples=60, deadline=None)
@given(libraries(), st.sampled_from(["importance", "temporal", "hybrid"]), st.integers(0, 24))
def test_what_goes_is_what_the_definition_says_in_its_order(
    library: tuple[list[Experience], np.ndarray], strategy: Strategy, to: int
) -> None:
    own, vectors = library
    found = dropped(strategy, own, vectors, to=to, epoch=NOW)
    assert ids(found) == brute_force(strategy, own, vectors, to)


@settings(max_examples=60, deadline=None)
@given(libraries(), st.integers(1, 24), st.integers(0, 3))
def test_diversity_keeps_the_most_confident_of_each_cluster_and_nobody_else(
    library: tuple[list[Experience], np.ndarray], to: int, seed: int
) -> None:
    own, vectors = library
    gone = set(ids(dropped("diversity", own, vectors, to=to, epoch=NOW, seed=seed)))
    if to >= len(own):
        assert not gone
        return
    cluster = clusters(vectors, to, seed)
    assert len(gone) == len(own) - to
    for c in range(to):
        members = [e for e, mine in zip(own, cluster, strict=True) if mine == c]
        best = max(e.confidence for e in members)
        assert [e.id for e in members if e.id not in gone] == [
            next(e.id for e in members if e.confidence == best)
        ]


@settings(max_examples=40, deadline=None)
@given(libraries(), st.sampled_from(STRATEGIES), st.integers(0, 24), st.randoms(use_true_random=False))
def test_the_order_of_the_library_does_not_matter_and_no_more_go_than_must(
    library: tuple[list[Experience], np.ndarray], strategy: Strategy, to: int, random: object
) -> None:
    own, vectors = library
    places = list(range(len(own)))
    random.shuffle(places)  # type: ignore[attr-defined]
    found = dropped(strategy, own, vectors, to=to, epoch=NOW)
    again = dropped(strategy, [own[i] for i in places], vectors[places], to=to, epoch=NOW)
    assert found == again
    assert len(set(ids(found))) == len(found) == max(0, len(own) - to)


def test_of_equals_the_later_id_goes_first_and_ten_thousand_comes_after_9999() -> None:
    own = [make_experience(n) for n in (9_998, 10_000, 9_999)]
    same = np.ones((3, 4), np.float32)
    for strategy in STRATEGIES:
        assert ids(dropped(strategy, own, same, to=1, epoch=NOW)) == ["E-10000", "E-9999"]


def test_of_twins_one_stays_with_what_they_say() -> None:
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 2]]
    own = [make_experience(i, confidence=c) for i, c in enumerate((0.9, 0.8, 0.3, 0.2), 1)]
    assert ids(dropped("hybrid", own, vectors, to=2, epoch=NOW)) == ["E-0002", "E-0004"]


def test_many_twins_leave_their_neighbours_and_still_go_one_by_one() -> None:
    rng = np.random.default_rng(1)
    vectors = np.repeat(rng.normal(size=(3, 8)), 30, axis=0).astype(np.float32)
    own = [make_experience(i, confidence=0.5 + i / 1000) for i in range(90)]
    found = ids(dropped("hybrid", own, vectors, to=3, epoch=NOW))
    assert found == brute_force("hybrid", own, vectors, 3)
    assert {e.id for e in own} - set(found) == {"E-0029", "E-0059", "E-0089"}


def test_the_numbers_are_the_formulas() -> None:
    old = make_experience(1, confidence=0.5, epoch=20)
    assert decay(old, 60) == pytest.approx(math.exp(-2))
    assert decay(old, 3) == 1  # born later than now: no age
    assert utility(0.5, math.exp(-2), 0.12) == pytest.approx(0.5 * math.exp(-1) * 0.12**0.3)
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    own = [old, make_experience(2), make_experience(3, epoch=60, confidence=0.95)]
    [first] = dropped("hybrid", own, vectors, to=2, epoch=60)
    assert first.experience_id == "E-0002"
    assert first.value == pytest.approx(0.5 * math.exp(-1.5) * 0.2**0.3, abs=1e-4)
    assert first.why == "U = 0.50^1.0 x 0.050^0.5 x 0.200^0.3 = 0.069"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_up_to_the_capacity_nothing_goes(strategy: Strategy) -> None:
    assert goal(strategy, N_MAX) == N_MAX
    assert goal(strategy, 3, to=7) == 3
    assert dropped(strategy, [make_experience(1)], np.ones((1, 2), np.float32), to=1, epoch=0) == []


def test_importance_drops_a_fifth_unless_a_number_is_named_and_the_others_go_down_to_the_capacity() -> None:
    assert [goal(s, 640) for s in STRATEGIES] == [500, 512, 500, 500]
    assert {goal(s, 640, to=630) for s in STRATEGIES} == {630}


def test_clusters_find_what_is_apart() -> None:
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(5), 20))
    vectors = (np.eye(5)[truth] + 0.05 * rng.normal(size=(100, 5))).astype(np.float32)
    found = clusters(vectors, 5)
    pairs = {(t, int(c)) for t, c in zip(truth, found, strict=True)}
    assert len(pairs) == 5


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**16), st.data())
def test_every_cluster_has_somebody_even_among_copies_and_zeros(
    n: int, kinds: int, seed: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.eye(4, dtype=np.float32)[rng.integers(0, kinds, n)]
    vectors[rng.random(n) < 0.2] = 0
    k = data.draw(st.integers(1, n))
    found = clusters(vectors, k, seed)
    assert sorted(set(found.tolist())) == list(range(k))
    assert found.tolist() == clusters(vectors, k, seed).tolist()


def test_embeddings_are_asked_for_where_they_count() -> None:
    own = [make_experience(1), make_experience(2)]
    with pytest.raises(ValueError, match="hybrid needs an embedding of each experience"):
        dropped("hybrid", own, None, to=1, epoch=0)
    with pytest.raises(ValueError, match="diversity needs an embedding of each"):
        dropped("diversity", own, np.ones((1, 3), np.float32), to=1, epoch=0)
    assert len(dropped("temporal", own, None, to=1, epoch=0)) == 1
