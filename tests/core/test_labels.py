from __future__ import annotations

import pytest

from core.errors import ApplyError, InputError, NotFoundError
from core.workspace import Workspace
from tests.make import publish


@pytest.fixture
def two_versions(workspace: Workspace) -> Workspace:
    publish(workspace, "First lesson.")
    publish(workspace, "Second lesson.")
    return workspace


def test_a_label_points_at_a_version_until_somebody_moves_it(two_versions: Workspace) -> None:
    labels = two_versions.store.labels
    labels.set("trial", 1, "ann")
    publish(two_versions, "Third lesson.")
    assert labels.all() == [labels.find("trial")]
    assert two_versions.store.versions.resolve("trial") == 1
    assert labels.set("trial", 2, "bob").moved_by == "bob"
    assert (labels.of(1), labels.of(2)) == ([], ["trial"])


def test_a_version_is_meant_by_its_number_as_a_number_or_as_text_or_by_a_label(
    two_versions: Workspace,
) -> None:
    two_versions.store.labels.set("production", 1, "ann")
    resolve = two_versions.store.versions.resolve
    assert [resolve(name) for name in (0, 2, "2", "production")] == [0, 2, 2, 1]


@pytest.mark.parametrize("name", [3, "3", "-1", "staging", "", "²", "9" * 40])
def test_what_is_neither_a_version_nor_a_label_is_refused_and_the_labels_are_named(
    two_versions: Workspace, name: int | str
) -> None:
    two_versions.store.labels.set("production", 1, "ann")
    with pytest.raises(NotFoundError, match=r"There is no version 3|labels are production"):
        two_versions.store.versions.resolve(name)


def test_production_is_protected_from_the_start_and_moves_only_on_an_explicit_flag(
    two_versions: Workspace,
) -> None:
    labels = two_versions.store.labels
    assert labels.set("production", 1, "ann").protected
    for attempt in (
        lambda: labels.set("production", 2, "bob"),
        lambda: labels.set("production", 1, "bob", protect=False),
        lambda: labels.remove("production", "bob"),
    ):
        with pytest.raises(InputError, match="protected and points at version 1; nothing was changed"):
            attempt()
    assert labels.set("production", 2, "ann", force=True).version == 2
    assert labels.remove("production", "ann", force=True).version == 2
    assert labels.all() == []


def test_any_label_can_be_protected_and_production_can_be_free(two_versions: Workspace) -> None:
    labels = two_versions.store.labels
    labels.set("stable", 1, "ann", protect=True)
    with pytest.raises(InputError, match="--force"):
        labels.set("stable", 2, "ann")
    labels.set("production", 1, "ann", protect=False)
    assert labels.set("production", 2, "ann").version == 2


@pytest.mark.parametrize("name", ["", "7", "-x", "a b", "latest", "Newest", "a" * 65, "naïve", "a\n"])
def test_a_label_cannot_be_taken_for_a_number_or_for_something_that_moves_by_itself(
    two_versions: Workspace, name: str
) -> None:
    with pytest.raises(InputError, match="cannot be a label"):
        two_versions.store.labels.set(name, 1, "ann")


def test_a_label_of_a_version_that_is_not_there_is_refused(two_versions: Workspace) -> None:
    with pytest.raises(NotFoundError, match="no version 3; the newest is 2"):
        two_versions.store.labels.set("trial", 3, "ann")
    with pytest.raises(NotFoundError, match="no label 'trial'"):
        two_versions.store.labels.remove("trial", "ann")


def test_of_two_who_move_a_label_at_once_the_second_is_told_where_it_points_now(
    two_versions: Workspace,
) -> None:
    labels = two_versions.store.labels
    labels.set("trial", 0, "ann")
    labels.set("trial", 1, "ann", expected=0)
    dump = two_versions.store.dump()
    for attempt in (
        lambda: labels.set("trial", 2, "bob", expected=0),
        lambda: labels.remove("trial", "bob", expected=0),
    ):
        with pytest.raises(
            ApplyError,
            match=r"trial points at version 1 since ann moved it at .*, but you expected version 0",
        ):
            attempt()
    with pytest.raises(ApplyError, match="but you expected no such label; nothing was changed"):
        labels.set("trial", 2, "bob", expected="nothing")
    assert two_versions.store.dump() == dump
    assert labels.set("trial", 2, "bob", expected=1).version == 2
    labels.remove("trial", "bob", expected=2)


def test_a_label_that_was_taken_away_meanwhile_is_not_set_again_by_who_expects_it(
    two_versions: Workspace,
) -> None:
    labels = two_versions.store.labels
    with pytest.raises(ApplyError, match="The label trial is not there, but you expected version 1"):
        labels.set("trial", 2, "bob", expected=1)
    assert labels.set("trial", 2, "bob", expected="nothing").version == 2


def test_a_label_that_points_there_already_is_left_alone_whatever_was_expected(
    two_versions: Workspace,
) -> None:
    labels = two_versions.store.labels
    was = labels.set("trial", 2, "ann")
    assert labels.set("trial", 2, "bob", expected=1) == was, (
        "told once, sent twice: the second is no conflict"
    )


def test_a_protected_label_is_moved_by_who_insists_and_knows_where_it_points(two_versions: Workspace) -> None:
    labels = two_versions.store.labels
    labels.set("production", 1, "ann")
    with pytest.raises(ApplyError, match="expected version 0"):
        labels.set("production", 2, "bob", expected=0, force=True)
    with pytest.raises(InputError, match="protected"):
        labels.set("production", 2, "bob", expected=1)
    assert labels.set("production", 2, "bob", expected=1, force=True).version == 2


def test_moves_are_in_the_log_with_where_it_was_and_the_same_again_is_not(two_versions: Workspace) -> None:
    labels = two_versions.store.labels
    labels.set("trial", 1, "ann")
    labels.set("trial", 1, "bob")
    labels.set("trial", 2, "bob")
    labels.remove("trial", "cem")
    told = [(e.kind, e.actor, e.data["was"]) for e in two_versions.store.events.newest(subject="trial")]
    assert told == [("label.removed", "cem", 2), ("label.set", "bob", 1), ("label.set", "ann", None)]
