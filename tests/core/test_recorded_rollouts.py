"""Recorded rollouts in Winnow's own form: read line by line, numbered, and set aside with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.importers import IMPORTERS, RecordedFile, read_rollouts
from core.rollout import Message, Score, Step, Usage
from core.verifiers import VERIFIERS

TASK = {"id": "t1", "question": "Capital of France?", "answer": "Paris"}


def line(task: dict[str, Any] = TASK, **more: Any) -> bytes:
    return json.dumps({"winnow_rollout": 1, "task": task, **more}).encode()


def read(*lines: bytes) -> RecordedFile:
    return read_rollouts(b"\n".join(lines) + b"\n", name="r.jsonl")


def reasons(file: RecordedFile) -> list[tuple[int, str]]:
    return [(r.line, r.reason) for r in file.rejected]


def test_everything_of_a_line_is_kept() -> None:
    (got,) = read(
        line(
            replicate=3,
            model="m",
            messages=[{"role": "user", "content": "q"}, {"role": "tool", "content": "out", "name": "look"}],
            steps=[{"tool": "look", "parameters": {"at": [1, None]}, "output": "out", "success": False,
                    "error": "gone", "duration_s": 0.5}],
            answer="Paris", finish_reason="stop",
            scores={"text": {"value": 1.0, "reason": "r", "parts": {"form": 0.5}}},
            reward=-1.5, error=None, usage={"calls": 1, "prompt_tokens": 2, "completion_tokens": 3, "cost_usd": 0.1},
            duration_s=2.0, metadata={"habit": "good"},
        )
    ).rollouts  # fmt: skip
    assert (got.task.id, got.replicate, got.model, got.reward, got.error) == ("t1", 3, "m", -1.5, None)
    assert got.trajectory.messages == (
        Message(role="user", content="q"),
        Message(role="tool", content="out", name="look"),
    )
    assert got.trajectory.steps == (
        Step(
            tool="look",
            parameters={"at": [1, None]},
            output="out",
            success=False,
            error="gone",
            duration_s=0.5,
        ),
    )
    assert (got.trajectory.answer, got.trajectory.finish_reason) == ("Paris", "stop")
    assert got.scores == {"text": Score(value=1.0, reason="r", parts={"form": 0.5})}
    assert got.usage == Usage(calls=1, prompt_tokens=2, completion_tokens=3, cost_usd=0.1)
    assert (got.duration_s, got.metadata, got.line) == (2.0, {"habit": "good"}, 1)


def test_only_the_mark_and_the_task_are_needed() -> None:
    (got,) = read(line()).rollouts
    assert (got.replicate, got.model, got.reward, got.scores, got.trajectory.answer) == (0, "", None, {}, "")


def test_without_an_answer_the_last_word_of_the_assistant_is_it() -> None:
    said = [
        {"role": "assistant", "content": "Hm"},
        {"role": "assistant", "content": "Paris"},
        {"role": "user", "content": "ok"},
    ]
    assert read(line(messages=said)).rollouts[0].trajectory.answer == "Paris"
    assert read(line(messages=said, answer="")).rollouts[0].trajectory.answer == ""


def test_missing_replicates_are_numbered_around_those_that_are_there() -> None:
    other = {**TASK, "id": "t2"}
    file = read(line(), line(replicate=1), line(), line(other), line(model="m"), line(replicate=0))
    assert [(r.task.id, r.model, r.replicate) for r in file.rollouts] == [
        ("t1", "", 2), ("t1", "", 1), ("t1", "", 3), ("t2", "", 0), ("t1", "m", 0), ("t1", "", 0)
    ]  # fmt: skip
    assert file.notes == ("4 rollouts had no replicate number and were numbered in their order",)


def test_the_same_replicate_twice_is_set_aside() -> None:
    file = read(line(replicate=0, model="m"), line(replicate=0), line(replicate=0, model="m", answer="x"))
    assert len(file.rollouts) == 2
    assert reasons(file) == [(3, "replicate 0 of task 't1' with model 'm' is already in line 1")]


def test_a_rejected_line_takes_no_replicate_number() -> None:
    file = read(line({**TASK, "id": ""}, replicate=0), line(replicate=0, nonsense=1), line(replicate=0))
    assert [r.line for r in file.rollouts] == [3]


def test_another_task_under_a_known_id_is_set_aside() -> None:
    file = read(line(), line({**TASK, "answer": "Rome"}), line({**TASK, "domain": "general"}))
    assert reasons(file) == [(2, "task 't1' has another answer than in line 1")]
    assert len(file.rollouts) == 2


def test_numbers_that_are_none_are_unscored_and_counted() -> None:
    file = read_rollouts(
        line(reward=float("nan"), scores={"a": {"value": float("inf"), "reason": "why"}, "b": {"value": 0.0}})
        + b"\n"
        + line(reward=float("-inf"))
        + b"\n"
        + line(reward=7).replace(b"7", b"1e999")
        + b"\n"
        + line(steps=[{"tool": "x", "parameters": {"n": float("nan"), "s": "\ud800"}}])
    )
    assert [r.reward for r in file.rollouts] == [None] * 4
    assert file.rollouts[0].scores == {
        "a": Score(reason="not a finite number in the file (inf); why"),
        "b": Score(value=0.0),
    }
    assert file.rollouts[3].trajectory.steps[0].parameters == {"n": None, "s": "\ufffd"}
    assert file.notes[:3] == (
        "3 rewards were no finite number and are stored as unscored",
        "1 scores were no finite number and are stored as unscored",
        "in 1 rollouts half characters or numbers that are not finite were replaced",
    )
    file.model_dump_json().encode()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"[]", "the line is no JSON object"),
        (b"3", "the line is no JSON object"),
        (b'{"task": {}}', "this is no Winnow rollout: 'winnow_rollout' is missing"),
        (line().replace(b": 1", b": 2", 1), "'winnow_rollout' is 2; this Winnow reads version 1"),
        (line().replace(b": 1", b": true", 1), "'winnow_rollout' is True; this Winnow reads version 1"),
        (b'{"winnow_rollout": 1}', "task: it is missing"),
        (line(rewrad=1), "rewrad: there is no such field"),
        (line({"id": "t"}), "task: question: it is missing"),
        (line({**TASK, "answr": "x"}), "task: answr: there is no such field"),
        (line({**TASK, "id": "t2", "verifier": {"kind": "txt"}}),
         f"There is no verifier 'txt'; use one of: {', '.join(VERIFIERS)}"),
        (line(replicate=-1), "replicate: it should be greater than or equal to 0"),
        (line(scores={"a": {"value": 2}}), "scores.a.value: it should be less than or equal to 1"),
        (line(messages=[{"role": "user", "content": None}]), "messages.0.content: it should be text"),
        (line(task="t1"), None),
        (b"{oops}", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        (b"[" * 100_000, "the JSON is nested too deeply"),
        (b'{"winnow_rollout": ' + b"9" * 5000 + b"}", None),
    ],
)  # fmt: skip
def test_a_bad_line_is_set_aside_and_the_others_are_read(bad: bytes, reason: str | None) -> None:
    file = read(line(), bad, line())
    assert [r.line for r in file.rollouts] == [1, 3]
    assert [r.line for r in file.rejected] == [2]
    assert reason in (None, file.rejected[0].reason)
    assert "\n" not in file.rejected[0].reason


def test_a_cut_off_last_line_and_blank_lines_and_a_byte_order_mark() -> None:
    file = read_rollouts(b"\xef\xbb\xbf" + line() + b"\r\n\r\n" + line() + b"\n" + line()[:-9])
    assert [r.line for r in file.rollouts] == [1, 3]
    assert reasons(file) == [(4, "the line is cut off: its JSON ends in the middle")]


def test_a_long_line_is_kept_in_part_when_it_is_set_aside() -> None:
    file = read(line(), line(answer="x" * 100_000, oops=1))
    assert file.rejected[0].raw.endswith("more characters)")
    assert len(file.rejected[0].raw) < 2_100


def test_utf_16_is_read_and_noted() -> None:
    file = read_rollouts((line() + b"\n" + line()).decode().encode("utf-16"))
    assert len(file.rollouts) == 2
    assert file.notes[0] == "read as UTF-16"


def test_tasks_that_cannot_be_verified_are_noted_and_kept() -> None:
    file = read(line({"id": "t", "question": "q"}, reward=1.0))
    assert file.rollouts[0].reward == 1.0
    assert "1 tasks cannot be verified here, only taken as scored in the file" in file.notes[-1]


def test_the_hash_tells_whether_a_file_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(line() + b"\n")
    assert read_rollouts(path).content_hash == read(line()).content_hash
    assert read(line(answer="x")).content_hash != read(line()).content_hash


def test_an_unknown_format_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match="no format 'verl' of recorded rollouts; use one of: winnow_jsonl"):
        read_rollouts(line(), format="verl")
    with pytest.raises(InputError, match="f is in no format of recorded rollouts that Winnow knows"):
        read_rollouts(b'{"a": 1}', name="f")
    with pytest.raises(InputError, match="r is empty"):
        read_rollouts(b"", name="r")


def test_a_named_format_is_not_guessed_at() -> None:
    file = read_rollouts(b'{"a": 1}', format="winnow_jsonl")
    assert reasons(file) == [(1, "this is no Winnow rollout: 'winnow_rollout' is missing")]
    assert set(IMPORTERS) == {"winnow_jsonl"}


json_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
members = st.dictionaries(
    st.sampled_from(
        ["task", "replicate", "model", "messages", "steps", "answer", "scores", "reward", "error", "usage"]
    ),
    json_value,
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(members, max_size=5))
def test_every_line_is_a_rollout_or_set_aside(lines: list[dict[str, Any]]) -> None:
    file = read(line(), *(line(**content) for content in lines))
    assert len(file.rollouts) + len(file.rejected) == len(lines) + 1
    assert len({(r.task.id, r.model, r.replicate) for r in file.rollouts}) == len(file.rollouts)
    file.model_dump_json().encode()
