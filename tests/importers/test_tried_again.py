"""An attempt that broke off for reasons outside the agent gives way to the same one with a result."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.importers import gathering
from core.importers.formats import FORMATS
from core.importers.report import ImportReport
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.fake_format import FakeFormat, attempt, write
from tests.importers.make_tau_bench import crashed, record
from tests.importers.make_tau_bench import write as write_tau

KEY = "sk-proj-" + "Ab3dE6gH" * 5


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def bring(workspace: Workspace, path: Path) -> ImportReport:
    return workspace.intake.add_rollouts([path], ImportOptions(), "ann")


def outcomes(workspace: Workspace) -> list[tuple[float | None, bool]]:
    """(reward, whether it broke off) of each rollout of the first group."""
    return [(r.reward, r.error is not None) for r in workspace.store.groups.get("R1-0001").rollouts]


def test_a_crash_that_was_tried_again_is_told_and_gives_way_to_the_result(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "gpt-x-airline.json"
    write_tau(path, [record(0, 0, 1.0), crashed(0, 1)])
    bring(workspace, path)
    assert outcomes(workspace) == [(1.0, False), (None, True)]
    write_tau(path, [record(0, 0, 1.0), record(0, 1, 0.0, fails=True)])
    words = ["rollouts", "import", str(path), "--workspace", str(workspace.folder)]
    foreseen = CliRunner().invoke(main, [*words, "--dry-run"])
    assert "1 attempt that had broken off would come in with a result." in foreseen.stdout
    assert outcomes(workspace) == [(1.0, False), (None, True)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.stdout  # no conflict
    assert "1 attempt that had broken off came in with a result." in done.stdout
    assert outcomes(workspace) == [(1.0, False), (0.0, False)]
    assert workspace.store.groups.get("R1-0001").status == "informative"
    assert bring(workspace, path).nothing_new


def test_a_result_never_gives_way_to_a_crash(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "gpt-x-airline.json"
    write_tau(path, [record(0, 0, 1.0), record(0, 1, 0.0)])
    bring(workspace, path)
    write_tau(path, [record(0, 0, 1.0), crashed(0, 1)])
    report = bring(workspace, path)
    assert (report.known, report.conflicts, report.nothing_new) == (2, 0, True)
    assert outcomes(workspace) == [(1.0, False), (0.0, False)]


def test_a_file_that_has_both_the_crash_and_the_later_result_brings_the_result(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [attempt("t1", 1.0, repeat=0), attempt("t1", answer="", error="503", repeat=1)]
    bring(workspace, write(path, *lines))
    lines.append(attempt("t1", 0.5, answer="b", repeat=1))
    assert bring(workspace, write(path, *lines)).retried == 1
    assert outcomes(workspace) == [(1.0, False), (0.5, False)]
    report = bring(workspace, write(path, *lines, attempt("t2", 1.0, repeat=0)))
    assert (report.conflicts, report.retried, report.added) == (0, 0, 1)


def test_two_results_for_one_crash_are_still_a_conflict(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bring(workspace, write(path, attempt("t1", answer="", error="503", repeat=1)))
    both = [attempt("t1", 0.5, answer=answer, repeat=1) for answer in "bc"]
    report = bring(workspace, write(path, *both))
    assert (report.retried, report.conflicts) == (1, 1)


def test_a_crash_known_by_its_own_id_gives_way_too_and_never_back(
    workspace: Workspace, tmp_path: Path
) -> None:
    crash = attempt("t1", answer="", error="503", own_id="u1")
    bring(workspace, write(tmp_path / "a.jsonl", crash))
    assert bring(workspace, write(tmp_path / "b.jsonl", attempt("t1", 1.0, own_id="u1"))).retried == 1
    assert outcomes(workspace) == [(1.0, False)]
    more = attempt("t1", error="503", own_id="u1")
    more["trajectory"]["messages"].append({"role": "user", "content": "go on"})
    bring(workspace, write(tmp_path / "c.jsonl", more))
    assert outcomes(workspace) == [(1.0, False)]


def test_what_is_tried_again_is_masked_as_everything_else(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bring(workspace, write(path, attempt("t1", answer="", error="503", repeat=1)))
    bring(workspace, write(path, attempt("t1", 1.0, answer=f"export KEY={KEY}", repeat=1)))
    assert "[key 1]" in workspace.store.groups.get("R1-0001").rollouts[0].trajectory.answer
