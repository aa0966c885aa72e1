"""Lessons that a rollout was given, and which of them it used, as far as anything tells (`workspace.crediting`)."""

from __future__ import annotations

from core.errors import NotFoundError
from core.record import Record
from core.rollout import Rollout, Task
from core.store import Store
from core.workspace.crediting import Held, follows

HEAVY = 2 << 20
"""Stored bytes of a group's trajectories that are not counted for a page."""
MOST = 60
"""Lessons that are looked up."""


class LessonGiven(Record):
    """One lesson of the injected text."""

    label: str
    """`G0`"""
    experience_id: str
    text: str
    """As it was given; empty where it is no longer known."""
    used: bool | None = None
    """None where nothing tells."""
    told_by: str = ""
    """What told it: what was counted of the steps and the answer, or the summary of a model."""


def lessons_given(store: Store, rollout: Rollout, version: int, task: Task | None) -> list[LessonGiven]:
    """Every lesson that stood in the prompt of a rollout, in the order of its text.

    Args:
        store: where.
        rollout: which; its trajectory is read here.
        version: of the library that it was given.
        task: what was tried; None where it is gone, and nothing can be counted.
    """
    given = list(rollout.injected.items())[:MOST]
    texts = {experience_id: _text(store, experience_id, version) for _, experience_id in given}
    counted = _counted(store, rollout, task, texts)
    cited = store.credits.cited(rollout.group_id).get(rollout.id)
    found = []
    for label, experience_id in given:
        used, told_by = counted.get(experience_id), "counted"
        if experience_id not in counted:
            used, told_by = (None, "") if cited is None else (experience_id in cited, "its summary")
        found.append(
            LessonGiven(
                label=label,
                experience_id=experience_id,
                text=texts[experience_id],
                used=used,
                told_by=told_by if used is not None else "",
            )
        )
    return found


def _text(store: Store, experience_id: str, version: int) -> str:
    try:
        history = store.versions.history(experience_id)
    except NotFoundError:
        return ""
    return next((state.text for first, _, state in reversed(history) if first <= version), "")


def _counted(
    store: Store, rollout: Rollout, task: Task | None, texts: dict[str, str]
) -> dict[str, bool | None]:
    """Whether the rollout does what each lesson says; those that speak of nothing that is counted are absent."""
    if task is None or rollout.error is not None or not texts:
        return {}
    ids = [r.id for r in store.groups.get(rollout.group_id, trajectories=False).rollouts]
    if sum(store.figures.weight_of(ids).values()) > HEAVY:
        return {}
    rollouts = [r for r in store.groups.get(rollout.group_id).rollouts if r.error is None]
    place = next((i for i, r in enumerate(rollouts) if r.id == rollout.id), None)
    if place is None:
        return {}
    held = Held.of(task, rollouts)
    did = {i: follows(text, held) for i, text in texts.items() if text}
    return {i: each[place] for i, each in did.items() if each is not None}
