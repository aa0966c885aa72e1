"""What an interrupted import had read lies in the workspace: no secret stays in it, and no restore is fooled by it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import BusyError
from core.importers import gathering
from core.importers.formats import FORMATS
from core.store import spool
from core.workspace import Workspace, bringing
from core.workspace.care import Care
from core.workspace.erasing import Erased, Erasing
from core.workspace.holding import held
from core.workspace.intake import ImportOptions
from tests.importers.fake_format import FakeFormat, attempt, write

SECRET = "hunter2-" + "Ödland/7"


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def interrupt(workspace: Workspace, path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> Path:
    """Begin an import, and stop it there; gives the folder of what it had read."""
    with monkeypatch.context() as patch:
        if where == "reading":
            patch.setattr(bringing, "choose", interrupted)
        else:
            patch.setattr(spool.Spool, "became", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    [found] = (workspace.folder / "imports").glob("*/spool.db")
    return found.parent


def redact(workspace: Workspace, *, dry_run: bool = False) -> Erased:
    return Erasing(workspace).redact([SECRET], "ann", dry_run=dry_run)


def test_a_secret_in_what_was_read_goes_and_the_import_begins_anew(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0, answer=f"It is {SECRET}."))
    begun = interrupt(workspace, path, monkeypatch, "reading")
    foreseen = redact(workspace, dry_run=True)
    assert (foreseen.imports_dropped, foreseen.left) == (1, ())
    assert begun.exists()
    done = redact(workspace)
    assert (done.imports_dropped, done.left, done.proved) == (1, (), True)
    assert not begun.exists()
    assert workspace.intake.add_rollouts([path], ImportOptions(), "ann").added == 1


def test_the_command_says_that_the_import_has_to_begin_anew(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0, answer=SECRET))
    interrupt(workspace, path, monkeypatch, "reading")
    words = ["redact", "--yes", "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(main, words, input=SECRET)
    assert "What 1 interrupted import had read was dropped. Import the files again" in done.stdout
    assert "nothing is left" in done.stdout


def test_while_an_import_is_under_way_nothing_is_redacted(workspace: Workspace) -> None:
    with (
        held(workspace.folder / "imports" / "abc.lock", ""),
        pytest.raises(BusyError, match="an import into"),
    ):
        redact(workspace)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_files_that_were_kept_as_they_came_are_searched_and_named(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    text = write(tmp_path / "x", attempt(reward=1.0, answer=f"It is {SECRET}.")).read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    workspace.intake.add_rollouts([tmp_path / name], ImportOptions(keep_raw=True), "ann")
    done = redact(workspace)
    [found] = done.left
    assert (found.file.endswith(name), found.count, done.proved) == (True, 2, False)
    assert "kept as it came (--keep-raw)" in found.what


def test_a_kept_file_that_cannot_be_searched_leaves_nothing_proved(workspace: Workspace) -> None:
    kept = workspace.folder / "imports" / "raw" / "0123-a.parquet"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"PAR1 and so on")
    done = redact(workspace)
    assert (done.left[0].count, done.proved) == (0, False)


def test_after_a_restore_an_interrupted_import_saves_all_of_it_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    care = Care(workspace.folder)
    before = care.backup(tmp_path / "before.zip", "ann").path
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t2", 1.0))
    interrupt(workspace, path, monkeypatch, "saving")
    assert workspace.store.groups.count_rollouts() == 2
    care.restore(before, "ann")
    again = Workspace(workspace.folder)
    assert again.intake.add_rollouts([path], ImportOptions(), "ann").added == 2
    assert again.store.groups.count_rollouts() == 2
