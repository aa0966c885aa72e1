"""Where a workspace stands, and its log in pages: what every page of the app reads."""

from __future__ import annotations

import pytest

from core.experience import Add, Proposal
from core.workspace import Workspace


def proposed(ws: Workspace, *texts: str) -> list[str]:
    return ws.store.proposals.add([Proposal(id="", operation=Add(text=t)) for t in texts], "ann")


def test_the_margin_counts_what_waits_and_what_is_staged(workspace: Workspace) -> None:
    first, second, third, fourth = proposed(workspace, "Read.", "Write.", "Count.", "Ask.")
    workspace.review.approve(first, "ann")
    workspace.review.publish("", "ann")
    workspace.review.approve(second, "ann")
    workspace.review.defer(third, "", "ann")
    workspace.review.reject(fourth, "no", "ann")
    margin = workspace.margin()
    assert (margin.version, margin.experiences, margin.waiting, margin.staged) == (1, 1, 1, 1)
    assert workspace.overview().waiting_review == margin.waiting


def test_an_empty_workspace_says_so_until_something_is_in_it(workspace: Workspace) -> None:
    assert workspace.store.standing.empty()
    assert workspace.overview().newest_run is None
    proposed(workspace, "Read.")
    assert not workspace.store.standing.empty()


def test_the_log_comes_in_pages_the_newest_line_first(workspace: Workspace) -> None:
    proposed(workspace, *(f"Lesson {i}." for i in range(7)))
    first, total = workspace.store.events.page(limit=3)
    last, _ = workspace.store.events.page(limit=3, offset=6)
    assert total == 7
    assert [e.subject for e in first] == ["P-0007", "P-0006", "P-0005"]
    assert [e.subject for e in last] == ["P-0001"]


@pytest.mark.parametrize(
    ("filters", "subjects"),
    [
        ({"kind": "proposal"}, ["P-0001", "P-0002", "P-0001"]),
        ({"kind": "proposal.approved"}, ["P-0001"]),
        ({"kind": "prop"}, []),
        ({"actor": "bob"}, ["P-0001"]),
        ({"subject": "P-0002"}, ["P-0002"]),
        ({"actor": "ann", "kind": "proposal.made", "subject": "P-0001"}, ["P-0001"]),
        ({"actor": "' OR 1=1 --"}, []),
    ],
)
def test_the_log_is_filtered_by_kind_person_and_subject(
    filters: dict[str, str], subjects: list[str], workspace: Workspace
) -> None:
    first, _ = proposed(workspace, "Read.", "Write.")
    workspace.review.approve(first, "bob")
    workspace.models.set_role("judge", "embedded", "ann")
    found, total = workspace.store.events.page(**filters)
    assert [e.subject for e in found] == subjects
    assert total == len(subjects)


def test_a_kind_of_line_is_left_out_of_the_log_and_of_its_count(workspace: Workspace) -> None:
    first, _ = proposed(workspace, "Read.", "Write.")
    workspace.review.claim(first, "bob")
    everything, all_lines = workspace.store.events.page()
    rest, others = workspace.store.events.page(but="claim")
    assert [e.kind for e in rest] == [e.kind for e in everything if not e.kind.startswith("claim.")]
    assert others == len(rest) == all_lines - 1


def test_the_log_names_its_kinds_and_people_once(workspace: Workspace) -> None:
    first, _ = proposed(workspace, "Read.", "Write.")
    workspace.review.approve(first, "bob")
    assert workspace.store.events.kinds() == ["proposal.approved", "proposal.made"]
    assert workspace.store.events.actors() == ["ann", "bob"]
