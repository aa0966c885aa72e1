"""Files that are kept as they came: all that an import read, each once, and whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import InputError
from core.importers import gathering
from core.importers.formats import FORMATS
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.fake_format import FakeFormat, attempt, write


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Attempts, the grades beside them, and a file of rewards elsewhere."""
    folder = tmp_path / "logs"
    folder.mkdir()
    side, rewards = folder / "side.json", tmp_path / "rewards.csv"
    side.write_text(json.dumps({"1": 1.0}))
    rewards.write_text("task_id,reward\nt1,0.5\n")
    return [write(folder / "a.jsonl", attempt("t1"), attempt("t1", answer="b")), side, rewards]


def test_what_was_read_beside_a_file_is_kept_with_it_and_so_is_the_file_of_rewards(
    workspace: Workspace, files: list[Path]
) -> None:
    options = ImportOptions(keep_raw=True, rewards=files[2])
    size = sum(path.stat().st_size for path in files)
    assert workspace.intake.look(files[:1], options).kept_bytes == size
    assert not (workspace.folder / "imports").exists()
    assert workspace.intake.add_rollouts(files[:1], options, "ann").kept_bytes == size
    kept = {path.name[17:]: path.read_bytes() for path in (workspace.folder / "imports" / "raw").iterdir()}
    assert kept == {path.name: path.read_bytes() for path in files}


def test_it_is_told_how_many_bytes_are_kept(workspace: Workspace, files: list[Path]) -> None:
    words = ["rollouts", "import", str(files[0]), "--keep-raw", "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(main, words)
    size = sum(path.stat().st_size for path in files[:2])
    assert f"files:    kept as they came, secrets included: {size:,} bytes" in done.stdout


def test_a_file_that_cannot_be_kept_is_told_before_anything_is_saved(
    workspace: Workspace, files: list[Path]
) -> None:
    (workspace.folder / "imports").mkdir()
    (workspace.folder / "imports" / "raw").write_text("in the way")
    with pytest.raises(
        InputError, match=r"'a\.jsonl' cannot be kept in the workspace: .* leave out --keep-raw"
    ):
        workspace.intake.add_rollouts(files[:1], ImportOptions(keep_raw=True), "ann")
    assert workspace.store.runs.count() == 0
    assert workspace.intake.add_rollouts(files[:1], ImportOptions(), "ann").added == 2
