"""A script of SQL, one statement at a time."""

from __future__ import annotations

import sqlite3


def statements(script: str) -> list[str]:
    """Split a script where SQLite would: `executescript` would commit the transaction that holds it all."""
    found, current = [], ""
    for line in script.splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    return found
