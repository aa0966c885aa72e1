"""Reports of SWE-bench are joined to the trajectories that they are about, and to no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.importers.attempt import Attempt
from core.importers.dialects import conversation
from core.importers.formats.swe_agent import SweAgent
from core.importers.formats.swe_bench import id_of, instance_of, rewards_of_report, run_of, verdicts
from core.importers.opened import Opened
from tests.importers.make_swe_agent import place, report, traj

ONE, TWO = "made__repo-1", "made__repo-2"


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_the_id_of_an_attempt_is_the_one_by_which_older_workspaces_know_it() -> None:
    talk = conversation([{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Done."}])
    assert id_of(talk, "run-1") == "4ec12a4f9a1442219b3ac38d85a7e845"


def test_resolved_is_1_and_unresolved_or_empty_is_0() -> None:
    told = report(
        resolved=["a"], unresolved=["b"], empty_patch=["c"], completed=["a", "b"], submitted=["a", "b", "c"]
    )
    assert rewards_of_report(told) == {"a": 1.0, "b": 0.0, "c": 0.0}


def test_an_evaluation_that_failed_or_is_not_there_says_nothing() -> None:
    assert rewards_of_report(report(resolved=["a"], error=["b"], incomplete=["c"], submitted=["a", "b"])) == {
        "a": 1.0
    }


def test_a_report_of_an_instance_and_an_old_report_of_a_run_are_read() -> None:
    assert rewards_of_report({"a": {"patch_is_None": False, "resolved": True}, "b": {"resolved": False}}) == {
        "a": 1.0,
        "b": 0.0,
    }
    old = {"resolved": ["a"], "generated": ["a", "b", "d"], "no_generation": ["c"], "test_timeout": ["d"]}
    assert rewards_of_report(old) == {"a": 1.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize(
    "value", [None, [], {}, "x", {"resolved": True}, {"a": {"resolved": "yes"}}, {"a": 1}]
)
def test_what_is_no_report_is_none(value: object) -> None:
    assert rewards_of_report(value) is None


def test_the_report_of_a_run_is_joined_by_instance(tmp_path: Path) -> None:
    paths = [place(tmp_path, "run", i, traj(i)) for i in (ONE, TWO, "made__repo-3")]
    write(tmp_path / "run" / "maker.run.json", report(resolved=[ONE], unresolved=[TWO]))
    write(tmp_path / "run" / "preds.json", {ONE: {"resolved": False}})
    values = []
    for path in paths:
        opened = Opened(path, root=tmp_path)
        (attempt,) = [f for f in SweAgent().read(opened) if isinstance(f, Attempt)]
        values.append(attempt.scores["resolved"].value if attempt.scores else None)
        assert opened.used == {tmp_path / "run" / "maker.run.json"}
    assert values == [1.0, 0.0, None]


def test_where_a_verdict_comes_from_is_told(tmp_path: Path) -> None:
    path = place(tmp_path, "run", ONE, traj(ONE))
    write(path.parent / "report.json", {ONE: {"resolved": True}})
    told = verdicts(Opened(path, root=tmp_path))
    assert told.resolved == {ONE: True}
    assert [r.text for r in told.remarks] == ["Whether an instance was resolved was read from report.json."]


def test_reports_that_disagree_leave_an_instance_ungraded(tmp_path: Path) -> None:
    path = place(tmp_path, "run", ONE, traj(ONE))
    write(path.parent / "a.json", report(resolved=[ONE, TWO]))
    write(path.parent / "b.json", report(resolved=[TWO], unresolved=[ONE]))
    told = verdicts(Opened(path, root=tmp_path))
    assert told.resolved == {TWO: True}
    assert (
        told.remarks[-1].text == "The reports a.json, b.json disagree on some instances, which stay ungraded."
    )


def test_a_report_above_several_runs_says_nothing_of_one_of_them(tmp_path: Path) -> None:
    write(tmp_path / "report.json", report(resolved=[ONE]))
    flat = tmp_path / "run" / f"{ONE}.traj"
    flat.parent.mkdir()
    write(flat, traj(ONE))
    assert verdicts(Opened(flat, root=tmp_path)).resolved == {}


def test_nothing_outside_the_folder_that_was_named_is_read(tmp_path: Path) -> None:
    path = place(tmp_path, "run", ONE, traj(ONE))
    write(tmp_path / "run" / "report.json", report(resolved=[ONE]))
    assert verdicts(Opened(path, root=path.parent)).resolved == {}


def test_a_damaged_report_is_none(tmp_path: Path) -> None:
    path = place(tmp_path, "run", ONE, traj(ONE))
    (path.parent / "report.json").write_text('{"resolved_ids": ["')
    assert verdicts(Opened(path, root=tmp_path)).remarks == ()


def test_an_instance_is_told_by_the_name_of_a_file_only_where_that_can_be_one(tmp_path: Path) -> None:
    names = {
        "a__b-1.traj": "a__b-1",
        "local.traj.json": None,
        "some/some.traj": "some",
        "x/a__b-2.traj.json": "a__b-2",
    }
    assert {n: instance_of(Opened(tmp_path / n)) for n in names} == names


def test_a_run_is_the_folder_around_the_instances_whichever_folder_was_named(tmp_path: Path) -> None:
    for name in ("run/a__b-1.traj", "x/run/a__b-1/a__b-1.traj"):
        path = tmp_path / name
        assert [run_of(Opened(path, root=root)) for root in (tmp_path, path.parent, path.parent.parent)] == [
            "run"
        ] * 3
    upload = tmp_path / "winnow-upload-x1y2" / "a__b-1.traj"
    assert run_of(Opened(upload)) == ""


def test_an_attempt_keeps_its_id_when_a_report_comes_to_stand_beside_it(tmp_path: Path) -> None:
    def read(path: Path, root: Path) -> Attempt:
        (attempt,) = [f for f in SweAgent().read(Opened(path, root=root)) if isinstance(f, Attempt)]
        return attempt

    path = place(tmp_path, "run", ONE, traj(ONE))
    before = read(path, tmp_path)
    write(path.parent / "report.json", {ONE: {"resolved": True}})
    after = read(path, path.parent)
    assert (before.scores == after.scores, before.own_id == after.own_id) == (False, True)
    assert read(place(tmp_path, "run 2", ONE, traj(ONE)), tmp_path).own_id != before.own_id
    assert read(place(tmp_path, "run", ONE, traj(ONE, "exit_cost")), tmp_path).own_id != before.own_id
