"""The workspace that pages are measured on is one that a doctor finds nothing wrong with."""

from __future__ import annotations

from pathlib import Path

from tests.bench.large import Size, checked, fill

SMALL = Size(
    runs=5, groups=8, tasks=50, versions=10, experiences=200, waiting=40, staged=3, events=900
)  # of everything a little


def test_it_is_sound_and_holds_as_much_as_it_says(tmp_path: Path) -> None:
    store = fill(tmp_path / "ws", SMALL).store
    assert checked(tmp_path / "ws") == []
    assert store.groups.count_rollouts() == SMALL.rollouts
    assert store.versions.head() == SMALL.versions
    assert store.versions.get(SMALL.versions).size == SMALL.experiences
    assert store.proposals.counts()["proposed"] == SMALL.waiting
    assert store.proposals.counts()["approved"] == SMALL.staged
    assert store.events.newest(1)[0].id == SMALL.events


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = (fill(tmp_path / name, SMALL).store.dump() for name in ("one", "two"))
    assert first == second
