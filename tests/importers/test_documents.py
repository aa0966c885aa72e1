"""The objects of a file that is a list, whatever its format: one at a time, and those before a damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.importers.attempt import Aside
from core.importers.documents import Document, documents_of
from core.importers.opened import Opened


def fits(value: Any) -> bool:
    return isinstance(value, dict) and "id" in value


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_is_never_held_whole(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"id": n, "text": "word " * 100} for n in range(3_000)], indent=indent))
    opened = Opened(path)
    found = list(documents_of(opened, fits))
    assert [d.value["id"] for d in found if isinstance(d, Document)] == list(range(3_000))
    assert (found[0].place, found[-1].place) == ("record 1", "record 3000")
    assert "whole" not in vars(opened)


def test_what_comes_before_the_end_of_a_list_that_is_cut_off_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id": 1}, {"no": 2}, 3, {"id": 4}, {"id": ')
    first, unfit, number, fourth, end = documents_of(Opened(path), fits)
    assert [first.place, fourth.place] == ["record 1", "record 4"]
    assert [isinstance(d, Aside) and d.place for d in (unfit, number)] == ["record 2", "record 3"]
    assert isinstance(end, Aside)
    assert "cut off" in end.reason


def test_an_object_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"id": 1, "list": [1, 2]}, indent=1))
    [found] = documents_of(Opened(path), fits)
    assert found.place == "the file"
