"""Hostile files: each gives one clear error and changes nothing, or comes in whole.

A few here; `python -m tests.soak_packs` makes hundreds.
"""

from __future__ import annotations

import json
import random
import re
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import WinnowError
from core.packs import EXPORTERS
from core.workspace import Workspace
from tests.core.test_packs import HOSTILE, bomb, content, rezip, small, special, unzip
from tests.make import publish, ticking

FORMS = ("pack", "json", "csv", "playbook", "agent-yaml")
SEEDS = range(30)

Change = Callable[[random.Random, bytes], bytes]

PIECES = (
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\u0000",
    b"\\ud800",
    b"${x}",
    b"'",
    b'"',
    b"\\",
    b"\n## x\n",
    b"\r",
)
PIECES += (
    b"helpful=-1",
    b"&a [*a]",
    b"!!python/object",
    b"\xe2\x80\xa8",
    b"1e999",
    b"NaN",
    b"[[[[",
    b"{",
    b"../",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    10**400,
    "",
    " ",
    "a\x00",
    "\ud800",
    [],
    {},
    [[]] * 3,
    "x" * 20_000,
)


def hostile(seed: int) -> bytes:
    """A valid library of some form, made hostile by one to three changes; some stay valid."""
    rng = random.Random(seed)
    form = FORMS[seed % len(FORMS)]
    texts = rng.sample(HOSTILE, rng.randint(1, len(HOSTILE)))
    data = EXPORTERS[form].write(rng.choice([content(*texts), content("Read the file first."), small()]))
    changes: list[Change] = [_flipped, _cut, _doubled, _spliced, _pieces]
    if form == "pack":
        changes += [_inside, _inside, _value, _value, _value, _name, _entry]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        change = rng.choice(changes)
        try:
            data = change(rng, data)
        except (zipfile.BadZipFile, ValueError, KeyError, NotImplementedError, RuntimeError, OSError):
            data = _flipped(rng, data)  # a change before broke the zip or its JSON
    return data


def _flipped(rng: random.Random, data: bytes) -> bytes:
    raw = bytearray(data or b"x")
    for _ in range(rng.choice([1, 1, 3])):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def _cut(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.5 else data[at:]


def _doubled(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at:] * rng.choice([2, 3]) if rng.random() < 0.7 else data + data


def _spliced(rng: random.Random, data: bytes) -> bytes:
    other = EXPORTERS[rng.choice(FORMS)].write(content(*rng.sample(HOSTILE, 3)))
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other)) :]


def _pieces(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice([1, 2, 10])):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(PIECES) + data[at:]
    return data


def _inside(rng: random.Random, data: bytes) -> bytes:
    """A file of the pack changed, under checksums that fit."""
    files = unzip(data)
    name = rng.choice(sorted(files))
    return rezip({**files, name: rng.choice([_flipped, _cut, _pieces])(rng, files[name])})


def _value(rng: random.Random, data: bytes) -> bytes:
    """A value of pack.json replaced, under checksums that fit."""
    files = unzip(data)
    pack = json.loads(files["pack.json"])
    place = rng.choice([pack, pack["version"], *pack["experiences"]])
    place[rng.choice([*place, "new"])] = rng.choice(VALUES)
    return rezip({**files, "pack.json": json.dumps(pack).encode()})


def _name(rng: random.Random, data: bytes) -> bytes:
    files = unzip(data)
    name = rng.choice(sorted(files))
    other = rng.choice(
        ["../x", "/etc/passwd", "C:x", "a\\b", "README.md", "readme.md", "x" * 300, ".x", "a/b"]
    )
    return rezip({**{n: d for n, d in files.items() if n != name}, other: files[name]})


def _entry(rng: random.Random, data: bytes) -> bytes:
    return rng.choice(
        [
            bomb(),
            special("x", stat.S_IFLNK | 0o777, b"/etc/passwd"),
            special("PACK.JSON", data=b"{}"),
            special("more.txt"),
            rezip(unzip(data), compression=zipfile.ZIP_BZIP2),
            rezip(unzip(data), compression=zipfile.ZIP_DEFLATED),
        ]
    )


def trouble(folder: Path, seed: int) -> str:
    """What is wrong with how a workspace takes a hostile file; empty where nothing is."""
    workspace = Workspace(folder)
    before = workspace.store.dump()
    data = hostile(seed)
    try:
        done = workspace.shipping.arriving.library(data, f"hostile {seed}", "test")
    except WinnowError as e:
        if workspace.store.dump() != before:
            return "refused, but something was changed"
        return "" if re.fullmatch(r"[^\n]{10,400}\.", str(e)) else f"no clear sentence: {str(e)[:500]!r}"
    if done.before:  # two seeds that gave the same file
        return "" if workspace.store.dump() == before else "the same file again changed something"
    if done.lessons != len(done.new) + len(done.joined):
        return f"{done.lessons} lessons, but {len(done.new)} new and {len(done.joined)} joined"
    for new in done.new:
        if workspace.store.proposals.get(new.proposal_id).operation.text != new.text:  # type: ignore[union-attr]
            return f"{new.proposal_id} does not hold its text"
    after = workspace.store.dump()
    workspace.shipping.arriving.library(data, "again", "test")
    return "" if workspace.store.dump() == after else "the same file again changed something"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "w"
    publish(Workspace(folder, clock=ticking()), "Read the file first.")
    return folder


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hostile_file_is_refused_in_one_sentence_or_comes_in_whole(folder: Path, seed: int) -> None:
    assert trouble(folder, seed) == ""


def test_the_hostile_files_are_of_both_sorts(tmp_path: Path) -> None:
    """A fuzz of which everything is refused, or nothing, would prove little."""
    workspace = Workspace(tmp_path / "w")
    refused = 0
    for seed in SEEDS:
        try:
            workspace.shipping.arriving.library(hostile(seed), "x", "test", dry_run=True)
        except WinnowError:
            refused += 1
    assert 3 <= refused <= 28
