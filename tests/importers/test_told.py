"""What is told of a file: where something stood in it, and nothing with a secret in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InputError
from core.importers import fates, gathering
from core.importers.formats import FORMATS
from core.importers.telling import set_aside
from core.store.spool import Spool
from core.workspace import Workspace
from core.workspace.intake import ImportOptions, ImportReport
from tests.importers.fake_format import FakeFormat, attempt, write

KEY = "sk-" + "a1B2c3D4" * 5


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def bring(workspace: Workspace, path: Path, *, keep_secrets: bool = False) -> ImportReport:
    return workspace.intake.add_rollouts([path], ImportOptions(keep_secrets=keep_secrets), "ann")


def test_a_remark_of_a_format_is_masked_and_counted(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", {"fake": 1, "remark": f"The header {KEY} is unknown."}, attempt(reward=1.0)
    )
    report = bring(workspace, path)
    assert [told.text for told in report.remarks] == ["The header [key 1] is unknown."]
    assert report.masked == {"key": 1}


def test_a_remark_stays_as_it_is_where_secrets_are_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"fake": 1, "remark": f"It says {KEY}."}, attempt(reward=1.0))
    assert [told.text for told in bring(workspace, path, keep_secrets=True).remarks] == [f"It says {KEY}."]


def test_why_a_reader_failed_is_masked_in_what_is_told_and_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0), {"fake": 1, "crash": f"no {KEY}"})
    report = bring(workspace, path)
    assert "TypeError: no [key 1]" in report.files[0].reason
    assert KEY not in report.model_dump_json()
    assert KEY not in "\n".join(workspace.store.dump().splitlines())
    assert report.masked == {"key": 1}


def test_a_record_that_could_not_be_kept_is_told_without_its_secret(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise TypeError(f"unhashable: {KEY}")

    monkeypatch.setattr(fates, "own_task_id", failing)
    (tmp_path / "a.jsonl").write_text(json.dumps(attempt(reward=1.0)) + "\n")
    with pytest.raises(InputError, match=r"unhashable: \[key 1\]"):
        bring(workspace, tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("place", "line", "reason"),
    [
        ("line 3", 3, "torn"),
        ("row 3", 3, "torn"),
        ("line 3, message 2", 0, "line 3, message 2: torn"),
        ("span 4 of line 2", 0, "span 4 of line 2: torn"),
        ("samples/3_epoch_1.json", 0, "samples/3_epoch_1.json: torn"),
        ("", 0, "torn"),
    ],
)
def test_a_place_that_is_more_than_a_line_is_told_as_it_is(place: str, line: int, reason: str) -> None:
    spool = Spool()
    spool.aside(1, "a.jsonl", place, "torn", "")
    [[aside], total] = set_aside(spool, 10)
    assert (aside.line, aside.reason, total) == (line, reason, 1)
    spool.close()
