"""Uploads, which are not masked yet, do not outlive the app, however it ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import streamlit as st

from core.workspace import Workspace
from pages.parts import laid_down, uploads
from pages.parts.warm import warm
from tests.browser import drawn, serve, visit
from tests.importers.make_messages import line

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAYS_DOWN = """
import sys
from pages.parts import laid_down
folder = laid_down.folder()
(folder / "a.jsonl").write_text("raw")
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that nobody else uses."""
    laid_down.clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    laid_down.clear()


def other(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another app that laid an upload down, with its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAYS_DOWN],
        cwd=Path(__file__).parents[2],
        env={"TMPDIR": str(temporary), "TMP": str(temporary), "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_what_was_uploaded_is_gone_when_the_server_was_stopped() -> None:
    async def serve() -> Path:
        async with warm(None):
            path = uploads.kept([uploads.of_text("a.jsonl", "raw")])
            assert path.read_text() == "raw"
        return path

    path = asyncio.run(serve())
    assert not path.exists()
    assert not list(Path(tempfile.gettempdir()).glob("winnow-upload-*"))
    st.cache_resource.clear()


def test_what_a_killed_process_left_is_removed_at_the_next_start(temporary: Path) -> None:
    process, left = other(temporary)
    laid_down.sweep()
    assert (left / "a.jsonl").exists()  # it lives
    ended(process)
    assert (left / "a.jsonl").exists()
    laid_down.sweep()
    assert not left.exists()


def test_a_process_that_ends_by_itself_leaves_nothing(temporary: Path) -> None:
    process, left = other(temporary)
    process.communicate("")
    assert not left.exists()


def test_only_our_own_folders_are_removed(temporary: Path) -> None:
    no_lock = temporary / "winnow-upload-of-somebody"
    no_lock.mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / laid_down.LOCK).touch()
    (temporary / "winnow-upload-link").symlink_to(elsewhere)
    mine = laid_down.folder()
    laid_down.sweep()
    assert no_lock.exists()
    assert (elsewhere / laid_down.LOCK).exists()
    assert mine.exists()


@pytest.mark.slow
def test_the_app_leaves_no_upload_when_it_is_terminated(tmp_path: Path, browser: Browser) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line(0, i, float(i)))}\n" for i in range(2)))
    Workspace(tmp_path / "workspace")
    with serve(tmp_path / "workspace", {"TMPDIR": str(temporary)}) as base:  # it ends with SIGTERM
        page = browser.new_page()
        visit(page, f"{base}/import-rollouts", "Import")
        page.locator("input[type=file]").first.set_input_files(str(path))
        drawn(page, "2 attempts")
        assert list(temporary.glob("winnow-upload-*/*/a.jsonl"))
        page.close()
    assert not list(temporary.glob("winnow-upload-*"))
