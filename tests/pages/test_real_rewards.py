"""Rewards of any range on the pages: no right and wrong, and they can be looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.make_messages import line
from tests.pages.test_pages import fine, html, open_page

pytestmark = pytest.mark.slow

REWARDS = (-0.69, 0.0, 12.5)


@pytest.fixture(autouse=True)
def _imported(folder: Path, tmp_path: Path) -> None:
    """One group whose file has real rewards, and one whose rewards are all 0."""
    path = tmp_path / "a.jsonl"
    lines = [line(0, i, reward) for i, reward in enumerate(REWARDS)] + [line(1, i, 0.0) for i in range(2)]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    Workspace(folder).intake.add_rollouts([path], ImportOptions(), "ann")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_rollout_is_scored_and_neither_right_nor_wrong(number: int) -> None:
    shown = html(fine(open_page("learn/rollout", f"R1-0001-{number}")))
    assert "Its reward is the reward that was recorded" in shown
    assert ">scored<" in shown
    assert ">wrong<" not in shown
    assert ">right<" not in shown


def test_a_group_says_whose_reward_it_is() -> None:
    shown = html(fine(open_page("learn/group", "R1-0001")))
    assert "The reward is the reward that was recorded." in shown
    assert "verifier's score" not in shown


def test_a_group_of_equal_rewards_is_told_by_its_number() -> None:
    shown = html(fine(open_page("learn/group", "R1-0002")))
    assert "all equal: reward 0" in shown
    assert "all wrong" not in shown


@pytest.mark.parametrize(
    ("low", "high", "found"), [("", "-0.5", [0]), ("1", "", [2]), ("-1", "0", [0, 1]), ("", "", [0, 1, 2])]
)
def test_rewards_outside_of_0_and_1_are_found(low: str, high: str, found: list[int]) -> None:
    asked = {"rollouts_from_reward": low, "rollouts_to_reward": high}
    page = fine(open_page("learn/rollouts", **{key: value for key, value in asked.items() if value}))
    keys = {button.key for button in page.button}
    assert [n for n in range(3) if f"open_R1-0001-{n}" in keys] == found
