"""Sessions of OpenClaw are read as their program means them."""

from __future__ import annotations

import json
from pathlib import Path

from core.importers.attempt import Attempt
from core.importers.formats.openclaw import OpenClaw
from tests.importers.make_openclaw import PROMPTS, Session, make
from tests.importers.making import Counts, asides_of, attempts_of, counted, opened, read, remarks_of

FORM = OpenClaw()


def written(tmp_path: Path, it: Session) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in it.lines), encoding="utf-8")
    return path


def only(tmp_path: Path, it: Session) -> Attempt:
    (attempt,) = attempts_of(FORM, written(tmp_path, it))
    return attempt


def test_a_file_of_sessions_is_counted_as_a_person_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    counts = make(path)
    assert counts == Counts(
        attempts=12,
        tasks=3,
        unscored=12,
        steps=24,
        succeeded=15,
        failed=6,
        prompt_tokens=2760,
        completion_tokens=480,
    )
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == counts
    assert remarks_of(FORM, path) == []


def test_a_session_tells_its_task_its_model_and_what_it_cost(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    make(path, 1)
    (attempt,) = attempts_of(FORM, path)
    assert (attempt.question, attempt.namespace, attempt.model) == (PROMPTS[0], "widget", "m-1")
    assert (attempt.own_id, attempt.usage.calls, attempt.usage.cost_usd) == ("session-0000", 2, 0.5)
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("Done 0.", "stop")
    assert [s.turn for s in attempt.trajectory.steps] == [0, 0]


def test_an_exit_code_or_a_status_is_believed_before_a_mark_that_says_all_went_well(tmp_path: Path) -> None:
    it = Session()
    it.user("Go.")
    it.calls("a", "b", "c", "d")
    it.result("a", "x", details={"exitCode": 2})
    it.result("b", "y", details={"status": "error"})
    it.result("c", "z", error=True)
    it.result("d", "w", details={"exitCode": 0})
    steps = only(tmp_path, it).trajectory.steps
    assert [(s.success, s.told_by) for s in steps] == [
        (False, "exit code"),
        (False, "flag"),
        (False, "flag"),
        (True, "exit code"),
    ]


def test_a_branch_that_was_left_is_left_out_but_what_it_took_counts(tmp_path: Path) -> None:
    it = Session()
    it.user("Begin.")
    fork = it.say("Yes.")
    it.user("Wrong way.")
    it.calls("a")
    it.last = fork
    it.user("Right way.")
    it.say("Good.")
    attempt = only(tmp_path, it)
    assert [m.content for m in attempt.trajectory.messages] == ["Begin.", "Yes.", "Right way.", "Good."]
    assert (attempt.trajectory.steps, attempt.usage.calls) == ((), 3)
    assert attempt.metadata["turns_taken_back"] == 1


def test_a_branch_that_is_taken_up_again_is_whole(tmp_path: Path) -> None:
    it = Session()
    it.user("Begin.")
    fork = it.say("Yes.")
    left = it.user("One way.")
    it.last = fork
    it.user("Another way.")
    it.last = left
    it.say("On it.")
    attempt = only(tmp_path, it)
    assert [m.content for m in attempt.trajectory.messages] == ["Begin.", "Yes.", "One way.", "On it."]


def test_a_first_message_that_was_taken_back_is_not_the_task(tmp_path: Path) -> None:
    it = Session()
    it.user("Wrong task.")
    it.calls("a")
    it.last = None
    it.user("Right task.")
    it.say("Good.")
    attempt = only(tmp_path, it)
    assert attempt.question == "Right task."
    assert [m.content for m in attempt.trajectory.messages] == ["Right task.", "Good."]
    assert (attempt.trajectory.steps, attempt.usage.calls, attempt.metadata["turns_taken_back"]) == ((), 2, 1)


def test_a_damaged_entry_breaks_no_session(tmp_path: Path) -> None:
    it = Session()
    it.user("Begin.")
    it.say("Yes.")
    it.user("Go on.")
    it.say("Done.")
    path = written(tmp_path, it)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["/speci" + lines[0], lines[1], lines[2][:40], *lines[3:]]))
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    assert [m.content for m in attempt.trajectory.messages] == ["Begin.", "Go on.", "Done."]
    assert [a.place for a in asides_of(FORM, path)] == ["line 1", "line 3"]
    assert attempt.own_id is None


def test_a_last_reply_that_is_an_error_is_an_infrastructure_error(tmp_path: Path) -> None:
    it = Session()
    it.user("Go.")
    it.say("", stopReason="error", errorMessage="529 overloaded")
    assert only(tmp_path, it).error == "529 overloaded"
    it.say("Here.")
    assert only(tmp_path, it).error is None


def test_a_mirror_of_what_was_sent_is_no_reply(tmp_path: Path) -> None:
    it = Session()
    it.user("Go.")
    it.say("Gone.")
    it.say("Gone.", provider="openclaw", model="delivery-mirror")
    attempt = only(tmp_path, it)
    assert (attempt.usage.calls, len(attempt.trajectory.messages)) == (1, 2)


def test_what_the_user_ran_is_a_message_and_no_step(tmp_path: Path) -> None:
    it = Session()
    it.entry("message", message={"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0})
    it.entry(
        "message",
        message={"role": "bashExecution", "command": "id", "output": "b", "excludeFromContext": True},
    )
    it.user("Go.")
    attempt = only(tmp_path, it)
    assert [m.content for m in attempt.trajectory.messages] == ["$ ls\na", "Go."]
    assert (attempt.question, attempt.trajectory.steps) == ("Go.", ())


def test_what_a_sub_agent_did_is_no_attempt(tmp_path: Path) -> None:
    folder = tmp_path / "subagent-artifacts"
    folder.mkdir()
    it = Session()
    it.user("Look.")
    (attempt,) = attempts_of(FORM, written(folder, it))
    assert not attempt.ends


def test_unknown_entries_are_told(tmp_path: Path) -> None:
    it = Session()
    it.user("Go.")
    it.entry("compaction", summary="x")
    it.entry("brand_new")
    path = written(tmp_path, it)
    assert remarks_of(FORM, path) == ["Entries of type 'brand_new' are not known and were left out."]
    (attempt,) = attempts_of(FORM, path)
    assert attempt.metadata["compactions"] == 1


def test_other_files_are_not_taken_for_sessions(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"type": "message", "role": "user", "content": []}\n')
    assert not FORM.recognises(opened(path))
    assert remarks_of(FORM, path) == ["A session in which nobody said anything was left out."]
