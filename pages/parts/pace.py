"""How long work may still take, from what this process saw of it."""

from __future__ import annotations

import time

from core.job import Job

FIRST_GUESS_S = 5.0
"""No time left is guessed before work was watched for so long."""
KEPT = 200
"""Jobs that are watched at most."""

_seen: dict[tuple[str, str, str], tuple[float, int]] = {}
"""When a job was first seen at something (monotonic seconds), and how much was done by then."""


def left(folder: object, job: Job) -> str:
    """`40 s` or `12 min`; empty where it cannot be told yet."""
    if len(_seen) > KEPT:
        _seen.clear()
    since, before = _seen.setdefault((str(folder), job.id, job.what), (time.monotonic(), job.done))
    watched = time.monotonic() - since
    if job.state != "running" or not job.total or job.done <= before or watched < FIRST_GUESS_S:
        return ""
    seconds = watched / (job.done - before) * (job.total - job.done)
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
