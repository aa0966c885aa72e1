"""A record that is made unchecked is the record that would have been made checked."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.importers.attempt import Attempt, Seen
from core.record import Record, unchecked
from core.rollout import Message, Score, Step, Trajectory, Usage

TEXTS = st.text(max_size=20)
TOLD = st.none() | TEXTS
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)

MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS},
    optional={"name": TOLD},
)
STEPS = st.fixed_dictionaries(
    {"tool": TEXTS},
    optional={
        "parameters": OBJECTS,
        "output": TEXTS,
        "success": st.none() | st.booleans(),
        "error": TOLD,
        "duration_s": st.none() | st.floats(allow_nan=False),
        "retries": st.integers(0, 9),
        "turn": st.none() | st.integers(),
        "told_by": st.sampled_from(["", "flag", "exit code", "text"]),
    },
)
TRAJECTORIES = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(MESSAGES.map(lambda m: Message(**m)), max_size=3).map(tuple),
        "steps": st.lists(STEPS.map(lambda s: Step(**s)), max_size=3).map(tuple),
        "answer": TEXTS,
        "finish_reason": TOLD,
    },
)
USAGES = st.fixed_dictionaries(
    {}, optional={"calls": st.integers(0, 99), "cost_usd": st.floats(0, allow_infinity=False)}
)
SCORES = st.fixed_dictionaries({}, optional={"value": st.none() | st.floats(allow_nan=False), "raw": TEXTS})
ATTEMPTS = st.fixed_dictionaries(
    {"place": TEXTS, "question": TEXTS},
    optional={
        "task_id": TOLD,
        "task_metadata": OBJECTS,
        "repeat": st.none() | st.integers(),
        "trajectory": TRAJECTORIES.map(lambda t: Trajectory(**t)),
        "scores": st.dictionaries(TEXTS, SCORES.map(lambda s: Seen(**s)), max_size=3),
        "verdicts": st.dictionaries(TEXTS, st.just(Score(value=1.0)), max_size=1),
        "usage": USAGES.map(lambda u: Usage(**u)),
        "metadata": OBJECTS,
    },
)
MADE = st.one_of(
    st.tuples(st.just(kind), values)
    for kind, values in (
        (Message, MESSAGES),
        (Step, STEPS),
        (Trajectory, TRAJECTORIES),
        (Usage, USAGES),
        (Seen, SCORES),
        (Attempt, ATTEMPTS),
    )
)


@given(MADE)
def test_an_unchecked_record_is_the_checked_one_field_by_field(
    made: tuple[type[Record], dict[str, object]],
) -> None:
    kind, values = made
    checked, bare = kind(**values), unchecked(kind)(**values)
    assert type(bare) is kind
    for name in kind.model_fields:
        assert getattr(bare, name) == getattr(checked, name)
        assert type(getattr(bare, name)) is type(getattr(checked, name))
    assert bare == checked
    assert bare.model_fields_set == kind.model_fields.keys()


@given(MADE)
def test_an_unchecked_record_is_dumped_copied_and_pickled_as_the_checked_one(
    made: tuple[type[Record], dict[str, object]],
) -> None:
    kind, values = made
    checked, bare = kind(**values), unchecked(kind)(**values)
    assert bare.model_dump_json() == checked.model_dump_json()
    assert bare.canonical() == checked.canonical()
    assert copy.deepcopy(bare) == checked
    assert pickle.loads(pickle.dumps(bare)) == checked
    assert repr(bare) == repr(checked)


def test_two_unchecked_records_share_no_default() -> None:
    make = unchecked(Step)
    make(tool="shell").parameters["command"] = "ls"
    assert make(tool="shell").parameters == {}


def test_an_unchecked_record_cannot_be_changed() -> None:
    message = unchecked(Message)(role="user", content="How much is 2 + 2?")
    with pytest.raises(ValidationError, match="frozen"):
        message.content = "4"  # type: ignore[misc]
