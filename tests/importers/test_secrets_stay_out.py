"""What was masked or redacted does not come back when the same file is imported again with its secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.workspace import Workspace
from core.workspace.erasing import Erasing
from core.workspace.intake import ImportOptions
from tests.importers.make_messages import line

KEY = "sk-proj-" + "Ab3dE6gH" * 5
KEPT = ImportOptions(keep_secrets=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two attempts of one number, which contradict each other, and a line that is cut off; all hold a key."""
    first, other = line(0, 0, 1.0), line(0, 0, 0.0)
    first["messages"][-1]["content"] += f" export KEY={KEY}"
    other["messages"][-1]["content"] += f" unset KEY={KEY}"
    path = tmp_path / "a.jsonl"
    path.write_text(f'{json.dumps(first)}\n{json.dumps(other)}\n{{"x": "{KEY}\n')
    return path


def bring(workspace: Workspace, path: Path, options: ImportOptions) -> None:
    workspace.intake.add_rollouts([path], options, "ann")


def aside(workspace: Workspace) -> list[tuple[int, bool]]:
    """(line, whether the key is in it) of all rows that are kept."""
    return sorted((row.line, KEY in row.raw) for row in workspace.store.tasks.kept_aside())


@pytest.mark.parametrize("first", [KEPT, ImportOptions()])
def test_a_record_that_could_not_be_read_is_not_written_again_with_its_secret(
    workspace: Workspace, path: Path, first: ImportOptions
) -> None:
    bring(workspace, path, first)
    assert aside(workspace) == [(2, first.keep_secrets), (3, first.keep_secrets)]
    if first.keep_secrets:
        Erasing(workspace).redact([KEY], "ann")
    copy = path.rename(path.with_name("other.jsonl"))
    bring(workspace, copy, KEPT)
    assert aside(workspace) == [(2, False), (3, False)]
    assert KEY.encode() not in (workspace.folder / "winnow.db").read_bytes()


def test_a_file_of_the_same_name_with_other_records_is_kept_aside_too(
    workspace: Workspace, path: Path
) -> None:
    bring(workspace, path, ImportOptions())
    path.write_text(path.read_text().replace('{"x"', '{"y"'))
    bring(workspace, path, ImportOptions())
    assert [row.raw[:5] for row in workspace.store.tasks.kept_aside() if row.line == 3] == ['{"y":', '{"x":']
