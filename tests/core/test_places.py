"""Workspaces by name: those that are known, and no path besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InputError, NotFoundError
from core.workspace import Workspace
from core.workspace.places import Places, recent_file


@pytest.fixture
def recent(tmp_path: Path) -> dict[str, str]:
    return {"WINNOW_RECENT": str(tmp_path / "state" / "recent.json")}


def made(folder: Path) -> Path:
    Workspace(folder)
    return folder


def test_the_configured_one_comes_first_then_its_siblings(tmp_path: Path) -> None:
    here = made(tmp_path / "mine")
    made(tmp_path / "another")
    (tmp_path / "no-workspace").mkdir()
    (tmp_path / "link").symlink_to(here)
    assert list(Places(here, {"WINNOW_RECENT": ""}).all()) == ["mine", "another"]


def test_one_that_was_opened_lately_elsewhere_is_offered(tmp_path: Path, recent: dict[str, str]) -> None:
    elsewhere = made(tmp_path / "far" / "away")
    Places(elsewhere, recent).remember(elsewhere)
    places = Places(made(tmp_path / "near" / "here"), recent)
    assert places.all() == {"here": tmp_path / "near" / "here", "away": elsewhere}


def test_two_that_are_called_alike_are_told_apart(tmp_path: Path, recent: dict[str, str]) -> None:
    first, second = made(tmp_path / "a" / "demo"), made(tmp_path / "b" / "demo")
    Places(second, recent).remember(second)
    assert Places(first, recent).all() == {"demo": first, "demo in b": second}


@pytest.mark.parametrize("name", ["../mine", "/etc", "", "."])
def test_no_path_is_a_name(name: str, tmp_path: Path) -> None:
    places = Places(made(tmp_path / "mine"), {"WINNOW_RECENT": ""})
    with pytest.raises(NotFoundError):
        places.find(name)


def test_a_new_one_is_made_beside_the_configured_one(tmp_path: Path, recent: dict[str, str]) -> None:
    places = Places(made(tmp_path / "mine"), recent)
    assert places.create(" agents 2 ") == "agents 2"
    assert (tmp_path / "agents 2" / "winnow.db").is_file()
    assert places.find("agents 2") == tmp_path / "agents 2"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\\b", ".hidden", "x" * 65, "tab\tin", "MINE", "ends."])
def test_a_bad_name_makes_nothing(name: str, tmp_path: Path, recent: dict[str, str]) -> None:
    places = Places(made(tmp_path / "mine"), recent)
    with pytest.raises(InputError):
        places.create(name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine"]


@pytest.mark.parametrize("content", ["not json", "{}", '[1, null, "relative"]', '["/nowhere/at/all"]'])
def test_a_damaged_list_of_recent_ones_is_no_error(content: str, tmp_path: Path) -> None:
    file = tmp_path / "recent.json"
    file.write_text(content, encoding="utf-8")
    places = Places(made(tmp_path / "mine"), {"WINNOW_RECENT": str(file)})
    assert list(places.all()) == ["mine"]
    places.remember(tmp_path / "mine")
    assert json.loads(file.read_text(encoding="utf-8")) == [str(tmp_path / "mine")]


def test_nothing_is_remembered_where_the_user_says_so() -> None:
    assert recent_file({"WINNOW_RECENT": ""}) is None
    assert recent_file({"HOME": "/home/ann", "XDG_STATE_HOME": "relative"}) == Path(
        "/home/ann/.local/state/winnow/recent.json"
    )
