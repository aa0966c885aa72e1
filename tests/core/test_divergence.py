"""Where two attempts part ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.divergence import first_divergence
from core.rollout import Message, Step, Trajectory

LOOK = Step(tool="list_files", parameters={"folder": "a", "deep": True}, output="x.json", success=True)
READ = Step(tool="read_json", parameters={"path": "x.json"}, output="{}", success=True)


def did(*steps: Step, answer: str = "4") -> Trajectory:
    return Trajectory(steps=steps, answer=answer)


def said(*texts: str) -> Trajectory:
    roles = ("system", "user", "assistant")
    return Trajectory(
        messages=tuple(Message(role=roles[min(i, 2)], content=t) for i, t in enumerate(texts)),
        answer=texts[-1],
    )


@pytest.mark.parametrize(
    ("other", "place", "what"),
    [
        (did(READ, READ), 0, "tool"),
        (
            did(LOOK, READ.model_copy(update={"parameters": {"path": "y.json"}, "output": "no"})),
            1,
            "parameters",
        ),
        (did(LOOK, READ.model_copy(update={"output": "[]"})), 1, "output"),
        (did(LOOK, READ.model_copy(update={"success": None})), 1, "output"),
        (did(LOOK), 1, "ended"),
        (did(LOOK, READ, READ), 2, "ended"),
        (did(), 0, "ended"),
    ],
)
def test_the_first_step_that_differs_is_found_with_what_of_it_differs(
    other: Trajectory, place: int, what: str
) -> None:
    found = first_divergence(did(LOOK, READ), other)
    assert found is not None
    assert (found.kind, found.place, found.what) == ("step", place, what)


def test_the_order_of_parameters_and_the_time_a_step_took_are_no_difference() -> None:
    turned = LOOK.model_copy(update={"parameters": {"deep": True, "folder": "a"}, "duration_s": 3.0})
    assert first_divergence(did(LOOK), did(turned)) is None


def test_attempts_without_steps_part_at_a_message() -> None:
    found = first_divergence(said("lessons", "2 + 2?", "4"), said("lessons", "2 + 2?", "It is 4."))
    assert found is not None
    assert (found.kind, found.place, found.what) == ("message", 2, "content")


def test_equal_steps_with_other_answers_part_at_the_answer() -> None:
    found = first_divergence(did(LOOK), did(LOOK, answer="5"))
    assert found is not None
    assert (found.kind, found.what) == ("answer", "answer")


def test_answers_alone_can_be_compared() -> None:
    assert first_divergence(Trajectory(answer="a"), Trajectory(answer="a")) is None
    found = first_divergence(Trajectory(answer="a"), said("lessons", "b"))
    assert found is not None
    assert found.kind == "answer"


STEPS = st.lists(st.sampled_from([LOOK, READ, READ.model_copy(update={"output": "[]"})]), max_size=5).map(
    tuple
)


@given(STEPS, STEPS)
def test_what_comes_before_a_parting_is_equal_and_who_is_asked_first_plays_no_part(
    one: tuple[Step, ...], other: tuple[Step, ...]
) -> None:
    found = first_divergence(did(*one), did(*other))
    assert found == first_divergence(did(*other), did(*one))
    if found is None:
        assert one == other
    else:
        assert one[: found.place] == other[: found.place]
        assert one[found.place : found.place + 1] != other[found.place : found.place + 1]
