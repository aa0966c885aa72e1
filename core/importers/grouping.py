"""Which attempts belong together: the keys of tasks and groups, and what tells one attempt from another."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping

from pydantic import JsonValue

from core.importers.attempt import Attempt
from core.importers.report import GroupBy
from core.record import canonical_json

_VOLATILE = re.compile(
    r"<(environment_context|system-reminder)>.*?</\1>"
    r"|\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|(?:/private)?(?:/tmp|/var/folders|/var/tmp)/[^\s\"'`)>\]]+",
    re.DOTALL,
)
"""What differs between attempts at one task although the task is the same: dates, temporary paths, surroundings."""

MAX_ID = 160
"""Characters of a task's id; a longer one is cut, and told apart by a hash."""


def question_key(question: str) -> str:
    """What questions share that are the same but for dates, temporary paths, surroundings and white space.

    >>> question_key("Look into /tmp/a1 on 2025-01-02.") == question_key("Look  into /tmp/b2 on 2026-03-04. ")
    True
    """
    text = _VOLATILE.sub(" ", unicodedata.normalize("NFC", question))
    return _digest(" ".join(text.split()))[:32]


def own_task_id(attempt: Attempt, task_field: str | None) -> str | None:
    """The task id that the file gives an attempt: the format's own, or the field of the metadata that is wanted."""
    if attempt.task is not None:
        return attempt.task.id
    if task_field is None:
        return attempt.task_id
    value = attempt.task_metadata.get(task_field, attempt.metadata.get(task_field))
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def task_key(attempt: Attempt, task_id: str | None, question: str, group_by: GroupBy) -> str:
    """What attempts at one task share.

    Args:
        attempt: the attempt.
        task_id: as `own_task_id` gives it.
        question: its `question_key`.
        group_by: whether the id or the question alone decides.
    """
    if attempt.task is not None:
        return _digest("own", attempt.task.id)
    by_id = task_id if group_by != "question" else None
    by_question = "" if by_id is not None and group_by == "task" else question
    return _digest("task", attempt.namespace, "" if by_id is None else f"={by_id}", by_question)


def group_key(task: str, attempt: Attempt, *, mixed: bool = False) -> str:
    """What attempts of one group share: the task, the model, the agent and its configuration; mixed, the task alone."""
    return _digest("mixed", task) if mixed else _digest("group", task, attempt.model, attempt.agent)


def identity(attempt: Attempt) -> str:
    """What two records of the same attempt share: all but where they stand.

    The bare number of an attempt tells nothing apart: two attempts may well say the same, word for word.
    """
    return hashlib.sha256(attempt.model_dump_json(exclude={"place"}).encode()).hexdigest()


def workspace_id(namespace: str, task_id: str | None, key: str) -> str:
    """The id that a task gets here: readable, and unique within what the files tell.

    >>> workspace_id("airline", "3", "ab12" * 8), workspace_id("", None, "ab12" * 8)
    ('airline/3', 'q-ab12ab12ab12')
    """
    own = task_id if task_id is not None else f"q-{key[:12]}"
    name = "".join(
        c if c.isprintable() else "\ufffd" for c in (f"{namespace}/{own}" if namespace else own)
    ).strip()
    return name if 0 < len(name) <= MAX_ID else f"{name[: MAX_ID - 13]}~{key[:12]}"


def told_apart(task_id: str, key: str) -> str:
    """The id of a task whose own one stands for another task here."""
    return f"{task_id}~{key[:8]}"


def domain_of(namespace: str) -> str:
    """The domain of a task that nobody named one for."""
    text = " ".join("".join(c if c.isprintable() else " " for c in namespace).split())
    return text[:100].strip() or "general"


def small(metadata: Mapping[str, JsonValue], most: int = 20_000) -> dict[str, JsonValue]:
    """The members of a task's metadata that are small enough to be kept beside it."""
    return {name: value for name, value in metadata.items() if len(canonical_json(value)) <= most}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
