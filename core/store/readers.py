"""What reads a row of each table whole, as the record that it is taken for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from core.errors import NotFoundError
from core.experience import Experience
from core.ports import Completion
from core.rollout import Task
from core.store.store import Store


class Reader(NamedTuple):
    """Reads what one row is part of."""

    table: str
    column: str
    """What it is read by."""
    read: Callable[[str], object]
    """Raises whatever it may where the row is not what it should be."""


def readers(store: Store) -> list[Reader]:
    """One for each table that holds records."""
    return [
        Reader("tasks", "id", lambda name: _task(store, name)),
        Reader("endpoints", "name", lambda name: _there(store.endpoints.find(name))),
        Reader("runs", "id", store.runs.get),
        Reader("batches", "run_id", store.runs.batches),
        Reader("groups", "id", lambda name: store.groups.get(name, trajectories=False)),
        Reader("trajectories", "rollout_id", store.groups.rollout),
        Reader("rollouts", "id", store.groups.rollout),
        Reader("proposals", "id", store.proposals.get),
        Reader("quarantine", "id", lambda row: store.proposals.quarantined_item(f"Q-{int(row):04d}")),
        Reader("experience_states", "experience_id", lambda name: _experiences(store, name)),
        Reader("events", "id", lambda row: store.events.newest(1, before=int(row) + 1)),
        Reader("jobs", "id", store.jobs.get),
        Reader("evaluations", "id", store.evaluations.get),
        Reader("priors", "id", store.priors.get),
        Reader("measured", "subject", store.evaluations.measured_of),
        Reader("calls", "key", lambda key: Completion.model_validate_json(store.calls.get(key) or "")),
    ]


def _there(found: object) -> object:
    if found is None:
        raise NotFoundError("it is not found by its own name")
    return found


def _task(store: Store, name: str) -> object:
    found = store.tasks.find(name)  # not validated on reading: there may be 100,000
    return Task.model_validate(found.model_dump(warnings=False) if found else _there(found))


def _experiences(store: Store, name: str) -> object:
    return [Experience.model_validate(e.model_dump()) for _, _, e in store.versions.history(name)]
