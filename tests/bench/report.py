"""The table, and what it was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "benchmarks.md"
BUSY = 0.5
"""Work of other processes at the start, as the load of one minute, from which wall times are marked."""


@dataclass(frozen=True)
class Row:
    """One figure."""

    what: str
    measured: str
    bound: str = "-"
    met: bool | None = None
    """None where there is no bound."""


def at_most(what: str, value: float, bound: float, unit: str, digits: int = 2) -> Row:
    """A figure that must not pass its bound."""
    return Row(what, f"{value:,.{digits}f} {unit}", f"<= {bound:,.{digits}f} {unit}", value <= bound)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table that is readable as it is."""
    cells = [("what", "measured", "bound", "met"), ("---", "--:", "--:", "---")]
    cells += [(r.what, r.measured, r.bound, {True: "yes", False: "**no**", None: ""}[r.met]) for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(4)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join(lines) + "\n"


def circumstances() -> str:
    """Date, commit, machine and load, in one line."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    others = f"load {load:.1f} at the start"
    if load > BUSY:
        others += ": others worked on it too, so wall times are upper bounds"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit or 'unknown'}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores, {others}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "processor unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
