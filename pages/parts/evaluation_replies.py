"""What two arms replied to one task, beside each other; each reply leads to its rollout."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.proof import Comparison, TaskRow
from core.rollout import Rollout
from core.settings import RewardConfig
from core.workspace import Workspace
from pages.parts import attempt, frame, safe, session, words
from pages.parts.safe import markup

OPEN = "w_evaluation_replies"
"""The task whose replies are shown: one at a time."""
REPLIES = 16
"""Of each arm."""
ANSWER = 240
"""Characters of a reply; its rollout has it whole."""


def opener(one: Comparison, row: TaskRow) -> bool:
    """The button that shows the replies of a task; gives whether they are shown."""
    here = f"{one.arm}/{row.task_id}"
    st.button(
        "Replies, side by side",
        key=f"evaluation_replies_{row.task_id}",
        type="tertiary",
        icon=":material/compare:",
        on_click=_toggle,
        args=(here,),
    )
    return session.get(OPEN) == here


def _toggle(here: str) -> None:
    session.put(OPEN, None if session.get(OPEN) == here else here)


def draw(ws: Workspace, one: Comparison, row: TaskRow) -> None:
    """The baseline's replies on the left, the arm's on the right."""
    left, right = st.columns(2, gap="medium")
    with left:
        _side(ws, 0, one.baseline, row.baseline_groups)
    with right:
        _side(ws, 1, one.arm, row.arm_groups)


def _side(ws: Workspace, side: int, name: str, group_ids: Sequence[str]) -> None:
    groups = [ws.store.groups.get(i, trajectories=False) for i in group_ids]
    found = [(r, group.run_id) for group in groups for r in group.rollouts]
    scored = [r.reward for r, _ in found if r.reward is not None]
    mean = words.number(sum(scored) / len(scored) if scored else None)
    frame.section(name, f"mean {mean} of {len(scored):,} scored")
    rewards = {group.run_id: ws.store.figures.reward_of(group.run_id).reward for group in groups}
    for rollout, run_id in found[:REPLIES]:
        _reply(side, rollout, rewards[run_id])
    if len(found) > REPLIES:
        frame.note(f"The first {REPLIES} of {len(found):,}; its groups have all.")


def _reply(side: int, rollout: Rollout, reward: RewardConfig) -> None:
    word, tone, _ = attempt.verdict(rollout, reward)
    content = markup(
        '<div class="w-reply"><div class="top"><span class="id">{id}</span>{chip}<span class="end">reward {reward}'
        '</span></div><div class="text" dir="auto">{answer}</div></div>',
        id=rollout.id,
        chip=frame.chip(word, tone),
        reward=words.number(rollout.reward),
        answer=safe.short(rollout.trajectory.answer, ANSWER) or "(no answer)",
    )
    key = f"evaluation_reply_{side}_{rollout.id}"
    frame.way(
        key, content, f"Open rollout {rollout.id}", "pages/learn/rollout.py", look="w-card", id=rollout.id
    )
