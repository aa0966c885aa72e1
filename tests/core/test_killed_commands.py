"""kill -9 of each command that changes a workspace, at ten seeded instants: the old or the new state, and no other.

`make soak` does it at 200 (`python -m tests.soak_care`); what is looked at is written down in `tests.ordeals`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.killing import Launcher
from tests.ordeals import ORDEALS, suffer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX signal")]

SEEDS = {name: seed for seed, name in enumerate(ORDEALS, start=1)}
KILLS = 10


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as launcher:
        yield launcher


@pytest.mark.parametrize("name", ORDEALS)
def test_a_command_that_is_killed_leaves_the_old_or_the_new_state_and_can_be_given_again(
    name: str, launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "WINNOW_CACHE", str(tmp_path / "cache")
    )  # the doctor also looks at the models and the trust
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    suffered = suffer(name, tmp_path, launcher, at_changes=KILLS, kills=KILLS, seed=SEEDS[name])
    assert suffered.wrong == []
    assert suffered.found["killed"] == KILLS
    assert suffered.found["old"] > 0, "no kill came before the end of the transaction"
