"""The number of members of an archive, and archives of too many."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from core.errors import InputError
from core.importers import archive_end, finding
from core.importers.archive_end import members_told
from core.importers.formats import inspect_eval
from core.workspace import Workspace
from core.workspace.intake import ImportOptions


def archive(path: Path, members: int, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for number in range(members):
            made.writestr(f"{number}.txt", "x")
        made.comment = comment
    return path


@pytest.mark.parametrize(
    ("members", "comment"), [(0, b""), (3, b""), (3, b"PK and more" * 5_000), (70_000, b"")]
)
def test_the_number_of_members_is_read_from_the_end(tmp_path: Path, members: int, comment: bytes) -> None:
    assert members_told(archive(tmp_path / "a.zip", members, comment)) == members


def test_an_end_that_is_missing_or_lies_tells_nothing_and_never_fails(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", 70_000)
    data = path.read_bytes()
    for cut in (data[:-30], data[:-98], b"", b"PK\x05\x06"):
        path.write_bytes(cut)
        assert members_told(path) == 0
    at = data.rfind(archive_end.AT_64)
    path.write_bytes(data[: at + 8] + struct.pack("<Q", 2**63) + data[at + 16 :])
    assert members_told(path) == 0


def test_an_archive_of_too_many_files_is_refused_before_they_are_listed(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "a.zip", 5)

    def listed(*_: object) -> None:
        raise AssertionError("the members were listed")

    monkeypatch.setattr(finding, "MAX_MEMBERS", 4)
    monkeypatch.setattr(inspect_eval, "MANY", 4)
    monkeypatch.setattr(finding.zipfile, "ZipFile", listed)
    monkeypatch.setattr(inspect_eval.zipfile, "ZipFile", listed)
    with pytest.raises(InputError, match=r"a\.zip holds 5 files; at most 4 are unpacked, so split it\."):
        workspace.intake.look([path], ImportOptions())
