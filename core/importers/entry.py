"""An attempt as it is kept in the spool: storable, with what it is counted, grouped and found by beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from core.importers.attempt import Attempt, Seen
from core.importers.fates import Became, Placed
from core.importers.grouping import small
from core.record import canonical_json
from core.rollout import Step
from core.store.database import Row

NO_QUESTION = "(The file tells no question.)"


def sound(attempt: Attempt) -> Attempt:
    """The attempt with nothing that cannot be stored: no number that is not finite, no NUL in the question."""
    changes: dict[str, object] = {}
    if not attempt.question.strip() or "\x00" in attempt.question:
        changes["question"] = attempt.question.replace("\x00", "\ufffd").strip() or NO_QUESTION
    if attempt.expected and "\x00" in attempt.expected:
        changes["expected"] = attempt.expected.replace("\x00", "\ufffd")
    if attempt.duration_s is not None and not math.isfinite(attempt.duration_s):
        changes["duration_s"] = None
    if not math.isfinite(attempt.usage.cost_usd):
        changes["usage"] = attempt.usage.model_copy(update={"cost_usd": 0.0})
    if odd := [
        n for n, seen in attempt.scores.items() if seen.value is not None and not math.isfinite(seen.value)
    ]:
        changes["scores"] = attempt.scores | {
            n: Seen(raw=str(attempt.scores[n].value)) for n in odd
        }  # it is not graded, which is not 0
    return attempt.model_copy(update=changes) if changes else attempt


def row_of(attempt: Attempt, placed: Placed, became: Became) -> Row:
    """What is kept beside an attempt to count, group and find it by."""
    return {
        "place": attempt.place,
        "namespace": attempt.namespace,
        "task": placed.task,
        "task_id": placed.task_id,
        "grp": placed.group,
        "scope": placed.scope,
        "repeat": attempt.repeat,
        "own_id": attempt.own_id,
        "content": placed.content,
        "identity": placed.known_as,
        "model": attempt.model,
        "agent": attempt.agent,
        "fate": became.fate,
        "named": attempt.reward,
        "own": int(attempt.task is not None),
        "broken": int(attempt.error is not None),
        "rollout_id": became.rollout_id,
        "changed": int(became.changed),
        "went_on": int(became.went_on),
        "retried": int(became.retried),
        "weighed": int(bool(attempt.verdicts)),
        "apart": int(placed.apart),
        "orphans": attempt.orphans,
        **_steps(attempt.trajectory.steps),
        **attempt.usage.model_dump(),
    }


def task_body(attempt: Attempt) -> str:
    """What is kept of a task, as JSON."""
    own = None if attempt.task is None else attempt.task.model_dump(mode="json")
    return canonical_json(
        {
            "question": attempt.question,
            "system": attempt.system,
            "expected": attempt.expected,
            "metadata": small(attempt.task_metadata),
            "task": own,
        }
    )


def _steps(steps: Sequence[Step]) -> dict[str, int]:
    ends = Counter(step.ended for step in steps)
    return {
        "succeeded": ends["succeeded"],
        "failed": ends["failed"],
        "no_result": ends["no result"],
        "unknown": ends["not known"],
    }
