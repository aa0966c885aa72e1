"""A session that was imported while it ran, and again when it had gone on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.experience import Add
from core.importers import gathering
from core.importers.fates import Nowhere
from core.importers.formats import FORMATS
from core.importers.gathering import Gathering
from core.importers.going_on import goes_on
from core.importers.report import ImportOptions
from core.ports import silent
from core.rollout import Message, Rollout, Step, Trajectory
from core.store.spool import Spool
from core.workspace import Workspace
from core.workspace.bringing import look
from core.workspace.intake import ImportReport
from tests.importers.fake_format import FakeFormat, attempt, write
from tests.importers.make_claude_code import Session, usage

READ, EDIT = (
    {"tool": "read", "output": "text", "success": True},
    {"tool": "edit", "parameters": {"path": "a"}},
)


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def session(
    *said: str, steps: tuple[dict[str, Any], ...] = (), own: str = "s", **fields: Any
) -> dict[str, Any]:
    """One line: a session of these messages."""
    messages = [{"role": "assistant", "content": text} for text in said]
    trajectory = {"messages": messages, "steps": list(steps), "answer": said[-1]}
    return attempt(own_id=own, **fields) | {"trajectory": trajectory}


def bring(workspace: Workspace, path: Path, **options: Any) -> ImportReport:
    return workspace.intake.add_rollouts([path], ImportOptions(**options), "ann")


def read(spool: Spool, *paths: Path) -> None:
    Gathering(spool, ImportOptions(), Nowhere(), silent).take(paths, paths[0].parent / "scratch")


def states(spool: Spool) -> list[tuple[str, str]]:
    """(file, fate) of all attempts."""
    rows = spool.rows("SELECT name, fate FROM attempts JOIN files ON number = file ORDER BY name")
    return [(row["name"], row["fate"]) for row in rows]


def rollouts(workspace: Workspace, report: ImportReport) -> list[Rollout]:
    return list(workspace.store.groups.get(f"{report.run_id}-0001").rollouts)


def test_a_session_that_went_on_takes_the_place_of_its_earlier_state(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", session("one"), session("other", own="o", reward=0.0))
    first = bring(workspace, path)
    write(path, session("one", "two", steps=(READ,), reward=1.0), session("other", own="o", reward=0.0))
    seen = look(workspace.store, [path], ImportOptions(), lambda *_: None)
    again = bring(workspace, path)
    for report in (seen, again):
        assert (report.added, report.known, report.went_on, report.conflicts) == (0, 2, 1, 0)
        assert (report.nothing_new, report.set_aside_total) == (False, 0)
    one, _ = rollouts(workspace, first)
    assert (one.id, one.reward, len(one.trajectory.messages), len(one.trajectory.steps)) == (
        f"{first.run_id}-0001-0", 1.0, 2, 1,
    )  # fmt: skip
    recorded = workspace.store.recorded.get(one.id)
    assert recorded is not None
    assert recorded.scores == {"reward": 1.0}
    row = workspace.store.groups.page(first.run_id)[0][0]
    assert (row.status, row.size, row.scored, row.mean) == ("informative", 2, 2, 0.5)
    (event,) = workspace.store.events.page(kind="rollout.went_on")[0]
    assert (event.subject, event.actor, event.data["messages"]) == (one.id, "ann", [1, 2])


def test_a_session_that_went_on_is_known_afterwards_and_so_is_its_earlier_state(
    workspace: Workspace, tmp_path: Path
) -> None:
    early, late = (
        write(tmp_path / "a.jsonl", session("one")),
        write(tmp_path / "b.jsonl", session("one", "two")),
    )
    bring(workspace, early)
    bring(workspace, late)
    before, events = workspace.store.dump(), workspace.store.events.newest(100)
    for path in (late, early):
        report = bring(workspace, path)
        assert (report.nothing_new, report.known, report.went_on, report.conflicts) == (True, 1, 0, 0)
    assert workspace.store.dump() == before
    assert workspace.store.events.newest(100) == events


@pytest.mark.parametrize(
    "states",
    [
        [session("one"), session("one", "two"), session("one", "two", "three", reward=1.0)],
        [session("one", "two", "three"), session("one", "two", "three", reward=1.0)],
        [session(*("one", "two", "three")[:n], repeat=0, run="r", reward=1.0) for n in (1, 2, 3)],
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_of_several_states_of_a_session_in_one_import_the_last_one_comes_in(
    workspace: Workspace, tmp_path: Path, states: list[dict[str, Any]], seed: int
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    random.Random(seed).shuffle(order := list(states))
    for number, state in enumerate(order):
        write(folder / f"{number}.jsonl", state)
    seen = look(workspace.store, [folder], ImportOptions(), lambda *_: None)
    report = bring(workspace, folder)
    for told in (seen, report):
        assert (told.added, told.duplicates, told.conflicts) == (1, len(states) - 1, 0)
    (one,) = rollouts(workspace, report)
    assert (len(one.trajectory.messages), one.reward) == (3, 1.0)
    again = bring(workspace, folder)
    assert (again.nothing_new, again.conflicts) == (True, 0)


def test_states_of_a_known_session_bring_the_last_one(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    first = bring(workspace, write(folder / "a.jsonl", session("one")))
    write(folder / "b.jsonl", session("one", "two", "three"))
    write(folder / "c.jsonl", session("one", "two"))
    report = bring(workspace, folder)
    assert (report.added, report.went_on, report.conflicts) == (0, 1, 0)
    (one,) = rollouts(workspace, first)
    assert len(one.trajectory.messages) == 3
    assert bring(workspace, folder).nothing_new


@pytest.mark.parametrize(("changed", "stands"), [("b", "c"), ("c", "b")])
def test_of_three_states_the_last_stands_that_is_there_still(
    tmp_path: Path, changed: str, stands: str
) -> None:
    spool = Spool(tmp_path / "spool.db")
    paths = [
        write(tmp_path / f"{name}.jsonl", session(*["one", "two", "three"][: n + 1]))
        for n, name in enumerate("abc")
    ]
    read(spool, *paths)
    write(tmp_path / f"{changed}.jsonl", session("other", own="o"))
    read(spool, *paths)
    assert [name for name, fate in states(spool) if fate == "new"] == sorted(
        [f"{changed}.jsonl", f"{stands}.jsonl"]
    )
    spool.close()


@pytest.mark.parametrize("earlier_first", [True, False])
def test_a_reward_that_only_the_earlier_state_has_is_taken_or_told(
    workspace: Workspace, tmp_path: Path, earlier_first: bool
) -> None:
    states = [session("one", reward=1.0), session("one", "two")]
    report = bring(workspace, write(tmp_path / "a.jsonl", *(states if earlier_first else reversed(states))))
    (one,) = rollouts(workspace, report)
    assert len(one.trajectory.messages) == 2
    assert (one.reward, report.conflicts) == ((1.0, 0) if earlier_first else (None, 1))


def test_an_earlier_state_stands_where_the_later_one_cannot_be_kept(
    workspace: Workspace, tmp_path: Path
) -> None:
    later = session("one", "two", usage={"prompt_tokens": 10**30})
    report = bring(workspace, write(tmp_path / "a.jsonl", session("one"), later))
    assert (report.added, report.set_aside_total) == (1, 1)
    (one,) = rollouts(workspace, report)
    assert len(one.trajectory.messages) == 1


def test_an_earlier_state_stands_again_once_the_file_of_the_later_one_says_something_else(
    workspace: Workspace, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool.db")
    early = write(tmp_path / "a.jsonl", session("one", repeat=0))
    late = write(tmp_path / "b.jsonl", session("one", "two", repeat=0))
    read(spool, early, late)
    assert states(spool) == [("a.jsonl", "duplicate"), ("b.jsonl", "new")]
    write(late, session("other", own="o"))
    read(spool, early, late)
    assert states(spool) == [("a.jsonl", "new"), ("b.jsonl", "new")]
    spool.close()


@pytest.mark.parametrize(
    "other",
    [
        session("another beginning"),
        session("one", "two", task="t2"),
        session("one", reward=0.5),
        session("one", error="it crashed"),
        session("one", reward=1.0, model="other"),
    ],
)
def test_two_states_that_contradict_each_other_are_told(
    workspace: Workspace, tmp_path: Path, other: dict[str, Any]
) -> None:
    report = bring(
        workspace, write(tmp_path / "a.jsonl", session("one", reward=1.0, model="m"), {"model": "m"} | other)
    )
    assert (report.added, report.duplicates, report.conflicts) == (1, 0, 1)
    assert report.set_aside[0].reason == "another state of it is at line 1 of a.jsonl"


@pytest.mark.parametrize(
    "later",
    [
        session("another beginning", "two", reward=1.0),
        session("one", "two", reward=1.0, task="t2"),
        session("one", reward=0.5),
        session("one", reward=1.0, error="it crashed"),
    ],
)
def test_what_contradicts_a_known_session_is_set_aside(
    workspace: Workspace, tmp_path: Path, later: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.jsonl", session("one", reward=1.0))
    first = bring(workspace, path)
    before = rollouts(workspace, first)
    report = bring(workspace, write(path, later))
    assert (report.went_on, report.conflicts) == (0, 1)
    assert "in another state; that one stays" in report.set_aside[0].reason
    assert rollouts(workspace, first) == before


def test_a_reward_that_a_known_session_got_since_is_taken(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", session("one", usage={"calls": 1}))
    first = bring(workspace, path)
    report = bring(workspace, write(path, session("one", reward=0.5, usage={"calls": 2})))
    assert (report.known, report.went_on, report.regraded) == (1, 0, 1)
    assert rollouts(workspace, first)[0].reward == 0.5


def test_what_was_said_of_a_session_stays_when_it_goes_on_and_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    other = session("other", own="o", reward=0.0)
    path = write(tmp_path / "a.jsonl", session("one", steps=(EDIT,)), other)
    (tmp_path / "r.csv").write_text("session_id,reward\ns,1\n")
    first = bring(workspace, path, rewards=tmp_path / "r.csv")
    one, two = rollouts(workspace, first)
    workspace.rescoring.accept([one.id], True, "ann")
    lesson = Add(text="Run the tests before you edit.", domain="general")
    workspace.correcting.correct(one.id, lesson, "ann", step=1)
    groups, credits = workspace.store.groups, workspace.store.credits
    groups.save_critiques({one.id: ("stale", '{"of": 1}'), two.id: ("fresh", '{"of": 2}')}, {}, {})
    credits.cite({one.id: ["E-0001"], two.id: ["E-0002"]})

    write(path, session("one", "two", steps=({**EDIT, "output": "ok", "success": True}, READ)), other)
    report = bring(workspace, path)
    assert (report.went_on, [r.text for r in report.remarks if "stays with it" in r.text] != []) == (1, True)
    one, two = rollouts(workspace, first)
    assert (one.accepted, one.reward, one.trajectory.answer) == (True, 1.0, "two")
    (correction,) = workspace.correcting.of(one.id)
    assert one.trajectory.steps[correction.evidence.steps[one.id] - 1].tool == "edit"
    assert (one.summary, groups.critique(one.id)) == ("", ""), "what a model said was of its earlier state"
    assert (two.summary, groups.critique(two.id)) == ("fresh", '{"of": 2}')
    assert set(credits.cited(one.group_id)) == {two.id}


def test_a_session_that_went_on_is_saved_once_though_the_import_was_killed(
    workspace: Workspace, tmp_path: Path
) -> None:
    def killed(stage: str, done: int, total: int) -> None:
        if stage == "groups" and done == total:
            raise KeyboardInterrupt

    path = write(tmp_path / "a.jsonl", session("one"))
    bring(workspace, path)
    write(path, session("one", "two"))
    with pytest.raises(KeyboardInterrupt):
        workspace.intake.add_rollouts([path], ImportOptions(), "ann", killed)
    assert bring(workspace, path).went_on == 1
    assert len(workspace.store.events.page(kind="rollout.went_on")[0]) == 1
    assert bring(workspace, path).nothing_new


def test_a_session_whose_model_is_told_later_stays_in_its_group(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", session("one"))
    first = bring(workspace, path)
    models = []
    for said, model in (
        (("one", "two"), "m"),
        (("one", "two", "three"), "m"),
        (("one", "two", "three", "4"), "n"),
    ):
        report = bring(workspace, write(path, session(*said, model=model)))
        assert (report.went_on, report.conflicts) == (1, 0)
        models.append(rollouts(workspace, first)[0].model)
    assert models == ["m", "m", "n"]
    assert any("names another model now" in r.text for r in report.remarks)
    assert workspace.store.groups.page()[1] == 1


def test_a_side_file_grades_a_session_as_it_goes_on(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", session("one"))
    first = bring(workspace, path)
    (tmp_path / "r.csv").write_text("session_id,reward\ns,1\n")
    report = bring(workspace, write(path, session("one", "two")), rewards=tmp_path / "r.csv")
    assert (report.went_on, rollouts(workspace, first)[0].reward) == (1, 1.0)


def test_secrets_of_a_session_that_went_on_are_masked(workspace: Workspace, tmp_path: Path) -> None:
    secret = "sk-" + "proj-" + "a1B2" * 10
    path = write(tmp_path / "a.jsonl", session(f"The key is {secret}."))
    first = bring(workspace, path)
    report = bring(workspace, write(path, session(f"The key is {secret}.", f"Again: {secret}")))
    assert report.went_on == 1
    assert secret not in workspace.store.dump()
    assert rollouts(workspace, first)[0].trajectory.answer == "Again: [key 1]"


def test_a_claude_code_session_imported_while_it_runs_goes_on(workspace: Workspace, tmp_path: Path) -> None:
    path, whole = tmp_path / "s1.jsonl", Session("s1")
    whole.user("Make the tests pass.")
    whole.assistant("m1", {"type": "text", "text": "I look."}, usage(1, 0, 0, 1))
    states = [len(whole.lines)]
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "pytest"}}
    whole.assistant("m1", call, usage(1, 0, 0, 2))
    states.append(len(whole.lines))
    whole.result("c1", "2 passed")
    states.append(len(whole.lines))
    whole.call("m1", "c2", usage(1, 0, 0, 3), tool="Read")  # a turn goes on while its first call returns
    states.append(len(whole.lines))
    whole.assistant("m2", {"type": "text", "text": "They pass."}, usage(2, 0, 0, 3))
    states.append(len(whole.lines))
    counts, first = [], None
    for n in states:
        path.write_text("".join(json.dumps(line) + "\n" for line in whole.lines[:n]))
        report = bring(workspace, path)
        first = first or report
        counts.append((report.added, report.went_on, report.conflicts))
    assert counts == [(1, 0, 0)] + [(0, 1, 0)] * 4
    (rollout,) = rollouts(workspace, first)
    assert (rollout.trajectory.answer, [s.output for s in rollout.trajectory.steps]) == (
        "They pass.", ["2 passed", ""],
    )  # fmt: skip


def _talk(*said: str, answer: str = "", steps: tuple[Step, ...] = (), ended: str | None = None) -> Trajectory:
    messages = tuple(Message(role="assistant", content=text) for text in said)
    return Trajectory(messages=messages, steps=steps, answer=answer, finish_reason=ended)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (_talk("a"), _talk("a", "b"), True),
        (_talk("a"), _talk("a\n[calls x with {}]"), True),
        (_talk("a", "b"), _talk("a more", "b"), False),
        (_talk("a", "b"), _talk("a"), False),
        (_talk("a"), _talk("a"), False),
        (_talk("a"), _talk("a", ended="stop"), True),
        (_talk("a", ended="length"), _talk("a", ended="stop"), False),
        (_talk("a", answer="a"), _talk("a", answer="b"), False),
        (_talk(answer="a"), _talk("b", answer="b"), False),
        (_talk(steps=(Step(tool="x"),)), _talk(steps=(Step(tool="x", output="o", success=True),)), True),
        (_talk(steps=(Step(tool="x"),)), _talk(steps=(Step(tool="y", output="o"),)), False),
        (_talk(steps=(Step(tool="x", output="o"),)), _talk(steps=(Step(tool="x", output="p"),)), False),
    ],
)  # fmt: skip
def test_a_trajectory_goes_on_where_it_begins_with_all_of_the_earlier_one(
    earlier: Trajectory, later: Trajectory, expected: bool
) -> None:
    assert goes_on(earlier, later) is expected


def test_a_claude_code_session_of_which_only_a_command_is_there_is_no_attempt_yet(
    workspace: Workspace, tmp_path: Path
) -> None:
    path, whole = tmp_path / "s1.jsonl", Session("s1")
    whole.user("<command-name>/clear</command-name>")
    path.write_text(json.dumps(whole.lines[0]) + "\n")
    with pytest.raises(InputError, match="nobody said anything"):
        bring(workspace, path)
    whole.user("Make the tests pass.")
    path.write_text("".join(json.dumps(line) + "\n" for line in whole.lines))
    assert bring(workspace, path).added == 1
