"""Which experiences are injected for a task, and what is said about the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.experience import KINDS, Experience
from core.injection import estimate_tokens
from core.memory import CAPS, TOP_K, WHOLE_LIBRARY, LeftOut, Selection, learned_elsewhere, select
from core.workspace.prompts import NAMED, kept

PLENTY = 100_000


def lesson(number: int, text: str = "", **fields: Any) -> Experience:
    return Experience(id=f"E-{number:04}", text=text or f"Lesson number {number}.", **fields)


def no_embedding(texts: Sequence[str]) -> Any:
    raise AssertionError(f"nothing had to be ranked, but {len(texts)} texts were embedded")


class Topics:
    """An embedder that knows three words: a text's vector says which of them it holds."""

    WORDS = ("file", "city", "sum")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        raw = np.array([[float(w in t) for w in self.WORDS] + [0.1] for t in texts], dtype=np.float32)
        return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def ids(selection: Selection) -> list[str]:
    return [e.id for e in selection.experiences]


def why(selection: Selection) -> dict[str, str]:
    return {each.experience_id: each.why for each in selection.left_out}


def test_a_small_library_is_injected_whole_in_id_order_without_any_embedding() -> None:
    library = [lesson(n) for n in (10000, 3, 9999, 1)]
    chosen = select(library, "q", domain="general", budget_tokens=PLENTY, embed=no_embedding)
    assert ids(chosen) == ["E-0001", "E-0003", "E-9999", "E-10000"]
    assert (chosen.mode, chosen.left_out) == ("whole", ())


def test_lessons_of_other_domains_are_left_out_even_when_all_would_fit() -> None:
    library = [lesson(1, domain="capitals"), lesson(2, domain="sums"), lesson(3, domain="general")]
    chosen = select(library, "q", domain="sums", budget_tokens=PLENTY)
    assert ids(chosen) == ["E-0002", "E-0003"]
    assert why(chosen) == {"E-0001": "other domain"}


def test_a_deleted_lesson_is_never_injected() -> None:
    library = [lesson(1, status="deleted"), lesson(2)]
    chosen = select(library, "q", domain="general", budget_tokens=PLENTY)
    assert ids(chosen) == ["E-0002"]
    assert why(chosen) == {"E-0001": "not live"}


def test_all_tasks_of_a_domain_share_one_prefix_while_nothing_is_ranked() -> None:
    library = [lesson(n) for n in range(WHOLE_LIBRARY)]
    texts = {
        select(library, f"question {n}", domain="general", budget_tokens=PLENTY).injection.text
        for n in range(5)
    }
    assert len(texts) == 1


def test_one_lesson_too_many_and_the_library_is_ranked() -> None:
    library = [lesson(n) for n in range(WHOLE_LIBRARY + 1)]
    chosen = select(library, "q", domain="general", budget_tokens=PLENTY, embed=Topics())
    assert chosen.mode == "retrieved"
    assert len(ids(chosen)) == TOP_K
    assert len(chosen.left_out) == WHOLE_LIBRARY + 1 - TOP_K


def test_the_score_is_four_fifths_cosine_and_one_fifth_confidence() -> None:
    library = [lesson(n, confidence=0.95) for n in range(WHOLE_LIBRARY)]
    library.append(lesson(99, "Read the file.", confidence=0.05))
    chosen = select(library, "Which file?", domain="general", budget_tokens=PLENTY, embed=Topics())
    assert ids(chosen)[0] == "E-0099"
    assert chosen.scores["E-0099"] == pytest.approx(0.8 * 1.0 + 0.2 * 0.05, abs=1e-4)
    cosine = 0.1 / np.hypot(1, 0.1)
    assert chosen.scores["E-0000"] == pytest.approx(0.8 * cosine + 0.2 * 0.95, abs=1e-4)


def test_the_error_text_is_part_of_the_query() -> None:
    library = [lesson(n) for n in range(WHOLE_LIBRARY)] + [lesson(99, "Name the city.")]
    topics = Topics()
    chosen = select(
        library,
        "What now?",
        domain="general",
        budget_tokens=PLENTY,
        embed=topics,
        error_text="unknown city",
    )
    assert topics.asked[0] == "What now?\nunknown city"
    assert ids(chosen)[0] == "E-0099"


def test_without_an_embedder_confidence_ranks() -> None:
    library = [lesson(n, confidence=0.05 + n / 100) for n in range(WHOLE_LIBRARY + 1)]
    chosen = select(library, "q", domain="general", budget_tokens=PLENTY)
    assert ids(chosen) == ["E-0050", "E-0049", "E-0048", "E-0047", "E-0046"]


def test_kinds_are_capped_but_strategies_are_not() -> None:
    library = [lesson(n, kind="failure_pattern", confidence=0.9) for n in range(30)]
    library += [lesson(n, kind="convention", confidence=0.8) for n in range(30, 60)]
    library += [lesson(n, kind="strategy", confidence=0.1) for n in range(60, 70)]
    chosen = select(library, "q", domain="general", budget_tokens=PLENTY)
    assert [e.kind for e in chosen.experiences] == ["failure_pattern"] + ["convention"] * 2 + ["strategy"] * 2
    assert chosen.reasons == {"kind cap": 57, "beyond top K": 8}


