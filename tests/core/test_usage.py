"""Usage logs: bad lines are kept aside, an entry counts once, and no id is trusted that is not known here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.packs import UsageEntry, read_usage
from core.packs.usage_log import MAX_LINE
from core.workspace import Workspace
from core.workspace.shipping import Shipping
from tests.core.test_cli import winnow
from tests.make import publish

TEXT = "Answer with the number alone."


def mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def line(number: int = 1, **fields: Any) -> str:
    entry = {
        "winnow_usage": 1,
        "entry": f"{number:032x}",
        "at": "2026-02-03T04:05:06Z",
        "pack": {"name": "demo", "version": 1, "sha256": "0" * 64},
        "domain": "sums",
        "task": "t-1",
        "model": "m",
        "injected": {"E-0001": mark(TEXT)},
        "followed": ["E-0001"],
        "outcome": 1.0,
    }
    return json.dumps({**entry, **fields})


def log(*lines: str) -> bytes:
    return "".join(each + "\n" for each in lines).encode()


class Purse:
    """Credits nothing, and remembers what it was asked to credit."""

    def __init__(self) -> None:
        self.entries: list[UsageEntry] = []

    def __call__(self, entries: Sequence[UsageEntry]) -> None:
        self.entries += entries


BAD = {
    "no JSON": ("hello", "not JSON"),
    "cut off": (line()[:-20], "cut off"),
    "something else": ('{"a": 1}', "no line of a usage log"),
    "a list": ("[1]", "no line of a usage log"),
    "a later format": (line(winnow_usage=2), "format 2"),
    "an outcome of 2": (line(outcome=2), "outcome"),
    "an outcome of NaN": (line(outcome=float("nan")), "outcome"),
    "followed but not injected": (line(followed=["E-0009"]), "was not injected"),
    "an unknown field": (line(reply="text"), "reply"),
    "a mark that is none": (line(injected={"E-0001": "xyz"}), "injected"),
    "a long name": (line(model="m" * 1001), "model"),
    "half a pair": (line(task="\ud800"), "surrogate"),
    "nested": ("[" * 50_000, "nested"),
}


@pytest.mark.parametrize("fault", sorted(BAD))
def test_a_bad_line_is_kept_aside_with_its_reason_and_the_others_are_read(fault: str) -> None:
    bad, reason = BAD[fault]
    found = read_usage(log(line(1), bad, line(2)))
    assert len(found.entries) == 2
    [aside] = found.aside
    assert (aside.line, reason in aside.reason) == (2, True), aside.reason


def test_what_looks_like_a_secret_is_not_kept() -> None:
    [aside] = read_usage(log(line(model="sk-" + "a1B2" * 8))).aside
    assert "secret" in aside.reason
    assert aside.raw == ""


def test_a_line_that_is_too_long_is_set_aside_unread() -> None:
    found = read_usage(log(line(), json.dumps({"winnow_usage": 1, "x": "y" * MAX_LINE})))
    assert (len(found.entries), len(found.aside)) == (1, 1)
    assert len(found.aside[0].raw) < 3_000


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\x00\x01\xff" * 99, b"0" * (64 * 2**20 + 1)])
def test_a_file_that_is_no_log_is_refused_whole(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_usage(data)
    assert "\n" not in str(caught.value)


def test_a_known_lesson_is_credited_once_however_often_the_log_is_read(workspace: Workspace) -> None:
    publish(workspace, TEXT)
    purse = Purse()
    arriving = Shipping(workspace.store, workspace.comparing, purse).arriving
    done = arriving.usage(log(line(1), line(2), line(2)), "u.jsonl", "ann")
    assert (done.new, done.known, done.credited, done.unknown) == (2, 1, 2, {})
    before = workspace.store.dump()
    again = arriving.usage(log(line(1), line(2)), "u.jsonl", "ann")
    assert (again.new, again.known, again.credited) == (0, 2, 0)
    assert workspace.store.dump() == before
    grown = arriving.usage(log(line(1), line(2), line(3)), "u.jsonl", "ann")
    assert (grown.new, grown.known) == (1, 2)
    assert [e.entry[-1] for e in purse.entries] == ["1", "2", "3"]


def test_ids_that_the_workspace_does_not_know_are_counted_and_not_credited(workspace: Workspace) -> None:
    publish(workspace, TEXT)
    purse = Purse()
    strange = {"E-0001": mark(TEXT), "E-0009": mark("x")}
    forged = {"E-0001": mark("Some other text.")}
    done = Shipping(workspace.store, workspace.comparing, purse).arriving.usage(
        log(
            line(1, injected=strange, followed=["E-0009"]),
            line(2, injected=forged),
            line(3, injected=forged, followed=None),
        ),
        "u.jsonl",
        "ann",
    )
    assert done.unknown == {"E-0009": 1, "E-0001": 2}
    assert (done.new, done.credited) == (3, 1)
    [entry] = purse.entries
    assert (entry.injected, entry.followed) == ({"E-0001": mark(TEXT)}, ())


def test_an_earlier_text_of_a_lesson_is_known(workspace: Workspace) -> None:
    from core.experience import Modify

    publish(workspace, TEXT)
    publish(workspace, Modify(experience_id="E-0001", text="Give the number and nothing else."))
    done = Shipping(workspace.store, workspace.comparing, Purse()).arriving.usage(
        log(line()), "u.jsonl", "ann"
    )
    assert (done.credited, done.unknown) == (1, {})


def test_a_dry_run_writes_nothing(workspace: Workspace) -> None:
    publish(workspace, TEXT)
    purse, before = Purse(), workspace.store.dump()
    done = Shipping(workspace.store, workspace.comparing, purse).arriving.usage(
        log(line(), "{"), "u.jsonl", "ann", dry_run=True
    )
    assert (done.new, len(done.aside), done.dry_run) == (1, 1, True)
    assert (workspace.store.dump(), purse.entries) == (before, [])


def test_where_crediting_fails_no_entry_is_kept(workspace: Workspace) -> None:
    def broken(entries: Sequence[UsageEntry]) -> None:
        raise InputError("The purse is torn.")

    publish(workspace, TEXT)
    before = workspace.store.dump()
    with pytest.raises(InputError, match="torn"):
        Shipping(workspace.store, workspace.comparing, broken).arriving.usage(log(line()), "u.jsonl", "ann")
    assert workspace.store.dump() == before


def test_a_log_in_portions_is_one_contrast(workspace: Workspace) -> None:
    publish(workspace, TEXT)
    arriving = workspace.shipping.arriving
    all_of_it = [line(1), line(2), line(3, followed=[], outcome=0.0)]
    for upto in (1, 2, 3):
        arriving.usage(log(*all_of_it[:upto]), "u.jsonl", "ann")
    [credit] = workspace.store.credits.pending()
    assert (credit.followers, credit.others, credit.better) == (2, 1, True)


def test_the_other_pack_model_or_task_is_no_sibling(workspace: Workspace) -> None:
    publish(workspace, TEXT)
    pack = {"name": "demo", "version": 1, "sha256": "1" * 64}
    others = [{"pack": pack}, {"model": "n"}, {"task": "t-2"}]
    lines = [line(n, followed=[], outcome=0.0, **other) for n, other in enumerate(others, 2)]
    workspace.shipping.arriving.usage(log(line(1), *lines), "u.jsonl", "ann")
    assert [c.better for c in workspace.store.credits.pending()] == [None]


def test_shipped_lessons_earn_by_command(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    publish(Workspace(folder), TEXT)
    path = tmp_path / "u.jsonl"
    path.write_bytes(log(line(1), line(2, followed=[], outcome=0.0), "{"))
    done = winnow(folder, "usage", "import", str(path), "--json")
    assert (done.code, done.json["new"], done.json["credited"]) == (1, 2, 2)
    [credit] = Workspace(folder).store.credits.pending()
    assert (credit.experience_id, credit.followers, credit.others, credit.better) == ("E-0001", 1, 1, True)
    assert [(e["experience_id"], e["better"], e["pending"]) for e in done.json["earned"]] == [
        ("E-0001", 1, 0.55)
    ]
    listed = winnow(folder, "library", "list")
    assert "0.50 -> 0.55" in listed.out, "what waits shows beside the lesson"
    again = winnow(folder, "usage", "import", str(path))
    assert "0 new entries in u.jsonl, 2 known already." in again.out
    assert winnow(folder, "usage", "import", str(tmp_path / "none.jsonl")).code == 2


def test_a_log_that_is_known_already_is_said_to_be_known(workspace: Workspace, tmp_path: Path) -> None:
    publish(workspace, TEXT)
    file = tmp_path / "u.jsonl"
    file.write_bytes(log(line(1), line(2)))
    assert "2 entries tell of lessons" in winnow(workspace.folder, "usage", "import", str(file)).out
    again = winnow(workspace.folder, "usage", "import", str(file)).out
    assert "2 known already" in again
    assert "counted when they first came in" in again
    assert "tell of lessons" not in again
    file.write_bytes(log(line(1), line(2), line(3)))
    assert "1 new entry tells of lessons" in winnow(workspace.folder, "usage", "import", str(file)).out


def test_the_name_of_a_log_that_looks_like_a_secret_is_not_kept(workspace: Workspace) -> None:
    key = "sk-" + "a1B2" * 8
    done = workspace.shipping.arriving.usage(log(line(), "hello"), f"{key}.jsonl", "ann")
    assert done.source == "a file whose name looks like a secret"
    assert key not in workspace.store.dump()
