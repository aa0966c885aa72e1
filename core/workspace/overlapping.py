"""What the three splits share: by id, by text, and nearly, by embedding (DESIGN 2.10)."""

from __future__ import annotations

from core.importers.splits import text_key
from core.proof import Overlap, Overlaps
from core.rollout import SPLITS, Task
from core.store import Store
from core.workspace.nearest import Comparing

SHOWN = 100
"""Pairs that are listed of each kind, the most similar first."""
BEGINNING = 160
"""Characters of a question that are shown."""
EACH = 2
"""Of a task, so many near ones in earlier splits are looked at."""


def overlaps(store: Store, comparing: Comparing) -> Overlaps:
    """Look for tasks that stand in two splits, or nearly: what teaches must not prove.

    Each task is compared with those of the splits before its own (train, trial, final). Similarity only suggests: tasks
    made from one template are near to each other, and may still be different ones. Nothing is fetched for it.
    """
    by_split = {split: store.tasks.select(split) for split in SPLITS}
    same, near, shared = list[Overlap](), list[Overlap](), dict[str, Task]()
    compared_by = note = ""
    for place, split in enumerate(SPLITS):
        later = by_split[split]
        earlier = [task for before in SPLITS[:place] for task in by_split[before]]
        pairs = {(t.id, there.id) for t in later if (there := shared.get(text_key(t.question))) is not None}
        same += [
            _overlap("text", shared[text_key(t.question)], t) for t in later if text_key(t.question) in shared
        ]
        if later and earlier:
            found = comparing([t.question for t in later], [t.question for t in earlier], EACH)
            compared_by, note = found.by, found.note
            for task, alike in zip(later, found.alike(), strict=True):
                near += [
                    _overlap("similarity", earlier[one.place], task, one.similarity)
                    for one in alike
                    if (task.id, earlier[one.place].id) not in pairs
                ]
        for task in later:
            shared.setdefault(text_key(task.question), task)
    near.sort(key=lambda one: -one.similarity)
    more = f"{len(near) - SHOWN:,} more pairs are near." if len(near) > SHOWN else ""
    return Overlaps(
        tasks={split: len(tasks) for split, tasks in by_split.items()},
        same=tuple(same),
        near=tuple(near[:SHOWN]),
        compared_by=compared_by,
        note=" ".join(part for part in (note, more) if part),
    )


def _overlap(by: str, a: Task, b: Task, similarity: float = 1.0) -> Overlap:
    return Overlap.read(
        {
            "by": by,
            "a": a.id,
            "a_split": a.split,
            "b": b.id,
            "b_split": b.split,
            "similarity": min(1.0, similarity),
            "text": b.question[:BEGINNING],
        }
    )
