"""One rollout, read a part at a time: outline, recoveries, excerpts, where a text is; and the lessons it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotFoundError
from core.rollout import Message, Step, Trajectory
from core.workspace import Workspace
from core.workspace.lessons_given import lessons_given
from core.workspace.reading import PRETTY, SHOWN, Reading, excerpt, indented, outline, raw, whole
from tests.pages.workspaces import fill

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def ok(tool: str, output: str = "ok", **parameters: object) -> Step:
    return Step(tool=tool, parameters=parameters, output=output, success=True)


def bad(tool: str, error: str = "HTTP 503", **parameters: object) -> Step:
    return Step(tool=tool, parameters=parameters, success=False, error=error)


def read(*steps: Step, messages: tuple[Message, ...] = (), answer: str = "") -> Reading:
    return Reading(Trajectory(steps=steps, messages=messages, answer=answer))


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return fill(tmp_path_factory.mktemp("reading") / "workspace")


# --- the outline ---


def test_retries_fold_under_the_first_try_and_the_last_one_makes_it_good() -> None:
    lines = outline(Trajectory(steps=(bad("get", n=1), bad("get", n=1), ok("get", n=1), ok("get", n=2))))
    assert [line.retry_of for line in lines] == [0, 1, 1, 0]
    assert [line.repeated for line in lines] == [2, 0, 0, 0]
    assert [line.recovered for line in lines] == [True, True, False, False]
    assert [line.recovers for line in lines] == [0, 0, 1, 0]


def test_a_switch_of_tools_recovers_and_a_failure_at_the_end_gives_up() -> None:
    lines = outline(Trajectory(steps=(bad("get"), ok("search"), bad("save"))))
    assert lines[0].after == "switched to another tool (search), which worked"
    assert lines[1].recovers == 1
    assert (lines[2].after, lines[2].recovered) == ("gave up", False)


def test_other_parameters_are_no_retry() -> None:
    lines = outline(Trajectory(steps=(bad("get", n=1), bad("get", n=2), ok("other"))))
    assert [line.retry_of for line in lines] == [0, 0, 0]
    assert [line.recovered for line in lines] == [False, True, False]


def test_no_recorded_result_is_neither_success_nor_failure() -> None:
    told, empty = outline(Trajectory(steps=(Step(tool="calc", output="1"), Step(tool="calc"))))
    assert (told.result, told.after) == ("not known", "")
    assert (empty.result, empty.after) == ("no result", "")


def test_how_a_call_ended_is_the_same_word_wherever_it_is_told() -> None:
    ends = {
        "succeeded": Step(tool="calc", success=True),
        "failed": Step(tool="calc", success=False, output="1"),
        "not known": Step(tool="calc", output="1"),
        "no result": Step(tool="calc"),
    }
    assert {word: step.ended for word, step in ends.items()} == {word: word for word in ends}
    assert Step(tool="calc", error="503").ended == "failed"
    assert [step.told for step in ends.values()] == [
        "calc succeeded",
        "calc failed",
        "calc ended nobody knows how",
        "calc gave no result",
    ]


def test_the_list_is_narrowed_by_outcome_and_tool() -> None:
    reading = read(bad("get"), ok("search"), ok("get"), bad("save"))
    assert [line.number for line in reading.only("failed")] == [1, 4]
    assert [line.number for line in reading.only("recovered")] == [1, 2]
    assert [line.number for line in reading.only("failed", "save")] == [4]
    assert reading.failed == [1, 4]


def test_a_line_stays_short_whatever_the_parameters_are() -> None:
    [line] = outline(Trajectory(steps=(ok("write", text="x" * 1_000_000, rows=list(range(100_000))),)))
    assert len(line.gist) <= 160


# --- long texts ---


def test_a_long_text_is_read_at_both_ends_and_its_length_is_told() -> None:
    text = "a" * SHOWN + "middle" + "z" * SHOWN
    found = excerpt(text)
    assert (found.head, found.tail, found.hidden) == ("a" * SHOWN, "z" * SHOWN, 6)
    assert excerpt(text, head=SHOWN + 6).head == text
    assert excerpt("short").hidden == 0


def test_a_step_of_twenty_megabytes_leaves_as_a_few_thousand_characters() -> None:
    step = read(ok("dump", "0123456789" * 2_000_000)).step(1)
    assert step.output.size == 20_000_000
    assert len(step.model_dump_json()) < 20_000


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_spacing_out_adds_white_space_between_the_parts_and_nothing_else(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps({"a": value}, indent=indent, ensure_ascii=ascii_only)
    spaced = indented(text)
    assert spaced is not None
    assert json.loads(spaced) == json.loads(text)
    assert "".join(spaced.split()) == "".join(text.split())


def test_numbers_and_repeated_keys_are_spaced_out_as_they_were_written() -> None:
    assert indented('{"a":1.50,"a":1e05}') == '{\n  "a": 1.50,\n  "a": 1e05\n}'


@pytest.mark.parametrize("text", ["{broken", "plain", "", "[" * 50_000, '{"a":"' + "x" * PRETTY + '"}'])
def test_what_is_no_short_json_stays_as_it_is(text: str) -> None:
    assert indented(text) is None


# --- find ---


def test_a_text_is_found_wherever_it_is_with_its_place() -> None:
    reading = read(
        ok("get", "x" * 10_000 + "Needle" + "y" * 10, q="needle"),
        messages=(Message(role="user", content="two needles: needle"),),
        answer="no",
    )
    found = reading.find("NEEDLE")
    assert found.total == 4
    assert [(p.kind, p.number, p.part, p.count) for p in found.places] == [
        ("step", 1, "parameters", 1),
        ("step", 1, "output", 1),
        ("message", 1, "content", 2),
    ]
    assert found.places[1].at == 10_000
    assert found.places[1].match == "Needle"


def test_the_answer_is_not_counted_twice_where_it_is_the_last_message() -> None:
    reading = read(messages=(Message(role="assistant", content="42"),), answer="42")
    assert reading.find("42").total == 1


def test_a_search_stops_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.workspace.reading.LOOKED", 50)
    assert not read(ok("a", "x" * 100)).find("x").complete
    assert read(ok("a", "x")).find("  ").total == 0


# --- from the store ---


def test_a_head_is_read_without_the_trajectory_and_the_mark_tells_when_that_changes(ws: Workspace) -> None:
    head = ws.store.trajectories.head("R2-0001-0")
    assert head.trajectory.steps == ()
    assert head.reward is not None
    assert ws.store.trajectories.mark("R2-0001-0") == ws.store.trajectories.mark("R2-0001-0")
    assert ws.store.trajectories.mark("R2-0001-0") != ws.store.trajectories.mark("R2-0001-1")
    with pytest.raises(NotFoundError):
        ws.store.trajectories.mark("R9-0001-0")


def test_the_files_hold_the_whole_text_and_the_whole_rollout(ws: Workspace) -> None:
    trajectory = ws.store.trajectories.get("R2-0001-1")
    assert raw(ws.store, "R2-0001-1", "step", 3) == trajectory.steps[2].output
    assert raw(ws.store, "R2-0001-1", "answer") == trajectory.answer
    assert json.loads(whole(ws.store, "R2-0001-1"))["trajectory"] == trajectory.model_dump(mode="json")


def test_a_run_says_where_its_recorded_rollouts_came_from(ws: Workspace) -> None:
    assert ws.store.trajectories.origin("R2") == ("recorded", "agent.jsonl")
    assert ws.store.trajectories.origin("R9") == ("", "")


def test_what_was_counted_tells_whether_a_lesson_was_used(ws: Workspace) -> None:
    task = ws.store.tasks.find("sums-train-0")
    used = {
        n: lessons_given(ws.store, ws.store.trajectories.head(f"R1-0001-{n}"), 1, task)[0] for n in (0, 2)
    }
    assert (used[0].used, used[0].told_by) == (True, "counted")
    assert used[2].used is False
    assert used[0].text.startswith("When only a number")


def test_where_nothing_tells_it_is_not_known(ws: Workspace) -> None:
    [one] = lessons_given(ws.store, ws.store.trajectories.head("R1-0001-0"), 1, None)
    assert (one.used, one.told_by) == (None, "")


def test_a_citation_tells_where_nothing_is_counted(tmp_path: Path) -> None:
    ws = fill(tmp_path / "workspace")
    ws.store.credits.cite({"R1-0001-0": ("E-0001",)})
    [one] = lessons_given(ws.store, ws.store.trajectories.head("R1-0001-0"), 1, None)
    assert (one.used, one.told_by) == (True, "its summary")
