"""How fast work goes, and how long it may still take, from what this process saw of it in the last minute."""

from __future__ import annotations

import time
from collections import deque

from core.job import Job
from pages.parts import words

FIRST_GUESS_S = 5.0
"""Nothing is guessed before work was watched for so long."""
WINDOW_S = 60.0
KEPT = 200
"""Jobs that are watched at most."""
SAMPLES = 240

_seen: dict[tuple[str, str, str], deque[tuple[float, int]]] = {}
"""How much of a job was done when it was looked at (monotonic seconds)."""


def per_minute(folder: object, job: Job) -> float | None:
    """How much of what a job is at is done in a minute; None where it cannot be told yet."""
    if len(_seen) > KEPT:
        _seen.clear()
    now = time.monotonic()
    samples = _seen.setdefault((str(folder), job.id, job.what), deque(maxlen=SAMPLES))
    samples.append((now, job.done))
    while len(samples) > 2 and samples[1][0] <= now - WINDOW_S:
        samples.popleft()
    since, before = samples[0]
    if job.state != "running" or now - since < FIRST_GUESS_S:
        return None
    return 60 * (job.done - before) / (now - since)


def left(folder: object, job: Job) -> str:
    """`40 s`, `12 min` or `3.5 h`; empty where it cannot be told yet."""
    rate = per_minute(folder, job)
    if not rate or rate < 0 or not job.total:
        return ""
    return words.span(60 * (job.total - job.done) / rate)
