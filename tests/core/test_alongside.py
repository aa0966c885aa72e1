"""Commands beside the app: found by their key, ended when they take too long, and telling how far they are."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator

import pytest

from core.errors import TrustError
from core.workspace import Workspace
from core.workspace.alongside import Standing, begin, forget, standing
from core.workspace.command import last_line
from tests.make import add_tasks, make_tasks

KEY = "key"
COMMAND = ("eval", "overlap")


def test_the_last_whole_line_of_a_command_is_read_where_it_writes_on() -> None:
    with tempfile.TemporaryFile() as err:
        assert last_line(err) == ""
        err.write(b"reading a.jsonl: 1 of 3\nreading a.jsonl: 2 of 3\nread")
        err.flush()
        assert last_line(err) == "reading a.jsonl: 2 of 3"
        err.write(b"ing a.jsonl: 3 of 3\n")
        err.flush()
        assert last_line(err) == "reading a.jsonl: 3 of 3"


@pytest.fixture
def ws(workspace: Workspace) -> Iterator[Workspace]:
    add_tasks(workspace, make_tasks(2))
    yield workspace
    forget(workspace.folder, KEY)


def ended(ws: Workspace) -> Standing:
    until = time.monotonic() + 60
    while standing(ws.folder, KEY).state == "running" and time.monotonic() < until:
        time.sleep(0.05)
    return standing(ws.folder, KEY)


@pytest.mark.slow
def test_a_command_is_found_by_its_key_with_what_it_answered_until_it_is_forgotten(ws: Workspace) -> None:
    assert standing(ws.folder, KEY).state == "none"
    begin(ws.folder, KEY, *COMMAND, role="reviewer")
    now = ended(ws)
    assert (now.state, now.trouble, now.answer["tasks"]) == ("done", "", {"train": 2, "trial": 0, "final": 0})
    forget(ws.folder, KEY)
    assert standing(ws.folder, KEY).state == "none"


@pytest.mark.slow
def test_what_a_command_refuses_is_its_one_sentence(ws: Workspace) -> None:
    begin(ws.folder, KEY, "eval", "show", "EV7", role="reviewer")
    now = ended(ws)
    assert (now.state, now.answer) == ("failed", None)
    assert now.trouble.startswith("There is no evaluation 'EV7'")


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended(ws: Workspace) -> None:
    begin(ws.folder, KEY, *COMMAND, role="reviewer", within_s=0.0)
    now = ended(ws)
    assert (now.state, now.trouble) == ("failed", "It was not done within 0 s and was ended.")


@pytest.mark.slow
def test_a_reader_begins_nothing(ws: Workspace) -> None:
    with pytest.raises(TrustError):
        begin(ws.folder, KEY, *COMMAND, role="reader")
    assert standing(ws.folder, KEY).state == "none"
