"""Trying an endpoint from a page: in a process of its own, so that the web process never waits for a model."""

from __future__ import annotations

from pathlib import Path

from core.errors import BusyError, WinnowError
from core.record import Record
from core.roles import Role
from core.workspace.aside import run_aside

WITHIN_S = 45.0
"""Seconds that a trial may take; the embedded model is loaded in them, too."""


class Trial(Record):
    """What a trial showed, in words."""

    endpoint: str
    works: bool
    said: str
    """One sentence."""
    can: tuple[tuple[str, bool | None], ...] = ()
    """What it can do; None = not to be told."""


def try_endpoint(folder: Path, name: str, role: Role, within_s: float = WITHIN_S) -> Trial:
    """Ask an endpoint a few short questions, and tell what it can do. Never raises a `WinnowError`."""
    try:
        found = run_aside(folder, "endpoints", "test", name, within_s=within_s, role=role)
    except BusyError:
        late = f"{name} did not answer within {within_s:.0f} s and was given up."
        return Trial(
            endpoint=name, works=False, said=f"{late} A terminal waits longer: winnow endpoints test {name}"
        )
    except WinnowError as e:
        return Trial(endpoint=name, works=False, said=str(e))
    if "dimension" in found:
        said = f"{name} gives vectors of {found['dimension']} numbers, in {found['latency_s']:.1f} s."
        return Trial(endpoint=name, works=True, said=said)
    if problem := found.get("problem"):
        return Trial(endpoint=name, works=False, said=str(problem))
    names = {"sends_n": "several replies to a request", "sends_seed": "seeds", "json_schema": "JSON schemas"}
    return Trial(
        endpoint=name,
        works=True,
        said=f"{name} answered as {found['model']} in {found.get('latency_s') or 0:.1f} s.",
        can=tuple((words, found.get(key)) for key, words in names.items()),
    )
