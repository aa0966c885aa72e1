"""An import that is killed at any moment: whole groups or none, and the same command goes on to the same end."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.errors import BusyError, InputError
from core.importers import gathering
from core.importers.choosing import choose
from core.importers.formats import FORMATS
from core.store import spool
from core.workspace import Workspace, bringing
from core.workspace.intake import ImportOptions, ImportReport
from tests.importers.fake_format import FakeFormat, attempt, write
from tests.importers.make_tau_bench import crashed, record
from tests.importers.make_tau_bench import write as write_tau
from tests.killing import Launcher, chosen, fresh_copy, unsound
from tests.make import ticking

TASKS, TRIALS = 7, 4


def settled(folder: Path) -> list[str]:
    """What is in the tables, without the log's numbers and the sizes that differ with how often it was begun."""
    return sorted(Workspace(folder, ticking()).store.dump().splitlines())


def without_log(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("events ")]


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as launcher:
        yield launcher


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX signal")
def test_an_import_that_is_killed_goes_on_where_it_stood(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    trials = [
        crashed(task, trial) if trial == 3 else record(task, trial, float(trial % 2))
        for task in range(TASKS)
        for trial in range(TRIALS)
    ]
    path = tmp_path / "gpt-x-airline.jsonl"
    write_tau(path, trials)
    start = tmp_path / "start"
    Workspace(start, ticking())
    calm_folder, folder = tmp_path / "calm", tmp_path / "w"
    command = ["rollouts", "import", str(path), "--workspace"]
    calm = launcher.run([*command, str(fresh_copy(start, calm_folder))])
    assert calm.code == 0, calm.said
    end = without_log(settled(calm_folder))
    assert sum(line.startswith("rollouts ") for line in end) == TASKS * TRIALS
    for nth in chosen(calm.changes, 12, seed=5):
        fresh_copy(start, folder)
        assert launcher.run([*command, str(folder)], before=nth).killed
        assert unsound(folder) == []
        store = Workspace(folder, ticking()).store
        for row in store.groups.page(limit=100)[0]:
            assert row.size in (0, TRIALS), f"half a group was to be seen after change {nth}"
        again = launcher.run([*command, str(folder)])
        assert again.code == 0, again.said
        assert without_log(settled(folder)) == end, f"killed before change {nth}"
        assert not list((folder / "imports").glob("*/"))


@pytest.fixture
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


@pytest.mark.usefixtures("_fake")
def test_reading_goes_on_at_the_record_where_it_stopped(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [attempt(f"t{i}", 1.0) for i in range(10)]
    path = write(tmp_path / "a.jsonl", *lines)
    monkeypatch.setattr(spool, "AT_ONCE", 1)
    added, add = list[str](), spool.Spool.add

    def stop_at_the_sixth(self: spool.Spool, row: dict[str, object], *rest: object) -> None:
        if len(added) == 5:
            added.append("stopped")
            raise KeyboardInterrupt
        added.append(str(row["place"]))
        add(self, row, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(spool.Spool, "add", stop_at_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert workspace.store.runs.count() == 0
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert report.added == 10
    assert added == [*(f"line {i}" for i in range(1, 6)), "stopped", *(f"line {i}" for i in range(6, 11))]


@pytest.mark.usefixtures("_fake")
def test_a_file_that_changed_meanwhile_is_read_anew(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t2", 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(bringing, "choose", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    write(path, attempt("t3", 1.0))
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (report.added, [t.id for t in workspace.store.tasks.page()[0]]) == (1, ["t3"])


@pytest.mark.usefixtures("_fake")
def test_groups_that_were_saved_are_not_saved_again_and_the_report_tells_all(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.workspace import recording

    path = write(tmp_path / "a.jsonl", *(attempt(f"t{i}", 1.0) for i in range(4)))
    monkeypatch.setattr(recording, "PORTION", 1)
    saved, save = [0], recording.Recording._save

    def stop_at_the_third(self: recording.Recording, *arguments: object) -> None:
        saved[0] += 1
        if saved[0] == 3:
            raise KeyboardInterrupt
        save(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recording.Recording, "_save", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    run = workspace.store.runs.newest()[0]
    assert (run.status, run.tally.total) == ("running", 2)
    for work in (workspace.learning.propose, workspace.learning.work):
        with pytest.raises(InputError, match="R1 is not finished: import the same files again"):
            work(run.id, "ann")
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (report.run_id, report.added, report.groups) == (run.id, 4, 4)
    assert saved[0] == 5
    done = workspace.store.runs.get(run.id)
    assert (done.status, done.tally.total) == ("done", 4)


@pytest.mark.usefixtures("_fake")
def test_an_import_that_is_refused_leaves_nothing_behind(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0))
    with pytest.raises(InputError):
        workspace.intake.add_rollouts([path], ImportOptions(score="nope"), "ann")
    assert not list((workspace.folder / "imports").glob("*/"))


@pytest.mark.usefixtures("_fake")
def test_the_same_import_is_done_by_one_process_at_a_time(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0))
    inner = []

    def ask_again(*_: object) -> None:
        inner.append(1)
        workspace.intake.add_rollouts([path], ImportOptions(), "ann")

    monkeypatch.setattr(bringing, "choose", ask_again)
    with pytest.raises(BusyError, match=re.escape("Another process imports a.jsonl just now")):
        workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert inner == [1]


@pytest.mark.usefixtures("_fake")
def test_two_imports_of_the_same_new_groups_at_once_make_one_group(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.workspace import recording

    first = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t1", 0.5, answer="both"))
    second = write(tmp_path / "b.jsonl", attempt("t1", 0.0, answer="b"), attempt("t1", 0.5, answer="both"))
    due, nested = recording.Recording._due, list[str]()

    def while_the_other_is_at_it(self: recording.Recording, row: dict[str, object]) -> object:
        found = due(self, row)
        if not nested:
            nested.append("once")
            workspace.intake.add_rollouts([second], ImportOptions(), "ann")
        return found

    monkeypatch.setattr(recording.Recording, "_due", while_the_other_is_at_it)
    report = workspace.intake.add_rollouts([first], ImportOptions(), "ann")
    rows, total = workspace.store.groups.page()
    assert (total, rows[0].size, rows[0].mean) == (1, 3, 0.5)
    assert (report.added, report.known) == (1, 1)


@pytest.mark.usefixtures("_fake")
def test_two_imports_that_add_the_same_attempt_to_one_group_at_once_add_it_once(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.intake.add_rollouts([write(tmp_path / "a.jsonl", attempt("t1", 1.0))], ImportOptions(), "ann")
    both = attempt("t1", 0.0, answer="both")
    second = write(tmp_path / "b.jsonl", both)
    third = write(tmp_path / "c.jsonl", both, attempt("t1", 0.5, answer="c"))
    read = threading.Barrier(2, timeout=60)

    def once_both_are_read(*arguments: Any) -> Any:
        read.wait()
        return choose(*arguments)

    def bring(path: Path) -> ImportReport:
        return Workspace(workspace.folder, ticking()).intake.add_rollouts([path], ImportOptions(), "ann")

    monkeypatch.setattr(bringing, "choose", once_both_are_read)
    with ThreadPoolExecutor() as threads:
        reports = list(threads.map(bring, [second, third]))
    [row], total = workspace.store.groups.page()
    assert (total, row.size, row.mean) == (1, 3, 0.5)
    assert sorted((r.added, r.known) for r in reports) in ([(0, 1), (2, 0)], [(1, 0), (1, 1)])
    assert {r.run_id for r in reports} == {row.run_id}
    assert [run.status for run in workspace.store.runs.newest()] == ["done"]


@pytest.mark.usefixtures("_fake")
@pytest.mark.parametrize("later_is", ["first", "second"])
def test_a_session_that_another_import_brought_meanwhile_in_another_state_is_one_rollout(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later_is: str
) -> None:
    earlier, later = attempt("t1", 0.0, own_id="s1"), attempt("t1", 1.0, own_id="s1", answer="b")
    later["trajectory"]["messages"] = [*earlier["trajectory"]["messages"], *later["trajectory"]["messages"]]
    states = [later, earlier] if later_is == "first" else [earlier, later]
    first, second = (write(tmp_path / f"{n}.jsonl", state) for n, state in enumerate(states))
    nested = list[str]()

    def while_the_other_is_at_it(*arguments: Any) -> Any:
        if not nested:
            nested.append("once")
            workspace.intake.add_rollouts([second], ImportOptions(), "ann")
        return choose(*arguments)

    monkeypatch.setattr(bringing, "choose", while_the_other_is_at_it)
    report = workspace.intake.add_rollouts([first], ImportOptions(), "ann")
    [rollout] = workspace.store.groups.get("R1-0001").rollouts
    assert (rollout.trajectory.answer, rollout.reward) == ("b", 1.0)
    assert (report.added, report.known) == (0, 1)


@pytest.mark.usefixtures("_fake")
def test_an_import_of_what_another_one_brought_meanwhile_makes_no_run(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = attempt("t1", 1.0)
    first, second = write(tmp_path / "a.jsonl", same), write(tmp_path / "b.jsonl", same)
    nested = list[ImportReport]()

    def while_the_other_is_at_it(*arguments: Any) -> Any:
        if not nested:
            nested.append(ImportReport(source=""))
            nested.append(workspace.intake.add_rollouts([second], ImportOptions(), "ann"))
        return choose(*arguments)

    monkeypatch.setattr(bringing, "choose", while_the_other_is_at_it)
    report = workspace.intake.add_rollouts([first], ImportOptions(), "ann")
    assert (report.added, report.known, report.run_id) == (0, 1, nested[1].run_id)
    assert workspace.store.runs.count() == 1


@pytest.mark.usefixtures("_fake")
def test_what_an_import_saved_before_it_was_killed_counts_as_its_own(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t1", 0.0, answer="b"))
    with monkeypatch.context() as patch:
        # it is in the workspace, and the spool knows nothing of it
        patch.setattr(spool.Spool, "group_done", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert workspace.store.groups.count_rollouts() == 2
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (report.added, report.known, report.run_id) == (2, 0, "R1")


@pytest.mark.usefixtures("_fake")
def test_a_run_that_somebody_works_on_is_waited_for_and_then_refused(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0))
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    write(path, attempt("t1", 1.0), attempt("t1", 0.0, answer="b"))
    monkeypatch.setattr(bringing, "PATIENCE", 1)
    said = list[str]()
    with workspace.learning.holding("R1"), pytest.raises(BusyError, match="Another process works on R1"):
        workspace.intake.add_rollouts([path], ImportOptions(), "ann", lambda what, *_: said.append(what))
    assert "waiting for who works on R1" in said
    assert workspace.store.runs.brief("R1").status == "done"
    assert workspace.intake.add_rollouts([path], ImportOptions(), "ann").added == 1


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
