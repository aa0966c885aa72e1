"""Results of verifiers 0.1 are read as a person reads them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from core.importers.attempt import Attempt
from core.importers.formats.verifiers_legacy import VerifiersLegacy
from tests.importers.make_verifiers_legacy import METADATA, make, row
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import mutations, read_lines

FORM = VerifiersLegacy()


def write(folder: Path, *rows: Any) -> Path:
    path = folder / "results.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    return path


def one(folder: Path, **changes: Any) -> Attempt:
    (attempt,) = attempts_of(FORM, write(folder, row(0, 7) | changes))
    return attempt


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.scored, told.errors, told.steps) == (12, 3, 9, 3, 12)
    assert (told.prompt_tokens, told.completion_tokens) == (360, 48)


def test_groups_are_the_repeats_of_an_example(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    make(path, 12)
    attempts = attempts_of(FORM, path)
    assert Counter((a.namespace, a.task_id, a.model) for a in attempts) == {
        ("adding", str(n), "maker-1"): 4 for n in range(3)
    }
    assert {(a.repeat, a.own_id) for a in attempts} == {(None, None)}


def test_a_crash_with_reward_0_is_an_error_and_no_zero(tmp_path: Path) -> None:
    (attempt,) = attempts_of(FORM, write(tmp_path, row(0, 7, broken=True)))
    assert attempt.error == "ModelError() -> Refused()"
    assert attempt.scores["reward"].value == 0.0


def test_an_error_that_is_plain_text_is_an_error(tmp_path: Path) -> None:
    assert one(tmp_path, error="TimeoutError()").error == "TimeoutError()"


def test_calls_that_are_json_in_strings_become_steps(tmp_path: Path) -> None:
    (step,) = one(tmp_path).trajectory.steps
    assert (step.tool, step.parameters, step.output) == ("add", {"a": 7, "b": 2}, "9")


def test_a_result_without_a_mark_is_no_success(tmp_path: Path) -> None:
    completion = row(0, 7)["completion"]
    completion[1]["content"] = "adder overheated"
    assert one(tmp_path, completion=completion).trajectory.steps[0].success is None


def test_a_call_without_a_result_is_no_success(tmp_path: Path) -> None:
    (attempt,) = attempts_of(FORM, write(tmp_path, row(0, 7, broken=True)))
    assert [s.success for s in attempt.trajectory.steps] == [None]


def test_metrics_at_the_top_are_not_read_twice_and_reserved_names_are_no_metrics(tmp_path: Path) -> None:
    assert set(one(tmp_path).scores) == {"reward", "exact", "num_turns"}
    bare = one(tmp_path, metrics=None, generation_ms=5.0)
    assert set(bare.scores) == {"reward", "exact", "num_turns"}


def test_a_metric_by_the_name_of_the_reward_does_not_stand_in_its_place(tmp_path: Path) -> None:
    assert one(tmp_path, metrics={"reward": 0.25, "exact": 1.0}).scores["reward"].value == 1.0


def test_a_reward_that_is_no_finite_number_is_ungraded(tmp_path: Path) -> None:
    assert one(tmp_path, reward=float("nan")).scores["reward"].value is None
    assert one(tmp_path, reward=None).scores["reward"].value is None


def test_a_prompt_may_be_null_or_text(tmp_path: Path) -> None:
    assert one(tmp_path, prompt=None).question == "example 7"
    assert one(tmp_path, prompt="What is 7 + 2?", completion=" 9").question == "What is 7 + 2?"
    assert one(tmp_path, prompt="What is 7 + 2?", completion=" 9").trajectory.answer == " 9"


def test_an_environment_of_environments_names_the_part(tmp_path: Path) -> None:
    assert one(tmp_path, task="sub").namespace == "adding/sub"


def test_a_reply_that_was_cut_ended_for_its_length(tmp_path: Path) -> None:
    assert one(tmp_path, is_truncated=True).trajectory.finish_reason == "length"
    assert one(tmp_path).duration_s == 0.5


def test_without_metadata_it_is_said_that_the_model_is_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, row(0, 7))
    (tmp_path / "metadata.json").unlink()
    assert remarks_of(FORM, path) == [
        "No metadata.json stands beside the results, so the model is not known."
    ]
    (tmp_path / "metadata.json").write_text("{")
    assert len(remarks_of(FORM, path)) == 1


def test_a_bad_line_is_set_aside_and_the_others_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path, row(0, 7), "{broken", json.dumps({"example_id": 1, "reward": 1.0}), "[]", row(1, 7)
    )
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 2", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        ("line 3", "it is no rollout: 'completion' is missing"),
        ("line 4", "the line is no JSON object"),
    ]
    assert [a.place for a in attempts_of(FORM, path)] == ["line 1", "line 5"]


def test_neither_metadata_nor_a_pointer_is_such_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, row(0, 7))
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    assert not FORM.recognises(opened(path))
    assert not FORM.recognises(opened(tmp_path / "metadata.json"))


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    rows = list(mutations(row(0, 7) | {"info": {"a": 1}, "task": "t"}))
    assert sum(read_lines(FORM, tmp_path / "results.jsonl", rows)) == len(rows)


def test_a_reward_for_what_was_not_recorded_is_no_attempt(tmp_path: Path) -> None:
    path = write(tmp_path, row(0, 7), row(1, 7) | {"completion": [], "stop_condition": None})
    [aside] = asides_of(FORM, path)
    assert "nothing is recorded of what the model did" in aside.reason
    assert len(attempts_of(FORM, path)) == 1
    assert one(tmp_path, completion=[], stop_condition="prompt_too_long").trajectory.answer == ""