def test_a_small_budget_is_filled_from_the_top_and_never_passed() -> None:
    long = "Read every single line of the given file with great care before you even begin to answer. " * 3
    library = [lesson(1, long, confidence=0.9), lesson(2, confidence=0.8), lesson(3, confidence=0.7)]
    two = estimate_tokens(select(library[1:], "q", domain="general", budget_tokens=PLENTY).injection.text)
    chosen = select(library, "q", domain="general", budget_tokens=two)
    assert ids(chosen) == ["E-0002", "E-0003"]
    assert why(chosen) == {"E-0001": "over budget"}
    assert chosen.tokens == two


def test_a_short_lesson_is_found_behind_any_number_that_do_not_fit() -> None:
    long = [lesson(n, "very " * 30 + str(n), confidence=0.9) for n in range(1, 81)]
    short = [lesson(n, f"Say {n}.", confidence=0.5) for n in range(81, 121)]
    chosen = select([*long, *short], "q", domain="general", budget_tokens=60)
    assert ids(chosen) == ["E-0081", "E-0082", "E-0083", "E-0084"]
    assert chosen.reasons == {"over budget": 116}


@given(
    st.lists(st.text(st.sampled_from("aB1 .\n\r\u2028\u5148"), max_size=40), min_size=51, max_size=60),
    st.integers(0, 120),
)
def test_no_lesson_that_fits_is_passed_over_to_save_time(texts: list[str], budget: int) -> None:
    """What is left out by its estimate alone would not have fitted when it is counted with the others."""

    def count(text: str) -> int:
        return estimate_tokens(text)

    library = [lesson(n, text) for n, text in enumerate(texts)]
    fast = select(library, "q", domain="general", budget_tokens=budget)
    assert fast == select(library, "q", domain="general", budget_tokens=budget, count_tokens=count)


def test_no_budget_injects_nothing_and_says_so() -> None:
    chosen = select([lesson(1)], "q", domain="general", budget_tokens=0)
    assert chosen.injection.text == ""
    assert why(chosen) == {"E-0001": "over budget"}


LIBRARIES = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(["general", "sums", "capitals"]),
        st.sampled_from([0.05, 0.5, 0.9]),
        st.sampled_from(["live", "deleted"]),
        st.sampled_from(["Name the city.", "Read the file.", "A longer lesson about a sum and a file."]),
    ),
    max_size=80,
)


@given(LIBRARIES, st.integers(0, 1500), st.randoms())
def test_every_experience_is_either_injected_or_left_out_with_a_reason(
    rows: list[Any], budget: int, rng: Any
) -> None:
    library = [
        lesson(n, text, kind=kind, domain=domain, confidence=c, status=status)
        for n, (kind, domain, c, status, text) in enumerate(rows)
    ]
    chosen = select(library, "Which file?", domain="sums", budget_tokens=budget, embed=Topics())
    assert sorted([*ids(chosen), *why(chosen)]) == [e.id for e in library]
    assert estimate_tokens(chosen.injection.text) == chosen.tokens <= budget
    assert all(e.status == "live" and e.domain in ("sums", "general") for e in chosen.experiences)
    if chosen.mode == "retrieved":
        assert len(chosen.experiences) <= TOP_K
        for kind, cap in CAPS.items():
            assert sum(e.kind == kind for e in chosen.experiences) <= cap
    rng.shuffle(library)
    assert select(library, "Which file?", domain="sums", budget_tokens=budget, embed=Topics()) == chosen


def test_a_plan_says_which_lessons_were_learned_on_another_model() -> None:
    library = [
        lesson(1, learned_on="small-1", domain="sums"),
        lesson(2, learned_on="small-2"),
        lesson(3, learned_on="small-2"),
        lesson(4, learned_on="large", domain="sums"),
        lesson(5, domain="sums"),
        lesson(6, learned_on="small-1", domain="capitals"),
        lesson(7, learned_on="small-1", status="deleted"),
    ]
    said = learned_elsewhere(library, ["sums"], "large")
    assert said.startswith(
        "3 of 5 lessons were learned on another model than large: small-2 (2), small-1 (1)."
    )
    assert learned_elsewhere(library[3:5], ["sums"], "large") == ""
    assert learned_elsewhere([], ["sums"], "large") == ""


def test_a_lesson_of_a_group_of_several_models_was_learned_on_each_of_them() -> None:
    mixed = [lesson(1, learned_on="large, small-1")]
    assert learned_elsewhere(mixed, ["sums"], "small-1") == ""
    assert "large, small-1 (1)" in learned_elsewhere(mixed, ["sums"], "small-2")


# ---- what a group keeps of it ---------------------------------------------------------------------------


def test_a_group_keeps_the_nearest_that_it_was_not_given_and_counts_the_others() -> None:
    far = [LeftOut(experience_id=f"E-{i:04d}", why="other domain") for i in range(1, 5_001)]
    near = [
        LeftOut(experience_id=f"E-{i:04d}", why="beyond top K" if i % 2 else "kind cap", score=1 / i)
        for i in range(5_001, 10_001)
    ]
    told = kept([*far, *near])
    named = {key: why for key, why in told.items() if key.startswith("E-")}
    assert list(named) == [out.experience_id for out in near[:NAMED]]
    assert named["E-5001"] == "beyond top K"
    counted = {
        why: int(n.removesuffix(" more").replace(",", "")) for why, n in told.items() if why not in named
    }
    assert counted["other domain"] == 5_000
    assert len(named) + sum(counted.values()) == 10_000


def test_a_group_names_all_that_it_was_not_given_where_they_are_few() -> None:
    few = [LeftOut(experience_id=f"E-{i:04d}", why="over budget") for i in range(NAMED)]
    assert kept(few) == {out.experience_id: "over budget" for out in few}
    assert kept([]) == {}
