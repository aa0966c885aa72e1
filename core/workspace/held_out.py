"""What an import of recorded rollouts says of splits: which of its tasks teach nothing, and which stay in theirs."""

from __future__ import annotations

from collections import Counter

from core.importers.report import ImportOptions
from core.rollout import SPLITS
from core.store import Store
from core.store.spool import Spool

DOES = {"train": "teaches", "trial": "only selects lessons", "final": "only reports"}


def splits_told(spool: Spool, store: Store, options: ImportOptions) -> tuple[str, ...]:
    """One sentence for each split other than train that new tasks go to, and for each that known ones stay in, unasked.

    Args:
        spool: its tasks have their names.
        store: of the workspace; it may not have the new tasks yet.
        options: how the files are read.
    """
    new, stay = Counter[str](), dict[str, str]()
    rows = spool.rows(
        "SELECT DISTINCT a.task AS key, t.task_id, t.fresh FROM attempts a LEFT JOIN tasks t ON t.key = a.task"
        " WHERE a.fate IN ('new', 'known')"
    )
    for row in rows:
        task = store.tasks.find(row["task_id"] or store.recorded.task_of(row["key"]) or "")
        if row["fresh"]:
            own = None if task else (spool.task(row["key"])["body"]["task"] or {}).get("split")
            new[task.split if task else own or options.split] += 1
        elif task is not None and task.split != options.split:
            stay[task.id] = task.split
    stays = Counter(stay.values())
    held_out = [split for split in SPLITS if split != "train" and new[split]]
    return (
        *(
            f"{_tasks(new[s], 'new ')} in the split {s}, which {DOES[s]}: nothing is learned from them."
            for s in held_out
        ),
        *(
            f"{_tasks(stays[s])} here already and in the split {s}, and stay there."
            for s in SPLITS
            if stays[s]
        ),
    )


def _tasks(count: int, what: str = "") -> str:
    return f"{count:,} {what}{'task is' if count == 1 else 'tasks are'}"
