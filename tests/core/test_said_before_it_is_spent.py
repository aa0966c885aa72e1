"""What would measure nothing is refused before a call is sent, in one plain sentence; what a random arm is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from core.cli import main
from core.errors import InputError
from core.evaluation import made_of
from core.experience import Add
from core.proof import Arm, EvaluationConfig
from core.workspace import Workspace
from core.workspace.evaluation_plans import EvaluationPlan
from core.workspace.preparing import size
from tests.core.test_evaluation_effects import publish
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import StubServer

NONE = Arm(name="none", kind="none")
NEWEST = Arm(name="newest", kind="version")
RANDOM = Arm(name="random", kind="random")
HAND = Arm.model_validate({"name": "hand", "kind": "text", "lessons": [{"text": "Be brief."}]})


def winnow(workspace: Workspace, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])


def plan(workspace: Workspace, *arms: Arm, **fields: object) -> EvaluationPlan:
    add_stub(workspace, "http://127.0.0.1:9/v1")
    return workspace.evaluating.plan(
        EvaluationConfig.model_validate({"endpoint": "stub", "arms": arms, **fields})
    )


# --- arms that send the same ---


def test_arms_that_would_all_send_the_same_are_refused_before_anything_is_spent(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, split="trial"))
    with pytest.raises(InputError, match=r"none and newest have no lesson .* Publish lessons for them first"):
        plan(workspace, NONE, NEWEST)
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        done = winnow(workspace, "eval", "start", "--endpoint", "stub")
        assert done.exit_code == 2
        assert "There is nothing to compare: none and version:" in done.output
        assert stub.stats()["calls"] == 0
    assert workspace.store.evaluations.page()[1] == 0


def test_lessons_that_reach_none_of_the_tasks_are_as_good_as_none(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, split="trial"))
    publish(workspace, Add(text="Name the country, too.", domain="cities"))
    with pytest.raises(InputError, match="nothing to compare"):
        plan(workspace, NONE, NEWEST)
    publish(workspace, Add(text="Add carefully.", domain="sums"))
    assert plan(workspace, NONE, NEWEST).notes == ()


def test_the_same_lessons_twice_are_refused_but_not_with_another_prior_or_a_vote(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(5, split="trial"))
    publish(workspace, Add(text="Add carefully.", domain="sums"))
    again = NEWEST.model_copy(update={"name": "again", "version": 1})
    with pytest.raises(InputError, match="newest and again have the same lessons"):
        plan(workspace, NEWEST, again)
    plan(workspace, NONE, Arm(name="vote", kind="majority", of="none"))
    plan(workspace, NEWEST)


def test_an_empty_version_beside_other_arms_is_only_noted(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, split="trial"))
    notes = plan(workspace, NONE, NEWEST, HAND).notes
    assert notes == (
        "none and newest have no lesson for these tasks, so both send the same prompts: they differ by chance alone.",
    )


# --- what a random library is made of ---


def test_how_much_of_a_random_library_is_its_own_with_words_shuffled_is_said(
    workspace: Workspace, tmp_path: Path
) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    publish(workspace, *(Add(text=f"Sum rule {i} is long.", domain="sums") for i in range(3)))
    publish(workspace, Add(text="City rule 1 is long.", domain="cities"))
    told = "Its 4 lessons: 2 of other domains, 2 the version's own with their words shuffled."
    assert made_of(RANDOM, workspace.store.versions.library()) == told
    assert made_of(NEWEST, workspace.store.versions.library()) == ""
    assert plan(workspace, NONE, RANDOM).notes == (f"random: {told}",)
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        report = winnow(workspace, "eval", "start", "none", "random:newest", "--endpoint", "stub", "-n", "2")
    assert told in report.output
    as_json = json.loads(winnow(workspace, "eval", "show", "EV1", "--json").stdout)
    assert as_json["arms"][1]["note"] == told
    page = tmp_path / "page.html"
    assert winnow(workspace, "eval", "report", "EV1", "--html", str(page)).exit_code == 0
    assert "2 the version&#x27;s own with their words shuffled" in page.read_text()
    assert "with their words shuffled" in winnow(workspace, "eval", "start", "--help").output


# --- going on ---


@pytest.mark.parametrize(
    "option",
    [
        ("--temperature", "0.1"), ("--max-tokens", "5"), ("--seed", "9"), ("--limit", "1"), ("--split", "final"),
        ("--domain", "sums"), ("--endpoint", "nope"), ("-n", "2"), ("--look-every", "5"), ("--top-p", "0.5"),
        ("--stop", "x"), ("--judge-endpoint", "nope"),
    ],
)  # fmt: skip
def test_going_on_with_an_evaluation_takes_no_setting_but_the_caps(
    workspace: Workspace, option: tuple[str, str]
) -> None:
    done = winnow(workspace, "eval", "start", "--resume", "EV1", *option)
    assert done.exit_code == 2
    name = {"-n": "--samples"}.get(option[0], option[0])
    assert f"{name} cannot be given with --resume, which takes the caps only" in done.output


def test_going_on_with_a_run_names_the_option_as_it_was_typed(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        assert winnow(workspace, "run", "--endpoint", "stub", "-g", "2").exit_code == 0
        done = winnow(workspace, "run", "--resume", "R1", "--domain", "sums")
    assert done.exit_code == 2
    assert "--domain cannot be given with --resume" in done.output


# --- numbers and files ---


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--between", "nan"), "The deviation between is a number from 0 to 100: nan is none."),
        (("--between", "-1"), "The deviation between is a number from 0 to 100: -1 is none."),
        (("--within", "inf"), "The deviation within is a number from 0 to 100: inf is none."),
        (("--level", "0"), "The level is a chance between 0 and 1, such as 0.05: 0 is none."),
        (("--level", "nan"), "The level is a chance between 0 and 1, such as 0.05: nan is none."),
        (("--power", "1"), "The power is a chance between the level (0.05) and 1, such as 0.8: 1 is none."),
        (("--effect", "nan"), "The effect is a difference from 0.001 to 100: nan is none."),
        (("--effect", "inf"), "The effect is a difference from 0.001 to 100: inf is none."),
    ],
)
def test_what_is_no_number_for_it_is_refused_in_one_sentence(
    workspace: Workspace, option: tuple[str, str], said: str
) -> None:
    done = winnow(workspace, "eval", "size", "--effect", "0.1", *option)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_the_ends_of_the_ranges_are_counted() -> None:
    assert size(0.001).tasks > size(100.0).tasks >= 2


def test_where_the_spread_was_seen_names_the_arm(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        file = workspace.folder / "hand.md"
        file.write_text("Add carefully.\n", encoding="utf-8")
        assert (
            winnow(workspace, "eval", "start", "none", f"hand=text:{file}", "--endpoint", "stub").exit_code
            == 0
        )
    done = winnow(workspace, "eval", "size", "--effect", "0.1", "--from", "ev1")
    assert "(seen in EV1, hand against none)" in done.output


def test_a_file_that_is_no_pack_is_named_without_an_option_that_the_command_has_not(
    workspace: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "mk.py"
    file.write_text("import os\nprint(os.name)\n", encoding="utf-8")
    done = winnow(workspace, "eval", "start", "none", f"pack:{file}", "--dry-run")
    assert done.exit_code == 2
    assert "mk.py: The file is in no form that Winnow knows" in done.output
    assert "--form" not in done.output
    assert "name it with --form" in winnow(workspace, "pack", "import", str(file)).output
