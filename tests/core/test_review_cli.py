"""`winnow review`, `publish`, `rollback` and `label`, as a script sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from core.cli import main
from core.experience import Modify, Quarantined
from core.workspace import Workspace
from tests.make import propose, publish


class Script:
    """Calls of the command line on one workspace, each by somebody."""

    def __init__(self, workspace: Workspace) -> None:
        self.folder = str(workspace.folder)

    def __call__(self, words: str, *more: str, who: str = "ann", code: int = 0) -> Any:
        """The JSON that a command answers with."""
        arguments = [*words.split(), *more, "--json", "--workspace", self.folder]
        done = CliRunner().invoke(main, arguments, env={"WINNOW_USER": who})
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)

    def lines(self, words: str, *more: str) -> str:
        done = CliRunner().invoke(main, [*words.split(), *more, "--workspace", self.folder])
        assert done.exit_code == 0, done.output
        return done.stdout


@pytest.fixture
def script(workspace: Workspace) -> Script:
    return Script(workspace)


def test_reviewers_take_the_next_one_and_are_told_who_holds_what_they_ask_for(
    workspace: Workspace, script: Script
) -> None:
    propose(workspace, "First lesson.")
    assert script("review next --for 5")["claim"]["holder"] == "ann"
    assert script("review next", who="bob") is None
    assert "ann holds P-0001" in script("review claim P-0001", who="bob", code=3)["error"]
    assert "ann holds P-0001" in script("review approve P-0001", who="bob", code=3)["error"]
    assert "ann" in script.lines("review list")
    assert script("review release P-0001") == {"released": True}
    assert script("review claims") == []
    assert script("review claim P-0001", who="bob")["holder"] == "bob"
    assert script("review approve P-0001 --force")[0]["decided_by"] == "ann"
    assert "although bob held it" in script.lines("review show P-0001")


def test_a_stale_proposal_is_shown_against_the_new_text_and_rebased(
    workspace: Workspace, script: Script
) -> None:
    publish(workspace, "First lesson.")
    [older] = propose(workspace, Modify(experience_id="E-0001", text="One way."))
    publish(workspace, Modify(experience_id="E-0001", text="Another way."))
    assert "stale" in script.lines("review list --status stale")
    shown = script.lines(f"review show {older}")
    fields = " (kind strategy, domain sums)\n"
    assert shown.index(f"when this was proposed{fields}First lesson.") < shown.index(
        f"E-0001 now{fields}Another way."
    )
    assert f"winnow review rebase {older}" in script(f"review approve {older}", code=2)["error"]
    assert script(f"review rebase {older}", "--text", "One way, or another.")["base_version"] == 2
    assert script(f"review approve {older} -r tried")[0]["status"] == "approved"
    assert "approved on version 2: tried" in script.lines(f"review show {older}")
    assert "edited and approved" in script.lines("review list --all")


def test_what_is_in_quarantine_is_listed_and_adopted(workspace: Workspace, script: Script) -> None:
    publish(workspace, "First lesson.")
    workspace.store.proposals.quarantine([Quarantined(reason="no such id", raw='{"id": "G9"}')])
    [item] = script("review quarantine")["items"]
    assert (item["id"], item["item"]["raw"]) == ("Q-0001", '{"id": "G9"}')
    made = script("review adopt Q-0001 --op modify --target E-0001", "--text", "Another way.")
    assert (made["operation"]["experience_id"], made["status"]) == ("E-0001", "proposed")
    assert "became" in script("review adopt Q-0001", "--text", "Again.", code=2)["error"]
    assert "Q-0009" in script("review adopt Q-0009", "--text", "None.", code=2)["error"]


def test_a_published_proposal_is_reverted_by_a_proposal(workspace: Workspace, script: Script) -> None:
    publish(workspace, "First lesson.")
    [made] = script("review revert P-0001")
    assert made["operation"] == {"op": "delete", "experience_id": "E-0001"}
    script(f"review approve {made['id']}")
    assert script("publish -m Back")["size"] == 0


def test_a_dry_run_shows_the_exact_change_and_its_tokens_and_publishes_nothing(
    workspace: Workspace, script: Script
) -> None:
    publish(workspace, "First lesson.")
    ids = propose(workspace, "Second lesson: ${x} 字.", "Third lesson.")
    script("review approve", *ids)
    preview = script(f"publish --dry-run --parent 1 --only {ids[0]}")
    [change] = preview["differences"]
    assert (change["before"], change["after"], change["proposal_id"]) == (
        None,
        "Second lesson: ${x} 字.",
        ids[0],
    )
    assert 0 < preview["tokens_before"] < preview["tokens_after"]
    assert (preview["parent"], preview["proposal_ids"]) == (1, [ids[0]])
    assert workspace.store.versions.head() == 1
    assert script(f"publish --only {ids[0]} -m Some")["proposal_ids"] == [ids[0]]
    assert "E-0002 changed since" in script("publish --parent 1", code=2)["error"]


def test_labels_are_set_listed_moved_and_removed_and_name_what_to_roll_back_to(
    workspace: Workspace, script: Script
) -> None:
    publish(workspace, "First lesson.")
    publish(workspace, "Second lesson.")
    assert script("label set production 1")["protected"]
    assert "protected" in script("label set production 2", code=2)["error"]
    assert script("label set trial production")["version"] == 1
    assert [one["name"] for one in script("label list")] == ["production", "trial"]
    assert script("rollback production")["number"] == 3
    assert "neither" in script("rollback staging", code=2)["error"]
    assert script("label remove production --force")["version"] == 1


def test_a_label_is_moved_only_from_where_it_was_seen(workspace: Workspace, script: Script) -> None:
    publish(workspace, "First lesson.")
    script("label set trial 0 --from nothing")
    assert script("label set trial 1 --from 0")["version"] == 1
    refused = script("label set trial 0 --from 0", who="bob", code=2)["error"]
    assert "points at version 1 since ann moved it" in refused
    assert "points at version 1" in script("label remove trial --from 0", code=2)["error"]
    arguments = ["label", "set", "trial", "0", "--from", "trial", "--workspace", script.folder]
    assert "number of a version" in CliRunner().invoke(main, arguments).stderr
    script("label remove trial --from 1")


def test_many_are_previewed_and_then_exactly_those_are_approved(workspace: Workspace, script: Script) -> None:
    propose(workspace, "First lesson.", "word " * 33, "Third lesson.")
    preview = script("review approve --domain sums --dry-run")
    assert [(one["seen"], bool(one["refused"])) for one in preview["would"]] == [
        ("P-0001@0", False),
        ("P-0002@0", True),
        ("P-0003@0", False),
    ]
    said = script.lines("review approve --status proposed --dry-run")
    assert "2 of 3 proposals can be approved. Nothing was changed." in said
    assert said.endswith("winnow review approve P-0001@0 P-0003@0\n")
    workspace.review.edit("P-0003", "Changed since.", "bob")
    assert "P-0003 was changed meanwhile" in script("review approve P-0001@0 P-0003@0", code=2)["error"]
    assert [p["id"] for p in script("review approve P-0001@0 P-0003@1")] == ["P-0001", "P-0003"]


def test_a_filter_decides_on_what_fits_and_tells_what_it_left_out(
    workspace: Workspace, script: Script
) -> None:
    propose(workspace, "First lesson.", "word " * 33)
    told = script("review approve --domain sums", code=1)
    assert [p["id"] for p in told["done"]] == ["P-0001"]
    assert [(one["seen"], "33 words" in one["refused"]) for one in told["left_out"]] == [("P-0002@0", True)]
    assert script("review undo --status approved")["done"][0]["status"] == "proposed"
    assert [p["status"] for p in script("review reject P-0001 P-0002 -r no")] == ["rejected", "rejected"]
    assert script("review defer --domain elsewhere") == {"done": [], "left_out": []}


@pytest.mark.parametrize(
    "words",
    [
        "approve",
        "approve P-0001 --domain sums",
        "approve P-0001 P-0002 --revision 1",
        "approve P-0001@x",
        "approve P-0001 P-0002 --text Mine.",
        "reject P-0001",
    ],
)
def test_what_does_not_say_which_proposals_or_why_is_refused(workspace: Workspace, words: str) -> None:
    propose(workspace, "First lesson.", "Second lesson.")
    arguments = ["review", *words.split(), "--workspace", str(workspace.folder)]
    assert CliRunner().invoke(main, arguments).exit_code == 2
    assert workspace.store.proposals.counts() == {"proposed": 2}
