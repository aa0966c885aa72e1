"""Logs of Inspect AI become attempts, and what these add up to is what the log itself says."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers import json_stream
from core.importers.attempt import Attempt
from core.importers.formats import FORMATS
from core.importers.formats.inspect_eval import Inspect
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.make_inspect import archive, as_json, header, in_pieces, make, sample, zipfile
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import as_stored, mutations

INSPECT = Inspect()
METHODS = pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD])


def written(path: Path, *samples: dict[str, Any], **changes: Any) -> Path:
    """A finished log of these samples, whose header says nothing of scores."""
    archive(path / "log.eval", header(len(samples), **changes), samples)
    return path / "log.eval"


def only(path: Path) -> Attempt:
    (attempt,) = attempts_of(INSPECT, path)
    return attempt


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_comes_in_as_a_person_counts_it(tmp_path: Path, name: str) -> None:
    counts = make(tmp_path / name)
    found = read(INSPECT, tmp_path / name)
    assert counted(found) == counts
    assert (counts.attempts, counts.tasks, counts.scored, counts.errors) == (12, 3, 9, 3)
    assert (counts.steps, counts.succeeded, counts.failed) == (12, 9, 3)
    assert (counts.prompt_tokens, counts.completion_tokens) == (480, 108)
    assert len(found) == counts.attempts, "a log that agrees with its own header needs no remark"


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    make(tmp_path / name)
    (tmp_path / name).rename(tmp_path / "data.bin")
    assert INSPECT.recognises(opened(tmp_path / "data.bin"))
    assert next(f for f in FORMATS if f.recognises(opened(tmp_path / "data.bin"))).name == "inspect"


def test_a_large_log_as_json_is_known_by_its_first_members(tmp_path: Path) -> None:
    as_json(tmp_path / "log.json", header(3), (sample(n, 1, notes="x" * 900_000) for n in range(3)))
    assert INSPECT.recognises(opened(tmp_path / "log.json"))


def test_a_log_of_a_data_set_with_very_many_ids_is_known(tmp_path: Path) -> None:
    head = header(1)
    head["eval"]["dataset"]["sample_ids"] = [f"sample-{n:09d}" for n in range(60_000)]
    as_json(tmp_path / "log.json", head, [sample(1, 1)])
    assert INSPECT.recognises(opened(tmp_path / "log.json"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 2}', b"PK\x03\x04", b"\xff\xfe{", b"PK"])
def test_other_files_are_not_taken_for_a_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert not INSPECT.recognises(opened(tmp_path / "a"))


@METHODS
def test_every_compression_of_inspect_is_read(tmp_path: Path, method: int) -> None:
    archive(tmp_path / "log.eval", header(2), [sample(1, 1), sample(1, 2)], method=method)
    with zipfile.ZipFile(tmp_path / "log.eval") as file:
        assert {m.compress_type for m in file.infolist()} == {method}
    assert [a.repeat for a in attempts_of(INSPECT, tmp_path / "log.eval")] == [1, 2]


def test_a_sample_becomes_an_attempt(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, sample("France", 2, fails=True)))
    assert attempt.place == "samples/France_epoch_2.json"
    assert (attempt.namespace, attempt.task_id) == ("capitals (atlas)", "France")
    assert attempt.question == "What is the capital of France?"
    assert (attempt.system, attempt.expected) == ("Use the tools.", "Paris")
    assert attempt.model == "maker/model-1"
    assert attempt.agent == "use_tools + generate, temperature 0.5"
    assert (attempt.run, attempt.repeat, attempt.own_id) == ("eval-1", 2, "uuid-France-2")
    assert attempt.trajectory.answer == "The capital of France is Paris."
    assert attempt.trajectory.finish_reason == "stop"
    assert (attempt.usage.calls, attempt.duration_s) == (2, 1.5)
    assert attempt.task_metadata == {"level": 1}
    (step,) = attempt.trajectory.steps
    assert (step.tool, step.parameters, step.success) == ("lookup", {"country": "France"}, False)
    assert (step.error, step.told_by) == ("timeout: no reply in 5 s", "flag")
    assert attempt.orphans == 0


def test_a_result_without_an_error_is_a_success_by_the_format_and_a_call_without_a_result_is_none(
    tmp_path: Path,
) -> None:
    whole, cut = sample(1, 1), sample(1, 2)
    cut["messages"] = cut["messages"][:3]
    first, second = attempts_of(INSPECT, written(tmp_path, whole, cut))
    assert [s.success for s in first.trajectory.steps] == [True]
    assert [(s.success, s.told_by) for s in second.trajectory.steps] == [(None, "")]


def test_a_result_without_a_call_is_an_orphan(tmp_path: Path) -> None:
    lost = sample(1, 1)
    del lost["messages"][2]
    attempt = only(written(tmp_path, lost))
    assert (attempt.orphans, attempt.trajectory.steps) == (1, ())
    assert any(m.role == "tool" for m in attempt.trajectory.messages)


def test_ids_are_told_apart_as_text(tmp_path: Path) -> None:
    log = written(tmp_path, sample(1, 1), sample("1", 2), sample("a/b c", 1))
    assert [a.task_id for a in attempts_of(INSPECT, log)] == ["1", "1", "a/b c"]


@pytest.mark.parametrize(
    ("value", "read_as", "guessed"),
    [
        ("C", 1.0, True),
        ("I", 0.0, True),
        ("P", 0.5, True),
        ("N", 0.0, True),
        ("yes", 1.0, True),
        ("0.25", 0.25, False),
        (True, 1.0, False),
        (-3, -3.0, False),
        (float("nan"), None, False),
        ("nan", None, False),
        ("inf", None, False),
        ("mostly", None, False),
        (None, None, False),
        ({}, None, False),
    ],
)
def test_scores_are_numbers_words_that_stand_for_one_or_ungraded(
    tmp_path: Path, value: Any, read_as: float | None, guessed: bool
) -> None:
    seen = only(written(tmp_path, sample(1, 1, value))).scores["match"]
    assert (seen.value, seen.guessed) == (read_as, guessed)


def test_all_scorers_are_scores_and_none_is_called_the_reward(tmp_path: Path) -> None:
    scores = {
        "match": {"value": "C"},
        "rubric": {"value": {"style": 0.5, "facts": "I", "note": "fine"}},
        "votes": {"value": [1, 0]},
    }
    attempt = only(written(tmp_path, sample(1, 1, scores=scores)))
    assert {name: seen.value for name, seen in attempt.scores.items()} == {
        "match": 1.0,
        "rubric.style": 0.5,
        "rubric.facts": 0.0,
        "rubric.note": None,
        "votes.1": 1.0,
        "votes.2": 0.0,
    }
    assert attempt.reward is None


def test_a_sample_that_broke_off_is_an_error_even_with_a_score(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, sample(1, 1, 0, error={"message": "Sandbox died", "traceback": "..."})))
    assert attempt.error == "Sandbox died"


def test_a_limit_is_no_error(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, sample(1, 1, "I", limit={"type": "time", "limit": 60})))
    assert (attempt.error, attempt.trajectory.finish_reason) == (None, "time limit")
    assert attempt.metadata["limit"] == "time"


def test_what_was_invalidated_is_ungraded_and_the_header_still_agrees(tmp_path: Path) -> None:
    bad = sample(1, 1, "C", invalidation={"author": "me", "reason": "wrong key"})
    log = written(tmp_path, bad, sample(1, 2, "I"), accuracy=0.5)
    first, second = attempts_of(INSPECT, log)
    assert (first.scores["match"].value, second.scores["match"].value) == (None, 0.0)
    assert first.metadata["invalidated"] == "wrong key"
    assert remarks_of(INSPECT, log) == [
        "1 samples of log.eval were invalidated by hand; their scores are left out."
    ]


def test_a_log_that_crashed_has_good_samples(tmp_path: Path) -> None:
    archive(tmp_path / "log.eval", None, [sample(1, 1), sample(1, 2)], start=header(4))
    assert INSPECT.recognises(opened(tmp_path / "log.eval"))
    attempts = attempts_of(INSPECT, tmp_path / "log.eval")
    assert [(a.model, a.run) for a in attempts] == [("maker/model-1", "eval-1")] * 2
    assert remarks_of(INSPECT, tmp_path / "log.eval") == [
        "log.eval was never finished: the samples that it has were read."
    ]


@pytest.mark.parametrize("status", ["cancelled", "error"])
def test_the_samples_of_a_log_that_failed_are_good(tmp_path: Path, status: str) -> None:
    log = written(tmp_path, sample(1, 1), status=status, error={"message": "Too many errors"})
    assert only(log).scores["match"].value == 1.0
    assert (
        f"The status of log.eval is {status!r} (Too many errors): the samples" in remarks_of(INSPECT, log)[0]
    )


def test_a_header_alone_has_no_attempts_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(header(4)))
    assert INSPECT.recognises(opened(tmp_path / "log.json"))
    assert attempts_of(INSPECT, tmp_path / "log.json") == []
    assert remarks_of(INSPECT, tmp_path / "log.json") == [
        "log.json is only the header of a log: it holds no samples."
    ]


def test_a_log_without_samples_says_so(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert remarks_of(INSPECT, log) == [
        "log.eval holds no samples; it was logged without them, or ended too early."
    ]


def test_the_header_may_follow_the_samples(tmp_path: Path) -> None:
    head = header(1)
    late = {k: head.pop(k) for k in ("eval", "plan", "results")}
    as_json(tmp_path / "log.json", head, [sample(1, 1)], **late)
    assert only(tmp_path / "log.json").model == "maker/model-1"


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"accuracy": 0.5}, "The header of log.eval gives match accuracy 0.5; the samples have 0.75."),
        (
            {"stats": {"model_usage": {"m": {"input_tokens": 80, "output_tokens": 19}}}},
            "The header of log.eval counts 19 output tokens; the samples have 18.",
        ),
        ({"results": {"total_samples": 3}}, "The header of log.eval counts 3 samples; 2 could be read."),
    ],
)
def test_a_header_that_disagrees_with_its_samples_is_told(
    tmp_path: Path, changes: dict[str, Any], remark: str
) -> None:
    log = written(tmp_path, sample(1, 1, "C"), sample(1, 2, "P"), **changes)
    assert remarks_of(INSPECT, log) == [remark]


def test_the_mean_over_samples_of_the_means_over_epochs_leaves_out_what_was_not_scored(
    tmp_path: Path,
) -> None:
    samples = [
        sample(1, 1, 1),
        sample(1, 2, float("nan")),
        sample(2, 1, 0),
        sample(2, 2, 1),
        sample(3, 1, float("nan")),
    ]
    assert remarks_of(INSPECT, written(tmp_path, *samples, accuracy=0.75)) == []


def test_a_log_with_several_scores_says_which_it_puts_first(tmp_path: Path) -> None:
    results = header(1, accuracy=1.0)["results"]
    results["scores"].append(
        {"name": "style", "scorer": "rubric", "metrics": {"mean": {"name": "inspect_ai/mean", "value": 0.25}}}
    )
    results["headline"] = {"scorer": "match", "score": "match", "metric": "accuracy"}
    scores = {"match": {"value": "C"}, "rubric": {"value": {"style": 0.25}}}
    log = written(tmp_path, sample(1, 1, scores=scores), results=results)
    assert remarks_of(INSPECT, log) == ["log.eval names 'match' as the score to look at first."]


def test_long_texts_are_put_back_and_pictures_are_not(tmp_path: Path) -> None:
    text, picture = "a" * 32, "b" * 32
    made = sample(1, 1, attachments={text: "the long text", picture: "data:image/png;base64,AAAA"})
    made["input"] = f"attachment://{text}"
    made["messages"][1]["content"] = [
        {"type": "text", "text": f"See attachment://{text}."},
        {"type": "image", "image": f"attachment://{picture}"},
    ]
    attempt = only(written(tmp_path, made))
    assert attempt.question == "the long text"
    assert attempt.trajectory.messages[1].content == f"See the long text.\n[image attachment://{picture}]"


def test_choices_are_part_of_the_question(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, sample(1, 1, choices=["Paris", "Rome"], target=["A", "a"])))
    assert attempt.question == "What is the capital of 1?\n\nA) Paris\nB) Rome"
    assert (attempt.expected, attempt.task_metadata["targets"]) == ("A | a", ["A", "a"])


def test_the_question_of_a_conversation_is_what_the_user_says(tmp_path: Path) -> None:
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
    ]
    attempt = only(written(tmp_path, sample(1, 1, input=asked, messages=[])))
    assert (attempt.question, attempt.system) == ("Why?", "Be brief.")
    assert attempt.trajectory.answer == "The capital of 1 is Paris."


def test_a_logs_own_tools_of_a_server_have_their_results(tmp_path: Path) -> None:
    made = sample(1, 1)
    block = {
        "type": "tool_use",
        "tool_type": "web_search",
        "id": "w1",
        "name": "search",
        "arguments": '{"q": "x"}',
    }
    made["messages"][2] = {
        "role": "assistant",
        "content": [block | {"result": "found"}, block | {"id": "w2", "result": "", "error": "denied"}],
    }
    del made["messages"][3]
    steps = only(written(tmp_path, made)).trajectory.steps
    assert [(s.tool, s.parameters, s.output, s.success) for s in steps] == [
        ("search", {"q": "x"}, "found", True),
        ("search", {"q": "x"}, "denied", False),
    ]


def test_a_log_of_2024_has_its_usage_in_its_events(tmp_path: Path) -> None:
    made = sample(1, 1)
    inner = made["events"].pop()
    cached = {"event": "model", "cache": "read", "output": {"usage": {"input_tokens": 1000}}}
    events = [*made.pop("events"), {"event": "subtask", "events": [inner]}, cached]
    del made["model_usage"]
    made["input"] = f"tc://{'c' * 32}"
    made["transcript"] = {"events": events, "content": {"c" * 32: "The question"}}
    attempt = only(written(tmp_path, made))
    assert (attempt.usage.calls, attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (2, 40, 6)
    assert attempt.question == "The question"


def test_calls_that_only_the_events_show_are_told(tmp_path: Path) -> None:
    made = sample(1, 1)
    made["events"].append({"event": "tool", "id": "of a sub-agent", "function": "lookup"})
    (remark,) = remarks_of(INSPECT, written(tmp_path, made))
    assert "the events show more calls of tools than the conversation" in remark


def test_retries_and_edits_are_kept_as_facts(tmp_path: Path) -> None:
    made = sample(
        1, 1, error_retries=[{"message": "x"}], scores={"match": {"value": "C", "history": [{"value": "I"}]}}
    )
    assert only(written(tmp_path, made)).metadata == {"retries": 1, "edited": True}


def test_samples_in_pieces_are_put_together(tmp_path: Path) -> None:
    whole = [sample("France", e, "I" if e == 2 else "C", fails=e == 2) for e in (1, 2, 3)]
    expected = attempts_of(INSPECT, written(tmp_path, *whole))
    in_pieces(tmp_path / "pieces.eval", header(3), whole)
    assert INSPECT.recognises(opened(tmp_path / "pieces.eval"))
    pieces = attempts_of(INSPECT, tmp_path / "pieces.eval")
    assert [a.model_copy(update={"place": ""}) for a in pieces] == [
        a.model_copy(update={"place": ""}) for a in expected
    ]
    assert remarks_of(INSPECT, tmp_path / "pieces.eval") == []


def test_configurations_are_told_apart(tmp_path: Path) -> None:
    first = header(1)
    second, third = json.loads(json.dumps(first)), json.loads(json.dumps(first))
    second["plan"]["config"]["temperature"] = 1.0
    third["plan"]["steps"][0]["params"] = {"template": "Think."}
    agents = set()
    for head in (first, second, third):
        archive(tmp_path / "log.eval", head, [sample(1, 1)])
        agents.add(only(tmp_path / "log.eval").agent)
    assert len(agents) == 3


# What may be wrong with a file


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_in_gzip_is_the_same_log(tmp_path: Path, name: str) -> None:
    counts = make(tmp_path / name)
    (tmp_path / name).write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert INSPECT.recognises(opened(tmp_path / name))
    assert counted(read(INSPECT, tmp_path / name)) == counts


def cut(path: Path, size: int) -> Path:
    path.write_bytes(path.read_bytes()[:size])
    return path


@METHODS
def test_of_an_archive_that_is_cut_off_the_whole_samples_are_read(tmp_path: Path, method: int) -> None:
    log = tmp_path / "log.eval"
    archive(log, header(4), [sample(1, epoch) for epoch in (1, 2, 3, 4)], method=method)
    whole = attempts_of(INSPECT, log)
    with zipfile.ZipFile(log) as file:
        third = file.getinfo("samples/1_epoch_3.json").header_offset
    for size, place in ((third + 100, "samples/1_epoch_3.json"), (third + 10, "the end"), (third, "the end")):
        cut(log, size)
        assert INSPECT.recognises(opened(log))
        assert attempts_of(INSPECT, log) == whole[:2]
        assert [(a.place, a.reason) for a in asides_of(INSPECT, log)] == [
            (
                place,
                "the archive is cut off or broken here, and what follows is lost; 2 samples before it were found. Copy "
                "the log again for the others",
            )
        ]
        assert remarks_of(INSPECT, log) == []


@pytest.mark.parametrize("lost", [1, 30])
def test_an_archive_without_the_end_of_its_list_has_lost_no_sample(tmp_path: Path, lost: int) -> None:
    log = written(tmp_path, sample(1, 1), sample(1, 2))
    whole = read(INSPECT, log)
    cut(log, log.stat().st_size - lost)
    assert attempts_of(INSPECT, log) == whole
    assert remarks_of(INSPECT, log) == [
        "log.eval is cut off within its list of members; all 2 samples were found."
    ]


def test_the_members_of_an_archive_of_more_than_4_gb_are_found(tmp_path: Path) -> None:
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps(header(2)))
        for epoch in (1, 2):
            with file.open(f"samples/ü_epoch_{epoch}.json", "w", force_zip64=True) as member:
                member.write(json.dumps(sample("ü", epoch)).encode())
    cut(log, log.stat().st_size - 30)
    assert [(a.task_id, a.repeat) for a in attempts_of(INSPECT, log)] == [("ü", 1), ("ü", 2)]


def test_a_damaged_member_of_an_archive_that_is_cut_off_is_set_aside(tmp_path: Path) -> None:
    log = written(tmp_path, *(sample(1, epoch, notes=f"mark{epoch}") for epoch in (1, 2, 3)))
    with zipfile.ZipFile(log) as file:
        second, third = (file.getinfo(f"samples/1_epoch_{epoch}.json").header_offset for epoch in (2, 3))
    data = bytearray(log.read_bytes()[: third + 60])
    data[(second + third) // 2 : (second + third) // 2 + 8] = bytes(8)
    log.write_bytes(data)
    assert [a.repeat for a in attempts_of(INSPECT, log)] == [1]
    assert [a.place for a in asides_of(INSPECT, log)] == ["samples/1_epoch_2.json", "samples/1_epoch_3.json"]


def test_an_archive_without_a_whole_sample_is_refused_in_one_sentence(tmp_path: Path) -> None:
    log = written(tmp_path, sample(1, 1))
    with zipfile.ZipFile(log) as file:
        cut(log, file.getinfo("samples/1_epoch_1.json").header_offset + 100)
    assert INSPECT.recognises(opened(log))
    with pytest.raises(
        InputError, match=r"log\.eval is a damaged Inspect log: .*no whole sample is found; copy it again"
    ):
        read(INSPECT, log)


def test_an_archive_that_was_written_to_a_pipe_and_cut_off_is_refused(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError("a pipe has no places")

    with zipfile.ZipFile(pipe := Pipe(), "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps(header(1)))
        file.writestr("samples/1_epoch_1.json", json.dumps(sample(1, 1)))
        data = pipe.getvalue()
    (tmp_path / "log.eval").write_bytes(data)
    with pytest.raises(InputError, match="no whole sample is found"):
        read(INSPECT, tmp_path / "log.eval")


def test_a_sample_in_pieces_of_which_some_are_cut_off_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "log.eval"
    in_pieces(log, header(2), [sample("France", epoch) for epoch in (1, 2)])
    with zipfile.ZipFile(log) as file:
        cut(log, file.getinfo("samples/France_epoch_2/messages/4.json").header_offset)
    assert [a.repeat for a in attempts_of(INSPECT, log)] == [1]
    assert [(a.place, a.reason[:30]) for a in asides_of(INSPECT, log)] == [
        ("samples/France_epoch_2/sample.json", "messages of it are missing"),
        ("the end", "the archive is cut off or brok"),
    ]


def test_what_was_cut_off_comes_in_with_the_whole_log(tmp_path: Path, workspace: Workspace) -> None:
    log = written(tmp_path, *(sample(1, epoch) for epoch in (1, 2, 3)))
    data = log.read_bytes()
    with zipfile.ZipFile(log) as file:
        cut(log, file.getinfo("samples/1_epoch_3.json").header_offset)
    assert workspace.intake.add_rollouts([log], ImportOptions(), "ann").added == 2
    log.write_bytes(data)
    report = workspace.intake.add_rollouts([log], ImportOptions(), "ann")
    assert (report.added, report.known, report.groups_grown) == (1, 2, 1)


def test_json_that_is_cut_off_gives_what_came_before_and_one_line(tmp_path: Path) -> None:
    make(tmp_path / "log.json")
    data = (tmp_path / "log.json").read_bytes()
    (tmp_path / "log.json").write_bytes(data[: len(data) // 2])
    attempts, asides = attempts_of(INSPECT, tmp_path / "log.json"), asides_of(INSPECT, tmp_path / "log.json")
    assert 4 <= len(attempts) <= 7
    assert [(a.place, a.reason) for a in asides] == [
        (
            f"sample {len(attempts) + 1}",
            "its JSON is cut off: it ends in the middle; nothing after it was read",
        )
    ]


def test_a_damaged_member_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    log = written(tmp_path, *(sample(1, e, notes=f"mark{e}") for e in (1, 2, 3)))
    with zipfile.ZipFile(log) as file:
        middle = file.getinfo("samples/1_epoch_2.json")
    data = bytearray(log.read_bytes())
    at = middle.header_offset + 30 + len(middle.filename) + middle.compress_size // 2
    data[at : at + 8] = b"\x00" * 8
    log.write_bytes(data)
    assert [a.repeat for a in attempts_of(INSPECT, log)] == [1, 3]
    (aside,) = asides_of(INSPECT, log)
    assert aside.place == "samples/1_epoch_2.json"
    assert "damaged" in aside.reason


MORE = json.dumps(sample(1, 1)) + " and more"


@pytest.mark.parametrize("text", ["{", "<html>", "[1, 2]", '"a"', "", "null", "{}", '{"id": 1}', MORE])
def test_a_member_that_is_no_sample_is_set_aside(tmp_path: Path, text: str) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as file:
        file.writestr("header.json", json.dumps(header(2)))
        file.writestr("samples/1_epoch_1.json", text)
        file.writestr("samples/1_epoch_2.json", json.dumps(sample(1, 2)))
    assert [a.repeat for a in attempts_of(INSPECT, tmp_path / "log.eval")] == [2]
    assert [a.place for a in asides_of(INSPECT, tmp_path / "log.eval")] == ["samples/1_epoch_1.json"]


def test_a_sample_that_is_no_object_is_set_aside_in_json_too(tmp_path: Path) -> None:
    as_json(tmp_path / "log.json", header(3), [sample(1, 1), "garbage", sample(1, 2)])  # type: ignore[list-item]
    assert [a.repeat for a in attempts_of(INSPECT, tmp_path / "log.json")] == [1, 2]
    assert [(a.place, a.raw) for a in asides_of(INSPECT, tmp_path / "log.json")] == [("sample 2", "garbage")]


def test_a_member_in_another_encoding_is_set_aside(tmp_path: Path) -> None:
    odd = json.dumps(sample("Türkiye", 1), ensure_ascii=False).encode("latin-1")
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as file:
        file.writestr("header.json", json.dumps(header(1)))
        file.writestr("samples/1_epoch_1.json", odd)
    (aside,) = asides_of(INSPECT, tmp_path / "log.eval")
    assert aside.reason == "bytes of it are not UTF-8"


def test_a_sample_in_another_encoding_is_set_aside_in_json_too(tmp_path: Path) -> None:
    log = header(3) | {"samples": [sample(1, 1), sample("Türkiye", 1), sample(1, 2)]}
    (tmp_path / "log.json").write_bytes(json.dumps(log, ensure_ascii=False).encode("latin-1"))
    assert [a.repeat for a in attempts_of(INSPECT, tmp_path / "log.json")] == [1, 2]
    assert [(a.place, a.reason) for a in asides_of(INSPECT, tmp_path / "log.json")] == [
        ("sample 2", "bytes of it are not UTF-8")
    ]


def test_a_member_with_a_value_that_is_too_large_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = written(tmp_path, sample(1, 1), sample(1, 2, notes="x" * 60_000), sample(1, 3))
    monkeypatch.setattr(json_stream, "MAX_VALUE", 20_000)
    monkeypatch.setattr(json_stream, "CHUNK", 4_000)
    assert [a.repeat for a in attempts_of(INSPECT, log)] == [1, 3]
    assert [a.reason for a in asides_of(INSPECT, log)] == ["one value of it has more than 20,000 characters"]


def test_events_of_any_number_are_never_all_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sample(1, 1)
    made["events"] += [{"event": "info", "data": "x" * 900} for _ in range(200)]
    made["events_data"]["calls"] = [{"text": "x" * 900} for _ in range(200)]
    log = written(tmp_path, made)
    monkeypatch.setattr(json_stream, "MAX_VALUE", 20_000)
    monkeypatch.setattr(json_stream, "CHUNK", 4_000)
    assert only(log).usage.calls == 2


def test_a_sample_that_is_there_twice_comes_twice_with_the_same_id_of_its_own(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        log = written(tmp_path, sample(1, 1), sample(1, 1))
    assert [(a.repeat, a.own_id) for a in attempts_of(INSPECT, log)] == [(1, "uuid-1-1")] * 2


def test_a_value_of_any_type_in_any_place_of_a_sample_is_no_traceback(tmp_path: Path) -> None:
    changed = list(mutations(sample(1, 1, choices=["a"], limit={"type": "time"}, error={"message": "x"})))
    as_json(tmp_path / "log.json", header(len(changed)), changed)
    found = attempts_of(INSPECT, tmp_path / "log.json")
    assert len(found) + len(asides_of(INSPECT, tmp_path / "log.json")) == len(changed) > 500
    assert all(a.question for a in found)
    assert as_stored(found) == found


def test_a_value_of_any_type_in_any_place_of_a_header_is_no_traceback(tmp_path: Path) -> None:
    results = header(1, accuracy=1.0)["results"] | {"headline": {"score": "match"}}
    for head in mutations(header(1, results=results)):
        archive(tmp_path / "log.eval", head, [sample(1, 1)], method=zipfile.ZIP_STORED)
        (attempt,) = attempts_of(INSPECT, tmp_path / "log.eval")
        assert as_stored([attempt]) == [attempt]
