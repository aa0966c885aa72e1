"""A lesson that a person draws from one group: a proposal by hand, with the group and its extremes as evidence.

Only train tasks teach, also by hand: trial tasks select lessons and final ones report (DESIGN 2.10), which is worth
nothing where they taught what they judge.
"""

from __future__ import annotations

from core.errors import InputError
from core.experience import Add, Evidence
from core.rollout import Group, Rollout
from core.store import Store
from core.workspace.by_hand import Written, propose_by_hand
from core.workspace.nearest import Comparing

EXAMPLES = 2
"""Rollouts of each side that stand as examples."""


def why_not(store: Store, task_id: str) -> str:
    """Why nobody may draw a lesson from attempts at a task, in one sentence; empty where one may."""
    task = store.tasks.find(task_id)
    if task is None or task.split == "train":
        return ""
    does = "selects lessons" if task.split == "trial" else "only reports"
    return f"Task {task_id} is of the split {task.split}, which {does}: only train tasks teach."


def check_teaches(store: Store, task_id: str) -> None:
    """Refuse a lesson from attempts at a task that may not teach.

    Raises:
        InputError: it is of another split than train.
    """
    if why := why_not(store, task_id):
        raise InputError(f"{why} Nothing was proposed.")


def lesson_from(
    store: Store,
    group_id: str,
    lesson: Add,
    actor: str,
    compare: Comparing,
    *,
    rationale: str = "",
) -> Written:
    """Propose a lesson that a person read out of one group; it waits for a review.

    Args:
        store: where.
        group_id: what it was read out of.
        lesson: what it says.
        actor: who wrote it.
        compare: finds what is near in the library.
        rationale: why; the rewards of the group are said anyway.

    Raises:
        NotFoundError: there is no such group.
        ApplyError: the text is too long, or an experience of the same domain says the same already.
        InputError: an open proposal does the same already, or its task may not teach.
    """
    group = store.groups.get(group_id, trajectories=False)
    check_teaches(store, group.task_id)
    better, worse = extremes(group)
    told = f"Read out of {group_id}: {_told(better, 'better')} against {_told(worse, 'worse')}."
    return propose_by_hand(
        store,
        lesson,
        actor,
        compare,
        rationale=f"{rationale.strip()}\n{told}" if rationale.strip() else told,
        evidence=Evidence(group_ids=(group_id,), rollout_ids=tuple(r.id for r in (*better, *worse))),
    )


def extremes(group: Group) -> tuple[list[Rollout], list[Rollout]]:
    """The best rollouts above the mean of their group, and the worst below it."""
    known = sorted(
        (r for r in group.rollouts if r.advantage is not None),
        key=lambda r: (-(r.advantage or 0.0), r.replicate),
    )
    better = [r for r in known if (r.advantage or 0.0) > 0][:EXAMPLES]
    worse = [r for r in reversed(known) if (r.advantage or 0.0) < 0][:EXAMPLES]
    return better, worse


def _told(rollouts: list[Rollout], side: str) -> str:
    if not rollouts:
        return f"none {side} than the mean"
    return ", ".join(f"#{r.replicate} (reward {r.reward:.2f})" for r in rollouts)
